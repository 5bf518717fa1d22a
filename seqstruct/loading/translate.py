"""Translation models of text."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from seqstruct.loading.base import BATCH, Text, TextModel, as_list, check_length
from seqstruct.loading.search import best
from seqstruct.scoring.forced import ForcedScorer
from seqstruct.scoring.parsers import batches


class Translating(TextModel):
    """An encoder-decoder: source text in, target text out."""

    name, abilities = "translation model", ("translate", "score")

    @classmethod
    def fits(cls, model: Any, task: Any) -> bool:
        """An encoder and a decoder, with dictionaries of both sides."""
        from fairseq.models import FairseqEncoderDecoderModel

        return isinstance(model, FairseqEncoderDecoderModel) and task.target_dictionary is not None

    @cached_property
    def _scorer(self) -> ForcedScorer:
        return ForcedScorer([self.model], self.task, device=self.device)

    def translate(
        self, sentences: Text, beam: int = 5, *, batch_size: int = BATCH, seed: int = 1, **options: Any
    ) -> Any:
        texts, alone = as_list(sentences)
        sources = [
            self._ids(self.source.encode(text), self.task.source_dictionary, self._scorer.limits[0], f"sentence {n}")
            for n, text in enumerate(texts, 1)
        ]
        found = best(self, sources, beam, batch_size, seed, options)
        translations = [self.target.decode(symbols) for symbols in found]
        return translations[0] if alone else translations

    def score(self, texts: Text, translations: Text | None = None, *, batch_size: int = BATCH) -> Any:
        (sources, alone), (targets, _) = as_list(texts), as_list([] if translations is None else translations)
        if translations is None or len(sources) != len(targets):
            got = "none" if translations is None else str(len(targets))
            raise ValueError(f"expected a translation of each of {len(sources)} sentences, got {got}")
        scorer, pairs = self._scorer, []
        for number, pair in enumerate(zip(sources, targets, strict=True), 1):
            tokens = self.source.encode(pair[0]), self.target.encode(pair[1])
            for side, symbols, limit in zip(("sentence", "translation"), tokens, scorer.limits, strict=True):
                check_length(len(symbols) + 1, limit, f"{side} {number}")
            pairs.append(scorer.encode(*map(" ".join, tokens)))
        scored = {}
        for chosen in batches([len(pair.source) for pair in pairs], batch_size):
            together = [pairs[index] for index in chosen]
            longest = max(max(len(pair.source), len(pair.target)) for pair in together)
            found = scorer.log_probabilities(together, len(together) * longest)
            scored |= dict(zip(chosen, found, strict=True))
        return scored[0] if alone else [scored[index] for index in range(len(pairs))]
