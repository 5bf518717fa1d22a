"""Metrics that sacreBLEU does not have, in its own form, so that its corpus scores and tests between systems serve.

Each overrides what `sacrebleu.metrics.base.Metric` leaves to its metrics; nothing else here is called directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sacrebleu.metrics import BLEU
from sacrebleu.metrics.base import Metric, Score, Signature

from seqstruct.data.text.subwords import moses_tokenizer
from seqstruct.scoring.gleu import ngrams


class TokenizedBLEU(BLEU):
    """BLEU over the Moses tokens of both sides, without smoothing, as Moses' multi-bleu.perl counts it.

    language: two-letter code.  lowercase: the tokens are lowercased, after the text was tokenised in its own case.
    """

    def __init__(self, language: str, lowercase: bool = False):
        super().__init__(lowercase=lowercase, force=True, tokenize="none", smooth_method="none")
        self.moses = moses_tokenizer(language)
        self.tokenizer_signature = f"moses-{language}"

    def _preprocess_segment(self, sent: str) -> str:
        tokens = self.moses(sent.rstrip())
        return tokens.lower() if self.lowercase else tokens


class CaseSignature(Signature):
    """Case, and the tokeniser where there is one, beside what every signature has."""

    def __init__(self, args: dict):
        super().__init__(args)
        self.info["case"] = "lc" if args["lowercase"] else "mixed"
        if "tokenizer_signature" in args:
            self.info["tok"] = args["tokenizer_signature"]


class _OfCounts(Metric):
    """The corpus's statistics are the sums of its segments'."""

    _SIGNATURE_TYPE = CaseSignature

    def __init__(self, lowercase: bool = False):
        super().__init__()
        self.lowercase = lowercase

    def _aggregate_and_compute(self, stats: Sequence[Sequence[int]]) -> Score:
        return self._compute_score_from_stats([sum(column) for column in zip(*stats, strict=True)])


class ExactMatch(_OfCounts):
    """Share of the lines that are a reference word by word, times 100; spaces between words do not count."""

    def _preprocess_segment(self, sent: str) -> str:
        return " ".join((sent.lower() if self.lowercase else sent).split())

    def _extract_reference_info(self, refs: Sequence[str]) -> dict[str, Any]:
        return {"references": refs}

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict) -> list[int]:
        return [int(hypothesis in ref_kwargs["references"]), 1]

    def _compute_score_from_stats(self, stats: Sequence[int]) -> Score:
        return Score("exact match", 100 * stats[0] / stats[1])


class CorpusGLEU(_OfCounts):
    """Corpus GLEU times 100; of several references, the one with the greatest GLEU counts for its sentence.

    tokenize: sacreBLEU's name of a tokeniser.
    """

    def __init__(self, lowercase: bool = False, tokenize: str = "13a"):
        super().__init__(lowercase)
        self.tokenizer = BLEU(tokenize=tokenize).tokenizer
        self.tokenizer_signature = self.tokenizer.signature()

    def _preprocess_segment(self, sent: str) -> str:
        return self.tokenizer((sent.lower() if self.lowercase else sent).rstrip())

    def _extract_reference_info(self, refs: Sequence[str]) -> dict[str, Any]:
        return {"references": [ngrams(ref.split()) for ref in refs]}

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict) -> list[int]:
        ours = ngrams(hypothesis.split())
        found = [((ours & theirs).total(), max(ours.total(), theirs.total())) for theirs in ref_kwargs["references"]]
        return list(max(found, key=lambda pair: pair[0] / pair[1] if pair[1] else 1.0))

    def _compute_score_from_stats(self, stats: Sequence[int]) -> Score:
        return Score("GLEU", 100 * stats[0] / stats[1] if stats[1] else 100.0)
