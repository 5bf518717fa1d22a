"""`decomposable_attention`: natural language inference (Parikh et al. 2016) with attention inside each sentence, too.

Kim et al. (2017), section 4.4 and appendix A.5: word vectors, fixed, go through a linear layer to x_i; with attention
inside the sentence [x_i; c_i] takes their place, c_i what a mechanism of the encoder's self site reads for word i

    none                            Parikh et al. 2016
    simple(hidden_size=100)         a softmax over all words
    dependency(hidden_size=100)     the expected parent under a distribution over dependency trees
    hard_parents                    the parent in the tree of a parser, which came with the data

The mechanism's keys are word vectors of its own, which start from the same and are trained, its values the x_i; it is
shared by both sentences.  Then e_ij = f(x_i) f(y_j) and g as there, and softmax(V h([sum g; sum g]) + b).
Without word vectors in the data's folder they are drawn and trained.  The defaults are those of appendix A.5.
"""

from dataclasses import dataclass
from typing import Any, List, Optional, Tuple

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.models import BaseFairseqModel, register_model
from torch import Tensor, nn
from torch.nn.functional import dropout

from seqstruct.attention import Choice, Reading, Shape, Site, parse_choices
from seqstruct.bridge.options import flag
from seqstruct.data.nli.dataset import PADDING
from seqstruct.layers.recurrent import check_rate, check_sizes
from seqstruct.ops.softmax import masked_softmax

NONE = "none"
WITH_KEYS = ("simple", "dependency", "soft_children")


@dataclass
class DecomposableAttentionConfig(FairseqDataclass):
    """One flat set of options for the command line and YAML."""

    intra_attention: str = flag(
        NONE, "'none', or a mechanism of the encoder self site, e.g. 'dependency(hidden_size=100)'"
    )
    word_dim: int = flag(300, "size of word vectors, where the data's folder has none; 1 or more")
    hidden_size: int = flag(300, "units of the linear layer and all MLPs, 1 or more")
    dropout: float = flag(0.2, "probability before each layer of the MLPs, in [0, 1)")
    initialization_deviation: float = flag(0.01, "standard deviation of all initial parameters, > 0")
    pretrained_parser: Optional[str] = flag(
        None, "file of `python -m seqstruct.data.nli.parser_pretraining`: the mechanism starts from it"
    )


class MLP(nn.Module):
    """Two layers of ReLU units with dropout before each; works on the last axis."""

    def __init__(self, input_dim: int, hidden_size: int, dropout_probability: float):
        super().__init__()
        self.first = nn.Linear(input_dim, hidden_size)
        self.second = nn.Linear(hidden_size, hidden_size)
        self.dropout = dropout_probability

    def forward(self, x: Tensor) -> Tensor:
        """The same shape but for the last axis, which has hidden_size units."""
        for layer in (self.first, self.second):
            x = layer(dropout(x, self.dropout, self.training)).relu()
        return x


class IntraSentence(nn.Module):
    """A mechanism along the words of one sentence, with word vectors of its own as keys where it needs keys."""

    def __init__(self, choice: Choice, vocabulary: int, word_dim: int, value_dim: int):
        super().__init__()
        keyed = choice.name in WITH_KEYS
        self.words = nn.Embedding(vocabulary, word_dim, padding_idx=PADDING) if keyed else None
        key_dim = word_dim if keyed else value_dim
        self.mechanism = choice.build(Shape(value_dim, key_dim, value_dim, 1, 0.0, Site.ENCODER_SELF, False))

    def forward(
        self, tokens: Tensor, values: Tensor, padding_mask: Tensor, heads: Optional[Tensor], need_weights: bool = False
    ) -> Reading:
        """tokens B T long and values B T C; heads B T long or None."""
        keys = values if self.words is None else self.words(tokens)
        carry = heads if self.mechanism.carries else None
        reading, _ = self.mechanism(values, keys, values, padding_mask, need_weights=need_weights, carry=carry)
        return reading


@register_model("decomposable_attention", dataclass=DecomposableAttentionConfig)
class DecomposableAttentionModel(BaseFairseqModel):
    """B L logits of labels from word ids, as the task `nli` gives them."""

    made_for = ("nli",)

    def __init__(
        self, cfg: DecomposableAttentionConfig, vocabulary: int, labels: int, word_vectors: Optional[Tensor] = None
    ):
        """vocabulary: words without the padding.  labels: their number.  word_vectors: V word_dim, fixed, or None.

        Raises ValueError if a mechanism does not fit, or a size or probability is out of range.
        """
        super().__init__()
        choice = None
        if cfg.intra_attention != NONE:
            (choice,) = parse_choices(cfg.intra_attention, 1, Site.ENCODER_SELF)
        word_dim, hidden_size = cfg.word_dim if word_vectors is None else word_vectors.size(1), cfg.hidden_size
        check_sizes(word_dim=word_dim, hidden_size=hidden_size)
        check_rate("dropout", cfg.dropout)
        if cfg.initialization_deviation <= 0:
            raise ValueError(f"initialization_deviation: expected more than 0, got {cfg.initialization_deviation:g}")
        entries = vocabulary + 2  # padding in front, behind all a word that only a treebank has
        self.words = nn.Embedding(entries, word_dim, padding_idx=PADDING)
        self.project = nn.Linear(word_dim, hidden_size)
        self.intra = None if choice is None else IntraSentence(choice, entries, word_dim, hidden_size)
        width = hidden_size if choice is None else 2 * hidden_size
        self.attend = MLP(width, hidden_size, cfg.dropout)
        self.compare = MLP(2 * width, hidden_size, cfg.dropout)
        self.aggregate = MLP(2 * hidden_size, hidden_size, cfg.dropout)
        self.output = nn.Linear(hidden_size, labels)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=cfg.initialization_deviation)
        embeddings = [self.words, *([self.intra.words] if self.intra is not None and self.intra.words else [])]
        with torch.no_grad():
            for embedding in embeddings:
                if word_vectors is None:
                    nn.init.normal_(embedding.weight, std=word_dim**-0.5)
                else:
                    embedding.weight[1:-1] = word_vectors
                embedding.weight[PADDING] = 0.0
        self.words.weight.requires_grad_(word_vectors is None)

    @classmethod
    def build_model(cls, cfg: DecomposableAttentionConfig, task: Any) -> "DecomposableAttentionModel":
        """Raises ValueError for a mechanism that does not fit, a size out of range, or a parser file of other sizes."""
        model = cls(cfg, len(task.vocabulary), len(task.labels), task.word_vectors)
        if cfg.pretrained_parser is not None:
            model.load_parser(cfg.pretrained_parser)
        return model

    def load_parser(self, path: str) -> None:
        """Take over keys and scorer.  Raises ValueError if the model has none or they have other shapes."""
        if self.intra is None or self.intra.words is None:
            raise ValueError(f"pretrained_parser: {NONE} and hard_parents have no parser to pretrain")
        try:
            saved = torch.load(path, weights_only=True, map_location="cpu")
            own = self.intra.state_dict()
            unknown = sorted(saved.keys() - own.keys())
            if unknown or not saved:
                raise ValueError(f"it has {', '.join(unknown) or 'nothing'}")
            self.intra.load_state_dict({**own, **saved})
        except Exception as error:  # torch raises many kinds for a damaged file
            raise ValueError(f"pretrained_parser: {path}: not a parser of this model: {error}") from None

    def forward(self, premise: Tensor, hypothesis: Tensor, heads: Optional[Tuple[Tensor, Tensor]] = None) -> Tensor:
        """Logits B L; premise B T and hypothesis B S word ids, 0 = padding; heads as in CoNLL-U or None."""
        given = (None, None) if heads is None else heads
        x, y = (self._encode(*pair) for pair in zip((premise, hypothesis), given, strict=True))
        scores = self.attend(x) @ self.attend(y).transpose(1, 2)  # B T S
        x_mask, y_mask = premise == PADDING, hypothesis == PADDING
        for_x = masked_softmax(scores, y_mask.unsqueeze(1))
        for_y = masked_softmax(scores.transpose(1, 2), x_mask.unsqueeze(1))
        sums: List[Tensor] = []
        for own, other, weights, padding_mask in ((x, y, for_x, x_mask), (y, x, for_y, y_mask)):
            compared = self.compare(torch.cat([own, weights @ other], 2))
            sums.append(compared.masked_fill(padding_mask.unsqueeze(2), 0.0).sum(1))
        return self.output(self.aggregate(torch.cat(sums, 1)))

    def _encode(self, tokens: Tensor, heads: Optional[Tensor]) -> Tensor:
        """B T C."""
        x = self.project(self.words(tokens))
        if self.intra is not None:
            x = torch.cat([x, self.intra(tokens, x, tokens == PADDING, heads).output], 2)
        return x

    @torch.no_grad()
    def tree(self, tokens: Tensor, heads: Optional[Tensor] = None) -> Tensor:
        """The most probable head of each word in the best tree, B T long, from 1, 0 the root, -1 at padding.

        Call in evaluation mode.  Raises ValueError if the attention inside the sentence has no trees.
        """
        if self.intra is None:
            raise ValueError("the model has no attention inside sentences, so no trees")
        padding_mask = tokens == PADDING
        values = self.project(self.words(tokens))
        reading = self.intra(tokens, values, padding_mask, heads, need_weights=True)
        if "heads" not in reading.extra:
            raise ValueError("the attention inside sentences has no trees")
        return reading.extra["heads"]
