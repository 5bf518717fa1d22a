"""Search over candidates finds what fairseq's own search over the vocabulary finds."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from fairseq.search import DiverseBeamSearch, Sampling
from fairseq.sequence_generator import EnsembleModel, SequenceGenerator
from torch import Tensor

from seqstruct.bridge.patches.beam_search import BLOCK, BeamSearchGenerator, CandidateModel, largest
from tests.models.building import (
    dictionary_of,
    small_language_model,
    small_recurrent_model,
    small_translation_model,
    sources_of,
)

DICTIONARY = dictionary_of("abcdefghijklmnopqrstuvwxyz")
SENTENCES = [[4, 7, 5, 9, 2], [10, 6, 2], [5, 5, 8, 4, 6, 29, 2], [2]]
OPTIONS = [
    {"beam_size": 1},
    {"beam_size": 3},
    {"beam_size": 4, "min_len": 3, "unk_penalty": -3.0, "len_penalty": 0.6},
    {"beam_size": 5, "normalize_scores": False, "temperature": 1.7},
    {"beam_size": 3, "no_repeat_ngram_size": 2},
    {"beam_size": 13},  # more candidates than symbols
    {"beam_size": 3, "eos": 9},
    {"beam_size": 3, "eos": 29},
]


recurrent = partial(small_recurrent_model, DICTIONARY)


def transformer(seed: int, mechanism: str) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = small_translation_model(DICTIONARY, cross_attention=mechanism)
    for parameter in model.parameters():
        parameter.data.mul_(2.0)
    return model.eval()


batch = partial(sources_of, SENTENCES)


def check(models: list[Any], prefix: Tensor | None = None, attentive: float = 1.0, **options: Any) -> None:
    """attentive: the share of the models that have attention; fairseq's is of all."""
    options = {"max_len_a": 0.0, "max_len_b": 9, **options}
    ours, theirs = (
        make(models, DICTIONARY, **options).generate(models, batch(), prefix_tokens=prefix)
        for make in (BeamSearchGenerator, SequenceGenerator)
    )
    for mine, other in zip(ours, theirs, strict=True):
        assert [h["tokens"].tolist() for h in mine] == [h["tokens"].tolist() for h in other]
        for h, g in zip(mine, other, strict=True):
            torch.testing.assert_close(h["score"], g["score"], rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(h["positional_scores"], g["positional_scores"], rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(h["attention"], g["attention"] / attentive, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_same_hypotheses_and_scores(seed: int, options: dict[str, Any]):
    check([recurrent(seed, cross_attention="luong")], **options)


@pytest.mark.parametrize("mechanism", ["softmax", "linear", "abc_mlp(slots=3)"])
def test_the_same_of_a_transformer(mechanism: str):
    check([transformer(4, mechanism)], beam_size=4)


@pytest.mark.parametrize("order", [(0, 2), (0, 1, 2), (1, 0)])
def test_the_same_of_an_ensemble(order: tuple[int, ...]):
    models = [recurrent(5, cross_attention="luong"), recurrent(6, cross_attention="none", output="plain"),
              transformer(4, "softmax")]
    check([models[i] for i in order], attentive=len({0, 2}.intersection(order)) / len(order), beam_size=4)


def test_the_same_behind_a_prefix():
    check([recurrent(7, cross_attention="luong")], torch.tensor([[5], [6], [7], [8]]), beam_size=3)


@pytest.mark.parametrize("search", [None, Sampling(DICTIONARY), Sampling(DICTIONARY, sampling_topp=0.9)])
def test_a_prefix_that_cannot_come_out_is_refused(search: Any):
    model = small_language_model(DICTIONARY, compact_vocabulary=True).eval()
    tokens = torch.tensor([[5, 1], [7, 3], [8, 9]])
    sample = {"net_input": {"src_tokens": tokens, "src_lengths": torch.tensor([1, 2, 2])}}
    generator = BeamSearchGenerator([model], DICTIONARY, beam_size=2, max_len_b=6, search_strategy=search)
    with pytest.raises(ValueError, match="a prefix has <unk>, which cannot come out"):
        generator.generate([model], sample, prefix_tokens=tokens)
    found = generator.generate([model], sample, prefix_tokens=tokens.masked_fill(tokens.eq(3), 6))
    assert [[h["tokens"][:2].tolist() for h in hypotheses] for hypotheses in found[1:]] == [[[7, 6]] * 2, [[8, 9]] * 2]


LIMITS = [{"max_len_a": 1.0, "max_len_b": 1}, {"max_len_a": 0.5, "max_len_b": 1.5}, {"match_source_len": True}]


def assert_same_alone(models: list[Any], sample: dict[str, Any], prefix: Tensor | None, **options: Any) -> list[int]:
    """That a batch finds what its sentences find one by one; the lengths of the best."""
    together = BeamSearchGenerator(models, DICTIONARY, **options).generate(models, sample, prefix_tokens=prefix)
    tokens = sample["net_input"]["src_tokens"]
    for row, hypotheses in enumerate(together):
        one = tokens[row, tokens[row].ne(DICTIONARY.pad())][None]
        first = None if prefix is None else prefix[row, prefix[row].ne(DICTIONARY.pad())][None]
        net_input = {"src_tokens": one, "src_lengths": torch.tensor([one.size(1)])}
        alone = BeamSearchGenerator(models, DICTIONARY, **options).generate(
            models, {"net_input": net_input}, prefix_tokens=first)[0]
        assert [h["tokens"].tolist() for h in hypotheses] == [h["tokens"].tolist() for h in alone]
        for mine, other in zip(hypotheses, alone, strict=True):
            torch.testing.assert_close(mine["score"], other["score"], rtol=1e-5, atol=1e-5)
    return [len(hypotheses[0]["tokens"]) for hypotheses in together]


@pytest.mark.parametrize("prefix", [None, [[5, 9, 6, 4], [6, 7, 8, 5], [7, 1, 1, 1], [4, 5, 1, 1]]], ids=["", "prefix"])
@pytest.mark.parametrize("beam", [1, 3, 13])
@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_a_sentence_ends_by_the_length_of_its_own_source(limits: dict[str, Any], beam: int, prefix: Any):
    models = [recurrent(7, cross_attention="luong"), transformer(4, "softmax")]
    for search in (None, DiverseBeamSearch(DICTIONARY, 1, 0.5)):
        given = None if prefix is None else torch.tensor(prefix)
        lengths = assert_same_alone(models, batch(), given, beam_size=beam, unk_penalty=9.0, search_strategy=search,
                                    **limits)
        assert len(set(lengths)) > 1


def test_a_least_length_above_the_limit_of_a_sentence_is_refused():
    models = [recurrent(7, cross_attention="luong")]
    generator = BeamSearchGenerator(models, DICTIONARY, beam_size=2, min_len=4, max_len_a=1.0, max_len_b=1)
    with pytest.raises(ValueError, match="min-len 4: a source of 1 tokens is translated by 2 at most"):
        generator.generate(models, batch())


def test_the_least_length_holds_beside_longer_prefixes():
    model = small_language_model(DICTIONARY).eval()
    with torch.no_grad():
        model.decoder.output_projection.weight[DICTIONARY.eos()] *= 30
    prefix = torch.tensor([[5, 1, 1, 1], [7, 8, 6, 4], [8, 9, 1, 1]])
    sample = {"net_input": {"src_tokens": prefix, "src_lengths": prefix.ne(1).sum(1)}}
    assert min(assert_same_alone([model], sample, prefix, beam_size=3, max_len_b=9, min_len=4)) > 4


def test_a_language_model_of_other_words_is_refused():
    model, other = recurrent(7, cross_attention="luong"), dictionary_of("zyxwvutsrqponmlkjihgfedcba")
    with pytest.raises(ValueError, match="--lm-path: expected a language model of the target dictionary"):
        BeamSearchGenerator([model], DICTIONARY, lm_model=small_language_model(other))
    check([model], beam_size=3, lm_model=small_language_model(DICTIONARY), lm_weight=0.4)


def test_other_searches_go_on_as_they_are():
    models = [recurrent(8, cross_attention="softmax")]
    check(models, beam_size=4, search_strategy=DiverseBeamSearch(DICTIONARY, 2, 0.5))


def test_two_batches_one_after_another():
    model = recurrent(9, cross_attention="luong")
    generator = BeamSearchGenerator([model], DICTIONARY, beam_size=3, max_len_b=9)
    first, again = (generator.generate([model], batch()) for _ in range(2))
    assert [[h["tokens"].tolist() for h in s] for s in first] == [[h["tokens"].tolist() for h in s] for s in again]
    assert generator.vocab_size == len(DICTIONARY)


def test_sources_stay_where_they_are():
    model = transformer(10, "linear")
    plain = CandidateModel([model])
    assert isinstance(plain, EnsembleModel)
    outputs = plain.forward_encoder(batch()["net_input"])
    outputs = plain.reorder_encoder_out(outputs, torch.arange(4).repeat_interleave(3))
    within = torch.tensor([2, 0, 0, 3, 5, 3, 8, 8, 8, 9, 10, 11])
    assert plain.reorder_encoder_out(outputs, within) is outputs
    without = torch.tensor([3, 3, 4, 6, 7, 8, 9, 10, 11])
    fewer = plain.reorder_encoder_out(outputs, without)
    expected = EnsembleModel([model]).reorder_encoder_out(outputs, without)
    torch.testing.assert_close(fewer[0]["encoder_out"][0], expected[0]["encoder_out"][0], rtol=0, atol=0)
    assert plain.reorder_encoder_out(fewer, torch.tensor([1, 1, 2, 3, 4, 3, 8, 7, 6])) is fewer
    assert plain.reorder_encoder_out(fewer, torch.tensor([1, 1, 3, 3, 4, 3, 8, 7, 6])) is not fewer


@pytest.mark.parametrize("size", [13, 4 * 3 * BLOCK - 1, 4 * 3 * BLOCK, 4 * 3 * BLOCK + 29])
@pytest.mark.parametrize("rows", [0, 1, 5])
def test_the_largest_of_long_rows(rows: int, size: int):
    x = torch.randn(rows, size, generator=torch.Generator().manual_seed(size))
    x[:, -2:] += 3.0
    x[:, 7] = -torch.inf
    best, places = largest(x, 3)
    assert torch.equal(best, x.topk(3, 1).values)
    assert torch.equal(x.gather(1, places), best)
    assert all(len(set(row)) == 3 for row in places.tolist())
