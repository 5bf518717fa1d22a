"""Diverse beam search by places in the batch; references scored by models with and without attention, and aligned."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fairseq.search import DiverseBeamSearch
from fairseq.sequence_scorer import SequenceScorer

from seqstruct.bridge.patches.beam_search import BeamSearchGenerator
from tests.bridge.patches.test_beam_search import DICTIONARY, batch, recurrent, transformer

ATTENTIVE = {"cross_attention": "luong"}
INATTENTIVE = {"cross_attention": "none", "output": "plain"}


def test_groups_are_compared_whatever_the_numbers_of_sentences(generator: torch.Generator) -> None:
    lprobs = [torch.randn(2, 4, 9, generator=generator).log_softmax(-1) for _ in range(3)]
    lprobs.append(lprobs[2][1:])  # the first sentence is finished
    found = []
    for numbers in ([0, 1], [57, 3]):
        search, numbers = DiverseBeamSearch(DICTIONARY, 2, 0.7), torch.tensor(numbers)
        scores = [search.step(t, lp, torch.zeros(len(lp), 4, t), None, numbers[-len(lp) :])
                  for t, lp in enumerate(lprobs)]
        found.append([part for step in scores for part in step])
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


def test_ngrams_do_not_come_again() -> None:
    models = [recurrent(3, **ATTENTIVE)]

    def ngrams(length: int, blocked: int, **options: Any) -> list[list[tuple[int, ...]]]:
        generator = BeamSearchGenerator(models, DICTIONARY, beam_size=3, max_len_b=20, min_len=20,
                                        no_repeat_ngram_size=blocked)
        found = [h["tokens"].tolist() for hypotheses in generator.generate(models, batch(), **options)
                 for h in hypotheses]
        assert len(found) == 12
        return [list(zip(*(tokens[i:] for i in range(length)), strict=False)) for tokens in found]

    for length in (1, 2, 3):
        assert not all(len(set(found)) == len(found) for found in ngrams(length, 0))
        assert all(len(set(found)) == len(found) for found in ngrams(length, length))
    prefix = torch.tensor([[5, 9, 5, 9]] * 4)
    assert all(found[:4] == [(5,), (9,), (5,), (9,)] for found in ngrams(1, 2, prefix_tokens=prefix))


def scored(models: list[Any], aligned: Any = False) -> list[dict[str, Any]]:
    sample = batch()
    target = torch.tensor([[5, 9, 2], [6, 2, 1], [7, 2, 1], [4, 8, 2]])
    sample["net_input"]["prev_output_tokens"] = torch.cat([torch.full((4, 1), 2), target[:, :-1]], 1)
    return [row[0] for row in SequenceScorer(DICTIONARY, compute_alignment=aligned).generate(
        models, {**sample, "target": target})]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_ensembles_in_which_some_models_have_no_attention_score(order: tuple[int, ...]) -> None:
    models = [transformer(1, "softmax"), recurrent(2, **INATTENTIVE), transformer(3, "linear")]
    alone = [scored([model]) for model in models]
    for row, hypothesis in enumerate(scored([models[i] for i in order])):
        expected = torch.stack([found[row]["positional_scores"].exp() for found in alone]).mean(0).log()
        torch.testing.assert_close(hypothesis["positional_scores"], expected, rtol=1e-5, atol=1e-5)


def test_references_are_aligned_by_the_weights_of_decoding() -> None:
    model = recurrent(2, **ATTENTIVE)
    found = scored([model], "hard")
    assert [[place for _, place in h["alignment"]] for h in found] == [[0, 1], [0], [0], []]
    net_input, state = batch()["net_input"], {}
    encoded = model.encoder(net_input["src_tokens"])
    weights = torch.cat([model.decoder(torch.tensor([[2, 5, 9]] * 4)[:, :t], encoded, state)[1]["attn"][0]
                         for t in (1, 2, 3)], 1)
    words = weights[0, :2].masked_fill(net_input["src_tokens"][0] < 4, -1).argmax(1) - 2  # after the padding
    assert [word for word, _ in found[0]["alignment"]] == words.tolist()


def test_what_cannot_be_aligned() -> None:
    with pytest.raises(ValueError, match="an alignment needs a model with attention to the source"):
        scored([recurrent(2, **INATTENTIVE)], "hard")
    with pytest.raises(ValueError, match="--score-reference goes with --print-alignment hard, not soft"):
        scored([recurrent(2, **ATTENTIVE)], "soft")
