"""`palm`: parser and language model (Peng 2022, chapter 3): AWD-LSTM that attends over the spans before each word.

The hidden state h_t of a layer, which has read the word t, attends over the spans that end at word t - 1, of at most m
words (section 3.2.1); what it reads enters the next layer through a gated residual (eq. D.1).  Before the first word
there is no span, and the reading is 0.  Where the thesis is silent: the scores' MLP has one tanh layer of the size of a
span's representation, and D.1's MLP is one tanh layer.  Spans reach back across sentences and across segments: of the
hidden states before a segment, m are carried.

    palm              PaLM-U, and PaLM-S with --span-supervision of the criterion `regularized_cross_entropy`
    right_branching   PaLM-RB: a span's score is its number of words, so that the longest has the highest (note 11)
    attention_layer   the layer that attends: 2 of 3 in the thesis, 3 as in note 9
"""

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

import torch
from fairseq.models import register_model
from torch import Tensor, nn
from torch.nn import functional as F

from seqstruct.bridge.options import flag
from seqstruct.layers.recurrent import RecurrentLayer, RecurrentStack, check_sizes
from seqstruct.models.language_models.awd_lstm import (
    AWDLSTMConfig,
    AWDLSTMLanguageModel,
    Regularization,
    RegularizedDecoder,
)
from seqstruct.models.presets import preset
from seqstruct.ops.automata import backward_spans, forward_spans, span_mask
from seqstruct.ops.trees import Split, split_by_span_scores


@dataclass
class PaLMConfig(AWDLSTMConfig):
    """Options of AWD-LSTM, with the values of Table D.1, and those of the spans."""

    hidden_size: int = flag(1020, "size of all layers but the last, 1 or more")
    hidden_dropout: float = flag(0.2, "variational, between layers; 0 <= p < 1")
    weight_dropout: float = flag(0.45, "of recurrent weights; 0 <= p < 1")
    span_size: int = flag(200, "size of a rational RNN; a span's representation is of twice that, 1 or more")
    max_span: int = flag(20, "words of the longest span attended to, 1 or more")
    attention_layer: int = flag(2, "the layer, from 1, after which spans are attended to")
    right_branching: bool = flag(False, "fixed scores, the number of words of a span (PaLM-RB)")


class SpanAttention(nn.Module):
    """Attention over the spans before each word.

    Linear layers start as torch's do; the rational RNNs' gates have a bias, from 0, and their inputs none, as in
    appendix E.4.  The scores are a scalar for each span, before the softmax.
    """

    def __init__(self, size: int, span_size: int, max_span: int, right_branching: bool):
        """Raises ValueError on numbers below 1."""
        super().__init__()
        check_sizes(span_size=span_size, max_span=max_span)
        self.max_span, self.right_branching = max_span, right_branching
        reading = 2 * span_size
        self.forward_layer = nn.Linear(size, reading, bias=False)
        self.backward_layer = nn.Linear(size, reading, bias=False)
        self.gate_bias = nn.Parameter(torch.zeros(2, span_size))
        if not right_branching:
            self.score_hidden = nn.Linear(size, reading)
            self.score_span = nn.Linear(reading, reading, bias=False)
            self.score_layer = nn.Linear(reading, 1, bias=False)
        self.combine_layer = nn.Linear(size + reading, size)
        self.gate_layer = nn.Linear(size + reading, size)

    def forward(
        self, hidden: Tensor, context: Tensor, padding_mask: Tensor, max_span: Optional[int] = None
    ) -> Tuple[Tensor, Tensor, Tensor]:
        """What goes on to the next layer, B T C; scores, B T m; which spans there are, B T m bool.

        hidden: B T C; context: B S C, the hidden states before, S of 1 or more; padding_mask: B S, True where there was
        none.  The span l at step t ends at the word before t and has l + 1 words.  max_span: m if not the model's own.
        O(B (S + T) m) time and memory.
        """
        spans, there = self.spans(hidden, context, padding_mask, self.max_span if max_span is None else max_span)
        scores = self.scores(hidden, spans)
        weights = scores.masked_fill(~there, torch.finfo(scores.dtype).min).log_softmax(2).exp() * there
        reading = (weights.unsqueeze(2) @ spans).squeeze(2)  # B T 2d
        both = torch.cat([hidden, reading], 2)
        gate, combined = self.gate_layer(both).sigmoid(), self.combine_layer(both).tanh()
        one = hidden.dtype  # which autocast does not see to
        return torch.lerp(hidden, combined.to(one), gate.to(one)), scores, there

    def spans(self, hidden: Tensor, context: Tensor, padding_mask: Tensor, max_span: int) -> Tuple[Tensor, Tensor]:
        """Representations B T m 2d of the spans that end before each step, and which of them there are, B T m."""
        words = torch.cat([context, hidden], 1)[:, :-1]
        first = context.size(1) - 1
        gate, update = self.forward_layer(words).chunk(2, 2)
        onward = forward_spans(gate + self.gate_bias[0], update.tanh(), max_span, first)
        gate, update = self.backward_layer(words).chunk(2, 2)
        back = backward_spans(gate + self.gate_bias[1], update.tanh(), max_span, first)
        there = span_mask(F.pad(padding_mask, (0, hidden.size(1) - 1), value=False), max_span, first)
        return torch.cat([onward, back], 3), there

    def scores(self, hidden: Tensor, spans: Tensor) -> Tensor:
        """B T m."""
        if self.right_branching:
            lengths = torch.arange(1, spans.size(2) + 1, device=spans.device, dtype=spans.dtype)
            return lengths.expand(spans.shape[:3])
        return self.score_layer((self.score_hidden(hidden).unsqueeze(2) + self.score_span(spans)).tanh()).squeeze(3)


class PaLMStack(RecurrentStack):
    """LSTM layers of which one is followed by span attention."""

    def __init__(self, layers: List[nn.Module], hidden_dropout: float, attention: SpanAttention, attention_layer: int):
        super().__init__(layers, hidden_dropout=hidden_dropout)
        self.layers[attention_layer - 1] = AttendingLayer(layers[attention_layer - 1], attention)
        self.attention_layer = attention_layer

    def forward(self, inputs: Tensor, state: Tuple[Any, ...]) -> Tuple[Tensor, Tuple[Any, ...], Dict[str, Any]]:
        """As of `RecurrentStack`; the extra output has span_scores and span_mask, B T m each."""
        hidden, state, extra = super().forward(inputs, state)
        layer = self.attention_layer - 1
        return hidden, state, {name: extra[f"{layer}.{name}"] for name in ("span_scores", "span_mask")}


class AttendingLayer(nn.Module):
    """A recurrent layer and span attention over its hidden states."""

    def __init__(self, layer: nn.Module, attention: SpanAttention):
        super().__init__()
        self.layer, self.attention = layer, attention

    def initial_state(self, batch_size: int) -> Tuple[Any, ...]:
        """The layer's, and no words before: hidden states B m D, zeros, all padding (B m)."""
        inner = self.layer.initial_state(batch_size)
        m = self.attention.max_span
        context = inner[0].new_zeros(batch_size, m, self.layer.hidden_size)
        return inner, context, torch.ones(batch_size, m, dtype=torch.bool, device=context.device)

    def forward(self, inputs: Tensor, state: Tuple[Any, ...]) -> Tuple[Tensor, Tuple[Any, ...], Dict[str, Tensor]]:
        """Hidden states B T D after the attention, the state after the last step, and scores and mask of the spans."""
        inner, context, padding_mask = state
        hidden, inner = self.layer(inputs, inner)
        attended, scores, there = self.attention(hidden, context, padding_mask)
        m = context.size(1)
        after = torch.cat([context, hidden], 1)[:, -m:]
        padding_mask = F.pad(padding_mask, (0, hidden.size(1)), value=False)[:, -m:]
        return attended, (inner, after, padding_mask), {"span_scores": scores, "span_mask": there}


class PaLMDecoder(RegularizedDecoder):
    """With scores of spans as extra output, and trees from them."""

    def span_scores(self, tokens: Tensor) -> Tensor:
        """Scores N N of the spans [i, j] of a sentence of N words, whatever their length (note 13).

        tokens: N ids, without EOS, which is read before and after the sentence.  0 where i > j.
        """
        N = len(tokens)
        words = F.pad(tokens, (1, 1), value=self.dictionary.eos()).unsqueeze(0)
        vectors = self.embed(words)
        stack = self.rnn
        for number, layer in enumerate(stack.layers):
            state = layer.initial_state(1)
            if number == stack.attention_layer - 1:
                hidden, _ = layer.layer(vectors, state[0])
                break
            vectors, _ = layer(vectors, state)
        nothing = hidden.new_zeros(1, 1, hidden.size(2)), hidden.new_ones(1, 1, dtype=torch.bool)
        _, scores, _ = layer.attention(hidden, *nothing, max_span=max(N, 1))
        square = scores.new_zeros(N, N)
        for j in range(N):  # read at the step after word j; l = 0 is the word alone
            square[: j + 1, j] = scores[0, j + 2, : j + 1].flip(0)
        return square

    def splits(self, tokens: Tensor, add_left: bool = False) -> List[Split]:
        """The tree over the words of a sentence: N ids, without EOS; add_left as of `split_by_span_scores`."""
        return split_by_span_scores(self.span_scores(tokens), add_left)


@register_model("palm", dataclass=PaLMConfig)
class PaLM(AWDLSTMLanguageModel):
    """A language model on `PaLMDecoder`."""

    @staticmethod
    def build_decoder(cfg: Any, dictionary: Any, rates: Regularization, sizes: list) -> PaLMDecoder:
        if not 1 <= cfg.attention_layer <= len(sizes):
            raise ValueError(f"attention_layer: expected 1 to {len(sizes)}, got {cfg.attention_layer}")
        attention = SpanAttention(sizes[cfg.attention_layer - 1][1], cfg.span_size, cfg.max_span, cfg.right_branching)
        layers = [RecurrentLayer("lstm", *size, weight_dropout=rates.weight) for size in sizes]
        rnn = PaLMStack(layers, rates.hidden, attention, cfg.attention_layer)
        return PaLMDecoder(dictionary, rnn, cfg.decoder_embed_dim, rates)


preset("palm", "palm_right_branching", "PaLM-RB: a span's score is its number of words.",
       right_branching=True)
preset("palm", "palm_wikitext2",
       "WikiText-2 (appendix D.1): spans of at most 10 words, the rest as of Merity et al. 2018.",
       max_span=10, hidden_size=1150, input_dropout=0.65, hidden_dropout=0.2, weight_dropout=0.5)
