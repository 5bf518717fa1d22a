"""Recurrent language models: tied weights, presets, carried state, causality."""

from __future__ import annotations

import argparse

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY

from seqstruct.bridge.passes import CarriedState
from seqstruct.layers.rational import CELLS
from seqstruct.models.language_models.recurrent_lm import RecurrentLanguageModel, RecurrentLanguageModelConfig
from tests.models.building import dictionary_of, task_of
from tests.randomised import randomised

WORDS = dictionary_of([f"w{i}" for i in range(9)])


def small(cell, generator, **options):
    config = RecurrentLanguageModelConfig(cell=cell, hidden_size=7, **options)
    return randomised(RecurrentLanguageModel.build_model(config, task_of(WORDS)).double().eval(), generator, 1.0)


def tokens_of(generator):
    return torch.randint(4, len(WORDS), (3, 11), generator=generator)


@pytest.mark.parametrize("cell", CELLS)
def test_segments_with_carried_state_equal_one_pass(cell, generator):
    model, tokens, carried = small(cell, generator), tokens_of(generator), CarriedState()
    parts = [model(part, carried=carried)[0] for part in tokens.split([5, 1, 3, 2], 1)]
    torch.testing.assert_close(torch.cat(parts, 1), model(tokens)[0])
    assert not torch.equal(model(tokens[:, :5], carried=carried)[0], parts[0]), "the state is carried on"


def test_output_weights_are_the_word_vectors(generator):
    model, tokens = small("F", generator), tokens_of(generator)
    features, _ = model.decoder.extract_features(tokens)
    expected = features @ model.decoder.embed_tokens.weight.T + model.decoder.output_bias
    torch.testing.assert_close(model(tokens)[0], expected)
    torch.testing.assert_close(model(tokens, features_only=True)[0], features)
    sizes = [p.shape for p in model.parameters() if p.dim() == 2 and p.size(0) == len(WORDS)]
    assert sizes == [torch.Size([len(WORDS), 7])], "one table for both"


def test_output_gates_can_be_left_out(generator):
    with_gate, without = (small("C", generator, no_output_gate=flag) for flag in (False, True))
    counts = [sum(p.numel() for p in model.decoder.rnn.parameters()) for model in (with_gate, without)]
    assert counts[0] - counts[1] == 2 * (7 * 7 + 7)


@pytest.mark.parametrize("cell", CELLS)
def test_unit_vectors_change_the_first_layers_input_weights_alone(cell):
    parameters = []
    for unit in (False, True):
        config = RecurrentLanguageModelConfig(cell=cell, hidden_size=7, unit_vectors=unit)
        with torch.random.fork_rng():
            torch.manual_seed(3)
            parameters.append(dict(RecurrentLanguageModel.build_model(config, task_of(WORDS)).named_parameters()))
    (name,) = (name for name, value in parameters[0].items() if not torch.equal(value, parameters[1][name]))
    assert name.startswith("decoder.rnn.layers.0.weight")
    torch.testing.assert_close(parameters[1][name], 7**0.5 * parameters[0][name])


@pytest.mark.parametrize(
    "preset, layers, budget", [("recurrent_lm_10m", 2, 10_000_000), ("recurrent_lm_24m", 3, 24_000_000)]
)
def test_presets(preset, layers, budget):
    given = argparse.Namespace(dropout=0.1)
    ARCH_CONFIG_REGISTRY[preset](given)
    assert (given.decoder_layers, given.parameter_budget, given.dropout) == (layers, budget, 0.1)


def test_wrong_options():
    with pytest.raises(ValueError, match="dropout: expected 0 or more and below 1, got 1.0"):
        RecurrentLanguageModel.build_model(RecurrentLanguageModelConfig(hidden_size=3, dropout=1.0), task_of(WORDS))
    with pytest.raises(ValueError, match="a budget of 10 parameters is too small"):
        RecurrentLanguageModel.build_model(RecurrentLanguageModelConfig(parameter_budget=10), task_of(WORDS))
