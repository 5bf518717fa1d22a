"""fairseq's beam search without work that its choices do not need; what it finds is the same.

* Of each hypothesis only the symbols that can be chosen go on: the special ones, and as many of the likeliest others
  as candidates are drawn in all.  Upstream checks, adds up and searches the whole vocabulary of all hypotheses.
* Hypotheses of one sentence read the same source, so a new order of hypotheses within sentences leaves alone what
  depends on the source only: encoder outputs, and the memories of cross attention.

The first applies to plain beam search without prefixes, forbidden symbols or n-grams or a language model beside; others
are searched as upstream does.  Candidates of exactly equal score may come in another order.  What differs:

* What a sentence becomes does not depend on those beside it: a limit that a source's length sets (--max-len-a,
  --match-source-len) is of that source, where upstream takes the longest of the batch, and the least length holds from
  a sentence's own prefix on.
* The attention of an ensemble in which some models have none: upstream divides that of the others by the number of all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from fairseq.search import BeamSearch, Sampling
from fairseq.sequence_generator import EnsembleModel, SequenceGenerator
from torch import Tensor

from seqstruct.bridge.passes import passing

BLOCK = 64
LEAST = -80.0  # a log-probability whose exponential is still a number above 0 in float32


@dataclass
class Candidates:
    """What the model tells the search: special symbols 0 .. special-1, and `count` others, 0 for the whole vocabulary.

    symbols: rows K long, the vocabulary's indices of the columns of the last scores; None if they are the vocabulary.
    """

    special: int
    count: int = 0
    symbols: Tensor | None = None


class CandidateSearch(BeamSearch):
    """Beam search over the columns that the model chose.  eos: what ends a hypothesis."""

    def __init__(self, dictionary: Any, eos: int):
        super().__init__(dictionary)
        self.eos = eos
        special = 1 + max(dictionary.bos(), dictionary.pad(), dictionary.eos(), dictionary.unk(), eos)
        self.candidates = Candidates(special)

    def step(self, step: int, lprobs: Tensor, *rest: Any, **named: Any) -> tuple[Tensor, ...]:
        """fairseq's step over log-probabilities B K N; the symbols are those of the vocabulary."""
        scores, columns, beams = super().step(step, lprobs, *rest, **named)
        if self.candidates.symbols is None:
            return scores, columns, beams
        batch, hypotheses, width = lprobs.shape
        symbols = self.candidates.symbols.view(batch, hypotheses * width)
        return scores, symbols.gather(1, beams * width + columns), beams


class CandidateModel(EnsembleModel):
    """One model or an ensemble, which scores candidates only, and moves sources only where it has to.

    owners: rows, the sentence of the batch that each row of the encoder's output belongs to; None before they are
    repeated for the beam.
    limits: of each sentence of the batch, symbols before its end, which is `eos`; None where all have one limit.
    """

    def __init__(self, models: Any):
        super().__init__(models)
        self.candidates: Candidates | None = None
        self.owners: Tensor | None = None
        self.limits: Tensor | None = None
        self.eos: int | None = None
        self.alone = [] if self.models_size == 1 else [EnsembleModel([model]) for model in models]
        for model in self.alone:
            model.has_incremental = self.has_incremental

    def forward_encoder(self, net_input: dict[str, Tensor]) -> Any:
        self.owners = None
        return super().forward_encoder(net_input)

    def forward_decoder(
        self, tokens: Tensor, encoder_outs: Any, incremental_states: Any, temperature: float = 1.0
    ) -> tuple[Tensor, Tensor | None]:
        """Log-probabilities rows K of the candidates or rows N of the vocabulary, and attention rows S or None."""
        scores, attention = self._scored(tokens, encoder_outs, incremental_states, temperature)
        ending = self.ending(tokens.size(1) - 1)
        if ending is not None and bool(ending.any()):
            symbols = torch.arange(scores.size(1), device=scores.device)
            scores = scores.masked_fill(ending[:, None] & symbols.ne(self.eos), -torch.inf)
        if self.candidates is None or not self.candidates.count:
            return scores, attention
        special, others = scores.split([self.candidates.special, scores.size(1) - self.candidates.special], 1)
        best, symbols = largest(others, self.candidates.count)
        first = torch.arange(self.candidates.special, device=scores.device).expand(len(scores), -1)
        self.candidates.symbols = torch.cat([first, symbols + self.candidates.special], 1)
        return torch.cat([special, best], 1), attention

    def _scored(
        self, tokens: Tensor, encoder_outs: Any, incremental_states: Any, temperature: float
    ) -> tuple[Tensor, Tensor | None]:
        """fairseq's, but attention is the mean over the models that have some, so that it still sums to 1."""
        if self.models_size == 1:
            return super().forward_decoder(tokens, encoder_outs, incremental_states, temperature)
        sources = encoder_outs or [None] * self.models_size
        found = [model.forward_decoder(tokens, [source], [state], temperature)
                 for model, source, state in zip(self.alone, sources, incremental_states, strict=True)]
        scores = torch.stack([scores for scores, _ in found]).logsumexp(0) - math.log(self.models_size)
        attentions = [attention for _, attention in found if attention is not None]
        return scores, torch.stack(attentions).mean(0) if attentions else None

    def ending(self, step: int) -> Tensor | None:
        """Whether nothing but the end may come at a step, rows bool; None where there are no limits of sentences."""
        return None if self.limits is None else self.limits[self.owners] <= step

    def reorder_encoder_out(self, encoder_outs: Any, new_order: Tensor) -> Any:
        """Rows new_order of the encoders' outputs, the very same where no row changes its sentence."""
        if self._in_place(new_order):
            return encoder_outs
        self.owners = new_order if self.owners is None else self.owners[new_order]
        return super().reorder_encoder_out(encoder_outs, new_order)

    def reorder_incremental_state(self, incremental_states: Any, new_order: Tensor) -> None:
        with passing(sources_in_place=self._in_place(new_order)):
            super().reorder_incremental_state(incremental_states, new_order)

    def _in_place(self, new_order: Tensor) -> bool:
        owners = self.owners
        return owners is not None and len(owners) == len(new_order) and torch.equal(owners[new_order], owners)


def largest(x: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The greatest `count` entries of each row of x, rows N, in falling order, and where they are.

    In long rows only the blocks are searched that have the greatest entries of all blocks: `count` of them hold enough.
    """
    blocks = x.size(1) // BLOCK
    if blocks < 4 * count:
        return x.topk(count, 1)
    whole, rest = x.split([blocks * BLOCK, x.size(1) - blocks * BLOCK], 1)
    whole = whole.unflatten(1, (blocks, BLOCK))
    chosen = whole.amax(2).topk(count, 1).indices  # rows count
    inside = whole.gather(1, chosen.unsqueeze(2).expand(-1, -1, BLOCK)).flatten(1)
    best, places = torch.cat([inside, rest], 1).topk(count, 1)
    block = torch.div(places, BLOCK, rounding_mode="floor")
    start = chosen.gather(1, block.clamp(max=count - 1)) * BLOCK + places % BLOCK
    beyond = places - count * BLOCK + blocks * BLOCK
    return best, torch.where(places < count * BLOCK, start, beyond)


class BeamSearchGenerator(SequenceGenerator):
    """fairseq's generator over candidates."""

    def __init__(self, models: Any, tgt_dict: Any, **options: Any):
        """Raises ValueError if a language model beside (`lm_model`) has another dictionary."""
        super().__init__(CandidateModel(models), tgt_dict, **options)
        if self.lm_model is not None and self.lm_model.decoder.dictionary.symbols != tgt_dict.symbols:
            raise ValueError("--lm-path: expected a language model of the target dictionary; dict.txt beside the data "
                             "is another one")
        if type(self.search) is BeamSearch:
            self.search = CandidateSearch(tgt_dict, self.eos)

    def _prefix_tokens(
        self, step: int, lprobs: Tensor, scores: Tensor, tokens: Tensor, prefix_tokens: Tensor, beam_size: int
    ) -> tuple[Tensor, ...]:
        """fairseq's; a token of the prefix, which alone is left to draw, has a probability above 0 however unlikely.

        Raises ValueError on one that the model does not have at its output.
        """
        ending = self.model.ending(step)
        if ending is not None:
            prefix_tokens = prefix_tokens.masked_fill(ending[::beam_size, None], self.pad)
        lprobs, *others = super()._prefix_tokens(step, lprobs, scores, tokens, prefix_tokens, beam_size)
        given = prefix_tokens[:, step]
        if step < self.min_len:
            lprobs[given.eq(self.pad).repeat_interleave(beam_size), self.eos] = -torch.inf
        there = lprobs[::beam_size].gather(1, given[:, None])[:, 0]  # of first hypotheses, which have the prefix
        missing = given[given.ne(self.pad) & there.eq(-torch.inf)]
        if len(missing):
            raise ValueError(f"a prefix has {self.tgt_dict[int(missing[0])]}, which cannot come out")
        if isinstance(self.search, Sampling):
            lprobs = lprobs.clamp(min=LEAST).where(lprobs.gt(-torch.inf), lprobs)
        return lprobs, *others

    def is_finished(self, step: int, unfin_idx: int, max_len: int, *rest: Any) -> bool:
        """Also at the limit of the sentence's own source."""
        ending = self.model.ending(step)
        ended = ending is not None and bool(ending[unfin_idx * self.beam_size])
        return super().is_finished(step, unfin_idx, step if ended else max_len, *rest)

    def _limits(self, net_input: dict[str, Tensor]) -> Tensor | None:
        """Of each sentence, B long, from its tokens, end included; None where lengths of sources set no limit.

        Raises ValueError if one is below the least length.
        """
        tokens = net_input.get("src_tokens")
        if not (self.max_len_a or self.match_source_len) or tokens is None or tokens.dim() != 2:
            return None
        lengths = tokens.ne(self.pad).sum(1)
        limits = lengths
        if not self.match_source_len:
            limits = (self.max_len_a * lengths.double() + self.max_len_b).long().clamp(max=self.max_len - 1)
        if len(limits) and int(limits.min()) < self.min_len:
            raise ValueError(f"--min-len {self.min_len}: a source of {int(lengths.min())} tokens is translated by "
                             f"{int(limits.min())} at most (--max-len-a, --max-len-b, --match-source-len)")
        return limits

    def _generate(
        self, sample: dict[str, Any], prefix_tokens: Tensor | None = None, constraints: Tensor | None = None,
        *rest: Any, **named: Any,
    ) -> list[list[dict[str, Any]]]:
        """Raises ValueError if the search wants constraints and there are none."""
        obstacles = (prefix_tokens, constraints, self.lm_model, self.repeat_ngram_blocker,
                     self.token_indices_to_suppress)
        if constraints is None and self.search.supports_constraints:
            raise ValueError("--constraints needs words for each sentence, which fairseq-interactive alone reads")
        self.model.limits, self.model.eos = self._limits(sample["net_input"]), self.eos
        whole = self.vocab_size
        if isinstance(self.search, CandidateSearch) and all(obstacle is None for obstacle in obstacles):
            candidates = self.search.candidates
            width = candidates.special + 2 * self.beam_size
            if width < whole:
                self.model.candidates, candidates.count, self.vocab_size = candidates, 2 * self.beam_size, width
        try:
            return super()._generate(sample, prefix_tokens, constraints, *rest, **named)
        finally:
            self.vocab_size = whole
            self.model.candidates = self.model.limits = None
            if isinstance(self.search, CandidateSearch):
                self.search.candidates.symbols = None
