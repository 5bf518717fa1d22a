"""Beam search with GNMT's penalties against a plain loop over whole prefixes that scores as eq. 14 says."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from fairseq.search import DiverseBeamSearch
from torch import Tensor

from seqstruct.bridge.decoding import TranslationGenerator, coverage_penalty, length_penalty
from seqstruct.bridge.passes import collect_readings
from seqstruct.models.rnn_translation.model import RecurrentTranslationModel
from tests.models.building import dictionary_of, small_recurrent_model, sources_of

EOS, PAD, LONGEST = 2, 1, 5
DICTIONARY = dictionary_of("abcdefg")
SENTENCES = [[4, 7, 5, 9, 2], [10, 6, 2], [5, 5, 8, 4, 6, 2], [2]]


@pytest.fixture(scope="module", params=[("softmax", 18), ("local_monotonic(half_width=1)", 2)])
def model(request: Any) -> RecurrentTranslationModel:
    """In float64, so that scores are exact, and with hypotheses of many lengths that penalties reorder."""
    attention, seed = request.param
    built = small_recurrent_model(DICTIONARY, seed, initialization_bound=1.0, cross_attention=attention)
    with torch.no_grad():
        built.decoder.output_projection.bias.zero_()[EOS] = 2.0
    return built.double()


@torch.no_grad()
def logits_and_weights(model: Any, sentence: list[int], target: list[int]) -> tuple[Tensor, Tensor]:
    """T N and T S, teacher forced."""
    with collect_readings() as readings:
        logits = model(torch.tensor([sentence]), None, torch.tensor([[EOS, *target]]))[0][0]
    return logits, readings[0].reading.weights[0, 0]


def search(model: Any, sentence: list[int], beam: int, width: float) -> list[tuple[list[int], float]]:
    """Finished hypotheses and their log-probabilities."""
    going, finished = [([], 0.0)], []
    for step in range(LONGEST + 1):
        candidates = []
        for target, score in going:
            log_probs = logits_and_weights(model, sentence, target)[0][-1].log_softmax(0)
            log_probs[PAD] = -math.inf
            if step == 0:
                log_probs[EOS] = -math.inf
            if step == LONGEST:
                log_probs[torch.arange(len(log_probs)) != EOS] = -math.inf
            for symbol, log_p in enumerate(log_probs.tolist()):
                if log_p > -math.inf and (not width or log_p >= float(log_probs.max()) - width):
                    candidates.append(([*target, symbol], score + log_p))
        candidates = sorted(candidates, key=lambda c: -c[1])[: 2 * beam]
        finished += [c for c in candidates[:beam] if c[0][-1] == EOS][: beam - len(finished)]
        going = [c for c in candidates if c[0][-1] != EOS][:beam]
        if len(finished) == beam or not going:
            break
    return finished


def ranked(model: Any, sentence: list[int], beam: int, alpha: float, beta: float, width: float = 0.0) -> list:
    """Finished hypotheses and scores of eq. 14, best first."""
    found = []
    for target, log_p in search(model, sentence, beam, width):
        p = logits_and_weights(model, sentence, target[:-1])[1]  # T S
        tiny = torch.finfo(torch.float32).tiny
        cover = sum(math.log(min(max(float(p[:, i].sum()), tiny), 1.0)) for i in range(len(sentence)))
        found.append((target, log_p / ((5 + len(target)) ** alpha / (5 + 1) ** alpha) + beta * cover))
    found.sort(key=lambda f: -f[1])
    return [f for f in found if not width or f[1] >= found[0][1] - width]


@pytest.mark.parametrize("width", [0.0, 0.7, 2.0])
@pytest.mark.parametrize(("alpha", "beta"), [(0.0, 0.0), (0.7, 0.0), (0.2, 0.2), (1.0, 5.0)])
@pytest.mark.parametrize("beam", [1, 4])
def test_ranks_are_those_of_a_plain_search(model: Any, beam: int, alpha: float, beta: float, width: float) -> None:
    generator = TranslationGenerator(
        [model], DICTIONARY, (alpha, beta), width, beam_size=beam, max_len_b=LONGEST
    )
    for sentences in (SENTENCES, SENTENCES[1:2]):
        found = generator.generate([model], sources_of(sentences))
        for sentence, hypotheses in zip(sentences, found, strict=True):
            expected = ranked(model, sentence, beam, alpha, beta, width)
            assert [h["tokens"].tolist() for h in hypotheses] == [tokens for tokens, _ in expected]
            assert [float(h["score"]) for h in hypotheses] == pytest.approx([s for _, s in expected], rel=1e-5)


def test_penalties_change_the_order(model: Any) -> None:
    """Else the test above would not tell."""
    orders = [
        [[h[0] for h in ranked(model, sentence, 4, *penalties)] for sentence in SENTENCES]
        for penalties in ((0.0, 0.0), (1.0, 0.0), (0.0, 5.0))
    ]
    assert orders[0] != orders[1]
    assert orders[0] != orders[2]


def test_the_formulas() -> None:
    assert length_penalty(1, 0.6) == 1.0
    assert length_penalty(7, 0.6) == pytest.approx(2.0**0.6)
    attention = torch.tensor([[0.5, 0.25], [0.3, 0.0], [0.9, 0.9], [7.0, 7.0]])  # S T
    mask = torch.tensor([False, False, False, True])
    assert coverage_penalty(attention, mask, 0.2) == pytest.approx(0.2 * (math.log(0.75) + math.log(0.3)))
    assert coverage_penalty(attention[2:], mask[2:], 0.2) == 0.0
    assert math.isfinite(coverage_penalty(torch.zeros(2, 3), torch.zeros(2, dtype=torch.bool), 0.2))


def test_alignments_are_the_greatest_weights(model: Any) -> None:
    generator = TranslationGenerator([model], DICTIONARY, alignment="hard", beam_size=3, max_len_b=LONGEST)
    found = generator.generate([model], sources_of(SENTENCES))
    for sentence, hypotheses in zip(SENTENCES, found, strict=True):
        for hypothesis in hypotheses:
            target = hypothesis["tokens"].tolist()[:-1]
            weights = logits_and_weights(model, sentence, target)[1][: len(target), :-1]
            best = weights.argmax(1).tolist() if len(sentence) > 1 else []
            assert [tuple(map(int, pair)) for pair in hypothesis["alignment"]] == [(s, t) for t, s in enumerate(best)]


def test_what_does_not_fit(model: Any) -> None:
    for options in ({"penalties": (-0.1, 0.0)}, {"penalties": (0.1, -1.0)}, {"pruning": -3.0}, {"pruning": math.nan},
                    {"penalties": (math.inf, 0.0)}, {"penalties": (0.1, math.nan)}):
        with pytest.raises(ValueError, match="expected finite numbers, 0 or more"):
            TranslationGenerator([model], DICTIONARY, **options)
    with pytest.raises(ValueError, match="plain beam search"):
        TranslationGenerator([model], DICTIONARY, pruning=3.0, search_strategy=DiverseBeamSearch(DICTIONARY, 2, 0.5))


@pytest.mark.parametrize("options", [{"penalties": (0.0, 0.2)}, {"alignment": "hard"}])
def test_a_model_without_attention(options: dict[str, Any]) -> None:
    plain = small_recurrent_model(DICTIONARY, 1, cross_attention="none", output="plain")
    with pytest.raises(ValueError, match="needs a model with attention"):
        TranslationGenerator([plain], DICTIONARY, max_len_b=3, **options).generate([plain], sources_of(SENTENCES))
