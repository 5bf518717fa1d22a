"""Beam search as in GNMT (Wu et al. 2016, sec. 7), and word alignments from attention, on fairseq's generator.

Finished hypotheses Y of a source X are ranked by

    s(Y, X) = log P(Y | X) / lp(Y) + cp(X; Y)
    lp(Y) = (5 + |Y|)^alpha / (5 + 1)^alpha
    cp(X; Y) = beta sum_i log(min(sum_j p_ij, 1))                                              (eq. 14)

with p_ij the attention of target symbol j to source symbol i, and both ends of sentence among the symbols.  As in all
of fairseq's beam search, a sentence is finished when as many hypotheses have ended as the beam is wide; penalties enter
afterwards.  Deviation: an attention mass below the least normal float32 counts as that, so that a hypothesis of a model
which can leave words out altogether (a window, say) has a finite score.

Pruning by a width w, in nats: in each step a hypothesis goes on with symbols not more than w below its likeliest one,
and finished hypotheses more than w below the best one are left out; a sentence is finished when no hypothesis goes on.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from fairseq import utils
from torch import Tensor

from seqstruct.bridge.patches.beam_search import BeamSearchGenerator, CandidateSearch

LENGTH_OFFSET = 5


def length_penalty(length: int, alpha: float) -> float:
    """lp(Y) for |Y| = length, end of sentence included."""
    return ((LENGTH_OFFSET + length) / (LENGTH_OFFSET + 1)) ** alpha


def coverage_penalty(attention: Tensor, padding_mask: Tensor, beta: float) -> float:
    """cp(X; Y), 0 or less.  attention: S T; padding_mask: S bool, True = padding."""
    mass = attention[~padding_mask].float().sum(1).clamp(torch.finfo(torch.float32).tiny, 1.0)
    return beta * float(mass.log().sum())


class PrunedBeamSearch(CandidateSearch):
    """Beam search in which symbols more than `width` nats below a hypothesis's likeliest one are left out.

    alive: B bool, of the last step, whether a hypothesis of the sentence goes on.
    """

    def __init__(self, dictionary: Any, eos: int, width: float):
        super().__init__(dictionary, eos)
        self.width = width
        self.alive = torch.ones(0, dtype=torch.bool)

    def step(self, step: int, lprobs: Tensor, scores: Tensor, *rest: Any, **named: Any) -> tuple[Tensor, ...]:
        """fairseq's step over log-probabilities B K N of K hypotheses."""
        pruned = lprobs.masked_fill(lprobs < lprobs.amax(2, keepdim=True) - self.width, -math.inf)
        found = super().step(step, pruned, scores, *rest, **named)
        self.alive = (found[1].ne(self.eos) & found[0].ne(-math.inf)).any(1)
        return found


class TranslationGenerator(BeamSearchGenerator):
    """fairseq's generator with the penalties of the module's docstring, and alignments."""

    def __init__(
        self,
        models: Any,
        tgt_dict: Any,
        penalties: tuple[float, float] | None = None,
        pruning: float = 0.0,
        alignment: str | None = None,
        **options: Any,
    ):
        """penalties: alpha and beta, each 0 or more; None leaves fairseq's scores.  pruning: the width, 0 for none.

        alignment: "hard" or "soft", as --print-alignment has it; None for none.
        Raises ValueError on numbers below 0, NaN and infinity, and if pruning meets another search than plain beam's.
        """
        super().__init__(models, tgt_dict, **options)
        if not all(0 <= value < math.inf for value in (*(penalties or ()), pruning)):
            raise ValueError("penalties and pruning: expected finite numbers, 0 or more, got "
                             f"{penalties} and {pruning}")
        if pruning:
            if type(self.search) is not CandidateSearch:
                raise ValueError("pruning goes with plain beam search alone")
            self.search = PrunedBeamSearch(tgt_dict, self.eos, pruning)
        self.penalties, self.pruning, self.alignment = penalties, pruning, alignment

    def is_finished(self, step: int, unfin_idx: int, max_len: int, finalized_sent_len: int, beam_size: int) -> bool:
        """Also when pruning has left no hypothesis to go on."""
        done = super().is_finished(step, unfin_idx, max_len, finalized_sent_len, beam_size)
        return done or (bool(self.pruning) and not bool(self.search.alive[unfin_idx]))

    def _generate(self, sample: dict[str, Any], *rest: Any, **named: Any) -> list[list[dict[str, Any]]]:
        """Hypotheses of each sentence, best first.

        Raises ValueError if a coverage penalty or alignments are wanted of models without attention weights.
        """
        found = super()._generate(sample, *rest, **named)
        source = sample["net_input"]["src_tokens"]
        for row, hypotheses in enumerate(found):
            for hypothesis in hypotheses:
                if self.penalties is not None:
                    hypothesis["score"] = self._penalized(hypothesis, source[row])
                if self.alignment is not None:
                    hypothesis["alignment"] = self._aligned(hypothesis, source[row])
            if self.penalties is not None:
                hypotheses.sort(key=lambda hypothesis: -float(hypothesis["score"]))
            if self.pruning and hypotheses:
                least = float(hypotheses[0]["score"]) - self.pruning
                found[row] = [hypothesis for hypothesis in hypotheses if float(hypothesis["score"]) >= least]
        return found

    def _penalized(self, hypothesis: dict[str, Any], source: Tensor) -> Tensor:
        alpha, beta = self.penalties
        score = hypothesis["positional_scores"].sum() / length_penalty(len(hypothesis["tokens"]), alpha)
        if not beta:
            return score
        attention = self._attention(hypothesis, "a coverage penalty")
        return score + coverage_penalty(attention, source.eq(self.pad), beta)

    def _aligned(self, hypothesis: dict[str, Any], source: Tensor) -> Any:
        extract = utils.extract_soft_alignment if self.alignment == "soft" else utils.extract_hard_alignment
        attention = self._attention(hypothesis, "an alignment").t().cpu().clone()  # T S
        return extract(attention, source.cpu(), hypothesis["tokens"].cpu(), self.pad, self.eos)

    @staticmethod
    def _attention(hypothesis: dict[str, Any], what: str) -> Tensor:
        if not hypothesis["attention"].numel():
            raise ValueError(f"{what} needs a model with attention to the source")
        return hypothesis["attention"]  # S T
