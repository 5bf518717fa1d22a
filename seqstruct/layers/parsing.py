"""Parts of arc-factored parsers: a bidirectional encoder, scorers of words and pairs, and the losses of structures.

Everywhere tokens are B 3 N long (words, lemmas, tags), position 0 the root; padding_mask is B N, True = padding, after
the words.  Scores are log potentials.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from seqstruct.attention.dropout import Dropout
from seqstruct.ops.trees import best_graph, projective_best_tree, projective_log_partition


class TokenEncoder(nn.Module):
    """Embeddings of words, lemmas and tags, one after another, and a bidirectional LSTM over them.

    entries: of each dictionary.  sizes: of each embedding, 0 to leave it out.  padding: index of padding in all of
    them.  hidden_size: of each direction.  dropout: of embeddings; state_dropout: of states and between layers, the
    same by default.
    """

    def __init__(
        self,
        entries: Sequence[int],
        sizes: Sequence[int],
        padding: int,
        *,
        hidden_size: int,
        layers: int,
        dropout: float = 0.0,
        state_dropout: float | None = None,
    ):
        super().__init__()
        self.embeddings = nn.ModuleList(
            nn.Embedding(count, size, padding) if size else None
            for count, size in zip(entries, sizes, strict=True)
        )
        state_dropout = dropout if state_dropout is None else state_dropout
        self.dropout, self.state_dropout = Dropout(dropout), Dropout(state_dropout)
        between = state_dropout if layers > 1 else 0.0
        self.lstm = nn.LSTM(sum(sizes), hidden_size, layers, batch_first=True, bidirectional=True, dropout=between)
        self.output_size = 2 * hidden_size

    def forward(self, tokens: Tensor, padding_mask: Tensor) -> Tensor:
        """States B N output_size; 0 at padding."""
        rows = zip(self.embeddings, tokens.unbind(1), strict=True)
        embedded = torch.cat([embedding(row) for embedding, row in rows if embedding is not None], -1)
        lengths = (~padding_mask).sum(1).cpu()
        packed = pack_padded_sequence(self.dropout(embedded), lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=tokens.size(2))
        return self.state_dropout(states)


class PairScorer(nn.Module):
    """W tanh(U x_h + V x_m + b): a two-layer perceptron over pairs; its first products are made once for each word."""

    def __init__(self, input_size: int, hidden_size: int, outputs: int = 1):
        super().__init__()
        self.head = nn.Linear(input_size, hidden_size)
        self.dependent = nn.Linear(input_size, hidden_size, bias=False)
        self.output = nn.Linear(hidden_size, outputs)

    def forward(self, states: Tensor) -> Tensor:
        """states B N C -> scores B N N outputs, [b, h, m] of head h and dependent m."""
        hidden = self.head(states).unsqueeze(2) + self.dependent(states).unsqueeze(1)  # B N N hidden
        return self.output(torch.tanh_(hidden))


class WordScorer(nn.Sequential):
    """w . tanh(U x + b): states B N C -> scores B N 1."""

    def __init__(self, input_size: int, hidden_size: int):
        super().__init__(nn.Linear(input_size, hidden_size), nn.Tanh(), nn.Linear(hidden_size, 1))


def word_mask(padding_mask: Tensor) -> Tensor:
    """B N-1 over the words, the root left out, as the dependency operators take it."""
    return padding_mask[:, 1:]


def real_words(padding_mask: Tensor) -> Tensor:
    """B N bool, True for the words, neither root nor padding."""
    return F.pad(~padding_mask[:, 1:], (1, 0), value=False)


def tree_score(arcs: Tensor, heads: Tensor) -> Tensor:
    """Score B of trees with heads B N-1 long, -1 at padding; arcs B N N."""
    found = arcs[:, :, 1:].gather(1, heads.clamp(min=0).unsqueeze(1)).squeeze(1)
    return found.masked_fill(heads < 0, 0.0).sum(1)


def tree_hinge(arcs: Tensor, heads: Tensor, padding_mask: Tensor) -> Tensor:
    """Structured hinge loss B of projective trees: each wrong head costs 1 (Kiperwasser and Goldberg 2016).

    arcs: B N N; heads: B N-1 long, the gold tree, -1 at padding; padding_mask: B N.  0 or more for a projective gold
    tree; one that is not projective may lie above the best, and its loss is cut at 0.
    """
    wrong = torch.ones_like(arcs)
    wrong[:, :, 1:].scatter_(1, heads.clamp(min=0).unsqueeze(1), 0.0)
    with torch.no_grad():
        best = projective_best_tree(arcs + wrong, word_mask(padding_mask)).heads
    return (tree_score(arcs + wrong, best) - tree_score(arcs, heads)).clamp(min=0)


def tree_likelihood_loss(arcs: Tensor, heads: Tensor, padding_mask: Tensor) -> Tensor:
    """Negative log-likelihood B, in nats, among projective trees; arguments as for `tree_hinge`."""
    return projective_log_partition(arcs, word_mask(padding_mask)).to(arcs.dtype) - tree_score(arcs, heads)


def possible_labels(padding_mask: Tensor, labels: int) -> Tensor:
    """B N N L bool: label 0, of the top words, from the root alone, the others from words; nothing heads the root."""
    word = real_words(padding_mask)
    pairs = (word.unsqueeze(2) & word.unsqueeze(1)) & ~torch.eye(word.size(1), dtype=torch.bool, device=word.device)
    possible = pairs.unsqueeze(-1).repeat(1, 1, 1, labels)
    possible[..., 0] = False
    possible[:, 0, :, 0] = word
    return possible


def graph_score(heads: Tensor, arcs: Tensor, labels: Tensor, chosen: Tensor) -> Tensor:
    """Score B of graphs: heads B N, arcs B N N, labels B N N L; chosen B N N long, -1 without an arc."""
    taken = chosen >= 0
    labeled = labels.gather(-1, chosen.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    return (arcs + labeled).masked_fill(~taken, 0.0).sum((1, 2)) + heads.masked_fill(~taken.any(2), 0.0).sum(1)


def graph_hinge(heads: Tensor, arcs: Tensor, labels: Tensor, possible: Tensor, gold: Tensor) -> Tensor:
    """Structured hinge loss B of semantic graphs (Martins and Almeida 2014; Peng et al. 2017).

    Shapes as for `best_graph`; gold: B N N long, -1 without an arc.  A labeled arc too many costs 0.4, one that is
    missing 0.6.  The cost-augmented graph is sought without the determinism constraints, so the loss bounds the
    constrained one from above.
    """
    extra, missing = 0.4, 0.6
    is_gold = torch.zeros_like(possible).scatter(-1, gold.clamp(min=0).unsqueeze(-1), (gold >= 0).unsqueeze(-1))
    augmented = labels + torch.where(is_gold, -missing, extra)
    with torch.no_grad():
        best = best_graph(heads, arcs, augmented, possible)
    worst = graph_score(heads, arcs, augmented, best) + missing * (gold >= 0).sum((1, 2))
    return (worst - graph_score(heads, arcs, labels, gold)).clamp(min=0)
