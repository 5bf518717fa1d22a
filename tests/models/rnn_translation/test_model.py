"""`rnn_translation`: against plain loops of its papers' equations, in decoding, under padding, and through fairseq."""

from __future__ import annotations

import argparse
import logging
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_NAME_REGISTRY
from torch import Tensor, gru_cell, lstm_cell
from torch.nn.functional import linear

from seqstruct.bridge.checkpoints import load_checkpoint
from seqstruct.bridge.passes import collect_readings
from seqstruct.layers.recurrent import RecurrentLayer
from seqstruct.models.rnn_translation.model import RecurrentTranslationModel
from tests.models.building import assert_same_by_steps, dictionary_of, small_recurrent_model
from tests.models.front_door import fairseq

VARIANTS: dict[str, dict[str, Any]] = {
    "structured": {"cross_attention": "segmentation"},
    "sigmoid": {"cross_attention": "sigmoid(bias=-1.0)"},
    "heads": {"attention_heads": 2},
    "input_feeding": {"input_feeding": True, "decoder_layers": 3, "encoder_layers": 3, "residual_from": 2},
    "fed_gru": {"input_feeding": True, "cell": "gru", "source_summary": True, "output": "maxout"},
    "sutskever": {"cross_attention": "none", "output": "plain", "reverse_source": True},
    "cho": {
        "cell": "gru", "cross_attention": "none", "source_summary": True, "initial_state": "projected",
        "output": "maxout", "encoder_layers": 1, "decoder_layers": 1,
    },
    "grconv": {
        "encoder": "gated_convolution", "cell": "gru", "cross_attention": "none", "source_summary": True,
        "initial_state": "projected", "output": "maxout",
    },
    "local": {"cross_attention": "local_monotonic(half_width=1)", "input_feeding": True},
    "rnnsearch": {
        "cell": "gru", "cross_attention": "additive(size=5)", "attention_query": "previous",
        "encoder_directions": "all", "encoder_layers": 1, "decoder_layers": 1, "initial_state": "projected",
        "output": "maxout",
    },
    "clipped_rnnsearch": {
        "cross_attention": "additive(size=5)", "attention_query": "previous", "encoder_layers": 1, "decoder_layers": 1,
        "initial_state": "projected", "output": "maxout", "cell_clip": 0.3,
    },
    "gnmt": {
        "attention_query": "previous", "encoder_layers": 4, "decoder_layers": 4, "residual_from": 3,
        "encoder_directions": "first", "initial_state": "zero", "output": "plain",
    },
    "clipped": {"input_feeding": True, "residual_from": 2, "cell_clip": 0.4, "logit_clip": 3.0},
    "clipped_gnmt": {
        "attention_query": "previous", "encoder_layers": 4, "decoder_layers": 4, "residual_from": 3,
        "encoder_directions": "first", "initial_state": "zero", "output": "plain", "cell_clip": 0.9,
    },
}
ALL = pytest.mark.parametrize("variant", list(VARIANTS))


def build(**options: Any) -> RecurrentTranslationModel:
    """A model of awkward sizes, in float64, in evaluation mode, with large weights."""
    return small_recurrent_model(dictionary_of("abcdefg"), 5, **{"maxout_size": 5, **options}).double()


def tokens(generator: torch.Generator, batch: int, length: int) -> Tensor:
    """Source sentences that end with EOS."""
    drawn = torch.randint(4, 11, (batch, length), generator=generator)
    drawn[:, -1] = 2
    return drawn


def targets(generator: torch.Generator, batch: int, length: int) -> Tensor:
    """Target prefixes that begin with EOS."""
    return tokens(generator, batch, length).flip(1)


@ALL
def test_step_by_step_with_reordering(variant: str, generator: torch.Generator) -> None:
    source, before = tokens(generator, 5, 7), targets(generator, 5, 6)
    source[1, :3] = 1
    orders = {1: [3, 0, 0, 4, 1], 4: [2, 0, 1]}
    assert_same_by_steps(build(**VARIANTS[variant]), before, source, orders=orders, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("variant", ["structured", "input_feeding", "fed_gru", "rnnsearch", "clipped"])
def test_steppers_are_made_once_until_a_weight_changes(
    variant: str, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, made = build(**VARIANTS[variant]), []
    make = RecurrentLayer.stepper
    monkeypatch.setattr(RecurrentLayer, "stepper", lambda layer, late: (made.append(layer), make(layer, late))[1])
    source, before, state = tokens(generator, 3, 7), targets(generator, 3, 6), {}
    with torch.no_grad():
        encoded, layers = model.encoder(source), len(model.decoder.layers)
        made.clear()
        for t in range(4):
            model.decoder(before[:, : t + 1], encoded, state)
            model.decoder.reorder_incremental_state(state, torch.tensor([0, 1, 2] if t % 2 else [0, 2, 1]))
            before = before if t % 2 else before[[0, 2, 1]]
            encoded = encoded if t % 2 else model.encoder.reorder_encoder_out(encoded, torch.tensor([0, 2, 1]))
        assert len(made) == layers
        for layer in model.decoder.layers:
            layer.weight_ih.mul_(0.5)
            layer.weight_hh.mul_(-0.5)
        anew = {key: {"state": value["state"], "steppers": model.decoder._steppers()} for key, value in state.items()}
        found, expected = (model.decoder(before[:, :5], encoded, given)[0] for given in (state, anew))
    assert torch.equal(found, expected)
    assert len(made) == 3 * layers


@ALL
def test_padding_is_invisible(variant: str, generator: torch.Generator) -> None:
    model = build(**VARIANTS[variant])
    source, before = tokens(generator, 3, 7), targets(generator, 3, 5)
    left, right = source.clone(), source.clone()
    left[1, :3] = 1
    right[1, 4:] = 1
    right[1, 3] = 2
    for padded, own in ((left, left[1:2, 3:]), (right, right[1:2, :4])):
        found = model(padded, None, before)[0]
        torch.testing.assert_close(found[1:2], model(own, None, before[1:2])[0], rtol=1e-9, atol=1e-10)
        torch.testing.assert_close(found[[0, 2]], model(source, None, before)[0][[0, 2]], rtol=1e-9, atol=1e-10)


@ALL
def test_the_future_is_invisible_and_all_parameters_learn(variant: str, generator: torch.Generator) -> None:
    model = build(**VARIANTS[variant])
    source, before = tokens(generator, 3, 6), targets(generator, 3, 6)
    changed = before.clone()
    changed[:, 4:] = 4 + (changed[:, 4:] - 3) % 7
    one, two = (model(source, None, x)[0] for x in (before, changed))
    torch.testing.assert_close(one[:, :4], two[:, :4], rtol=0, atol=1e-13)
    assert (one - two)[:, 4:].abs().amax((0, 2)).min() > 1e-6
    one.square().sum().backward()
    silent = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert all(name.endswith("k_proj.bias") for name in silent), silent  # the softmax does not see that bias


def encode_alone(model: RecurrentTranslationModel, sentence: Tensor, size: int, backwards: bool = False) -> Tensor:
    """Hidden states 1 S h of one GRU layer, by torch's own cell."""
    encoder = model.encoder
    layer = encoder.backward_layers["0"] if backwards else encoder.forward_layers[0]
    embedded = encoder.embed_tokens(sentence)
    hidden, states = torch.zeros(1, size, dtype=torch.float64), []
    for x in (embedded.flip(1) if backwards else embedded).unbind(1):
        hidden = gru_cell(x, hidden, layer.weight_ih, layer.weight_hh, layer.bias, layer.hidden_bias())
        states.append(hidden)
    return torch.stack(states[::-1] if backwards else states, 1)


def test_rnnsearch_is_bahdanaus(generator: torch.Generator) -> None:
    """Context from the state before a step; the context, the state before and the symbol before give the output."""
    model = build(**VARIANTS["rnnsearch"])
    sentence, before, decoder = tokens(generator, 1, 5), targets(generator, 1, 4), model.decoder
    forwards, backwards = encode_alone(model, sentence, 8), encode_alone(model, sentence, 8, backwards=True)
    memory = torch.cat([forwards, backwards], 2)
    state = linear(backwards[:, 0], decoder.initial.weight, decoder.initial.bias).tanh()
    layer, logits = decoder.layers[0], []
    for symbol in before[0]:
        embedded = decoder.embed_tokens(symbol[None])
        context = decoder.attention(state[:, None], memory, memory)[0].output[:, 0]
        pairs = decoder.output.combination(torch.cat([context, state, embedded], 1))
        logits.append(decoder.output_projection(torch.maximum(pairs[:, ::2], pairs[:, 1::2])))
        x = torch.cat([embedded, context], 1)
        state = gru_cell(x, state, layer.weight_ih, layer.weight_hh, layer.bias, layer.hidden_bias())
    torch.testing.assert_close(model(sentence, None, before)[0], torch.stack(logits, 1), rtol=1e-9, atol=1e-10)


def test_the_rnn_encoder_decoder_is_chos(generator: torch.Generator) -> None:
    model = build(**VARIANTS["cho"])
    sentence, before, decoder = tokens(generator, 1, 5), targets(generator, 1, 4), model.decoder
    summary = decoder.summary(encode_alone(model, sentence, 8)[:, -1]).tanh()
    state, layer, logits = decoder.initial(summary).tanh(), decoder.layers[0], []
    for symbol in before[0]:
        embedded = decoder.embed_tokens(symbol[None])
        x = torch.cat([embedded, summary], 1)
        state = gru_cell(x, state, layer.weight_ih, layer.weight_hh, layer.bias, layer.hidden_bias())
        pairs = decoder.output.combination(torch.cat([summary, state, embedded], 1))
        logits.append(decoder.output_projection(torch.maximum(pairs[:, ::2], pairs[:, 1::2])))
    torch.testing.assert_close(model(sentence, None, before)[0], torch.stack(logits, 1), rtol=1e-9, atol=1e-10)


def test_input_feeding_is_luongs(generator: torch.Generator) -> None:
    model = build(input_feeding=True, encoder_layers=2, decoder_layers=2)
    sentence, before, decoder = tokens(generator, 1, 5), targets(generator, 1, 4), model.decoder
    encoded = model.encoder(sentence)
    halves = [part.chunk(2, 1) for part in encoded.state]
    states, logits = list(zip(*halves, strict=True)), []
    features = torch.zeros(1, 8, dtype=torch.float64)
    for symbol in before[0]:
        x = torch.cat([decoder.embed_tokens(symbol[None]), features], 1)
        for i, layer in enumerate(decoder.layers):
            zeros = torch.zeros_like(layer.bias)
            states[i] = lstm_cell(x, states[i], layer.weight_ih, layer.weight_hh, layer.bias, zeros)
            x = states[i][0]
        context = decoder.attention(x[:, None], encoded.memory, encoded.memory)[0].output[:, 0]
        features = linear(torch.cat([context, x], 1), decoder.output.combination.weight).tanh()
        logits.append(decoder.output_projection(features))
    torch.testing.assert_close(model(sentence, None, before)[0], torch.stack(logits, 1), rtol=1e-9, atol=1e-10)


def test_a_reversed_source(generator: torch.Generator) -> None:
    """The words of the source from the last to the first, then its end."""
    model, plain = build(**VARIANTS["sutskever"]), build(**{**VARIANTS["sutskever"], "reverse_source": False})
    sentence, before = tokens(generator, 2, 6), targets(generator, 2, 4)
    turned = torch.cat([sentence[:, :-1].flip(1), sentence[:, -1:]], 1)
    torch.testing.assert_close(model(sentence, None, before)[0], plain(turned, None, before)[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("variant", ["structured", "input_feeding", "rnnsearch"])
def test_weights_come_out(variant: str, generator: torch.Generator) -> None:
    """In decoding, and for whoever collects readings; real source positions have them all."""
    model = build(**VARIANTS[variant])
    source, before = tokens(generator, 2, 6), targets(generator, 2, 4)
    source[1, :2] = 1
    with torch.no_grad(), collect_readings() as readings:
        model(source, None, before)
    (found,) = readings
    assert found.reading.weights.shape == (2, 1, 4, 6)
    assert not found.reading.weights[1, :, :, :2].any()
    total = 2.0 if variant == "structured" else 1.0
    assert (found.reading.weights.sum(-1) - total).abs().max() < 1e-9
    state: dict[str, Any] = {}
    encoded = model.encoder(source)
    for t in range(4):
        attention = model.decoder(before[:, : t + 1], encoded, state)[1]["attn"][0]
        torch.testing.assert_close(attention, found.reading.weights.mean(1)[:, t : t + 1], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(("options", "message"), [
    ({"cross_attention": "heap"}, "no attention is called 'heap'"),
    ({"cross_attention": "none", "input_feeding": True}, "need an attention"),
    ({"input_feeding": True, "attention_query": "previous"}, "input feeding goes with the query 'current'"),
    ({"encoder_layers": 1}, "'copy' needs an encoder of one direction and as many layers"),
    ({"encoder_directions": "all"}, "'copy' needs an encoder of one direction"),
    ({"encoder_layers": 0}, "1 or more encoder layers, got 0"),
    ({"residual_from": 1}, "begin at layer 2"),
    ({"encoder_directions": "all", "initial_state": "zero", "residual_from": 1}, "from size 6 to size 16"),
    ({"output": "maxout", "maxout_size": 0}, "maxout size of 1 or more, got 0"),
    ({"initialization_bound": 0.0}, "is positive, not 0"),
    ({"attention_heads": 3}, "8 is not a multiple of 3 heads"),
    ({"cell_clip": -1.0}, "expected bounds above 0, got -1.0"),
    ({"cell_clip_final": 1.0}, "expected bounds above 0, got 0.0"),
    ({"cell_clip": 8.0, "cell_clip_final": 1.0}, "go together, got 1.0 and 0"),
    ({"cell_clip": 8.0, "cell": "gru"}, "cells of an lstm, not of a gru"),
    ({"logit_clip": -1.0}, "logit_clip: expected 0 or more"),
    ({**VARIANTS["grconv"], "reverse_source": True}, "gated_convolution: expected no --reverse-source"),
    ({**VARIANTS["grconv"], "encoder_directions": "all"}, "and no --encoder-directions"),
    ({**VARIANTS["grconv"], "encoder_layers": 3}, "expected no --encoder-layers, it has none, got 3"),
    ({**VARIANTS["grconv"], "hidden_size": 0}, "hidden_size: expected 1 or more, got 0"),
    ({"dropout": 1.0}, "dropout: expected 0 or more and below 1, got 1.0"),
    ({"embed_dim": 8, "residual_from": -1}, "begin at layer 2"),
    ({"residual_from": 3}, "--residual-from: expected a layer up to the last, 2, got 3"),
    ({**VARIANTS["grconv"], "decoder_layers": 2, "encoder_layers": 4, "residual_from": 3}, "up to the last, 2, got 3"),
])
def test_options_that_do_not_fit(options: dict[str, Any], message: str) -> None:
    if options == {"residual_from": 1}:
        options = {**options, "embed_dim": 8}
    with pytest.raises(ValueError, match=re.escape(message)):
        build(**options)


PRESETS = [name for name, model in ARCH_MODEL_NAME_REGISTRY.items() if model == "rnn_translation" != name]


@pytest.mark.parametrize("name", PRESETS)
def test_presets_build_and_decode(name: str, generator: torch.Generator) -> None:
    options = argparse.Namespace()
    ARCH_CONFIG_REGISTRY[name](options)
    model = build(**{**vars(options), "embed_dim": 8, "hidden_size": 8, "maxout_size": 3})
    source, before = tokens(generator, 2, 5), targets(generator, 2, 4)
    assert_same_by_steps(model, before, source, rtol=1e-9, atol=1e-10)


def test_the_soft_tree(generator: torch.Generator) -> None:
    encoder = build(**VARIANTS["grconv"]).encoder
    gates = encoder.soft_tree(tokens(generator, 1, 6)[0])
    assert [level.shape for level in gates] == [(5, 3), (4, 3), (3, 3), (2, 3), (1, 3)]
    for level in gates:
        torch.testing.assert_close(level.sum(1), torch.ones(len(level), dtype=level.dtype))
    assert encoder.soft_tree(torch.tensor([2])) == []


def test_orthogonal_initialization() -> None:
    model = build(initialization="orthogonal", initialization_bound=0.01)
    for layer in (*model.encoder.forward_layers, *model.decoder.layers):
        for gate in layer.weight_hh.split(8):
            torch.testing.assert_close(gate @ gate.t(), torch.eye(8, dtype=gate.dtype), rtol=0, atol=1e-5)
        assert not layer.bias.any()
        assert layer.weight_ih.abs().max() < 0.06
    pyramid = build(**VARIANTS["grconv"], initialization="orthogonal", initialization_bound=0.01).encoder
    for side in (pyramid.weight[:8], pyramid.weight[8:16]):
        torch.testing.assert_close(side @ side.t(), 0.16 * torch.eye(8, dtype=side.dtype), rtol=0, atol=1e-5)
    assert pyramid.weight[16:].abs().max() < 0.06 and not pyramid.bias.any()


def test_segmentation_by_scaled_products_is_refused() -> None:
    """Rather than started anew from its initial values, with a warning, as another mechanism is."""
    state = dict(build(cross_attention="softmax").state_dict())
    build(cross_attention="segmentation").upgrade_state_dict(dict(state))
    state["decoder.attention.pairwise"] = torch.zeros(1, 2, 2)
    with pytest.raises(ValueError, match="checkpoint's segmentation scores by scaled products"):
        build(cross_attention="segmentation").upgrade_state_dict(state)


def train(data: Path, save: Path, *options: object) -> list[float]:
    """Train by fairseq-train; the validation losses of the epochs."""
    log = fairseq(
        "train", data, "--arch", "rnn_structured_attention", "--embed-dim", 16, "--hidden-size", 16, "--dropout", 0.0,
        "--optimizer", "adam", "--lr", 0.02, "--criterion", "structured_cross_entropy", "--batch-size", 20,
        "--max-epoch", 6, "--no-epoch-checkpoints", "--save-dir", save, *options,
    )
    return [float(x) for x in re.findall(r"valid on 'valid' subset.*?\| loss ([\d.]+)", log)]


@pytest.mark.training
def test_trained_generated_and_given_another_attention(
    reversals: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = reversals / "bin"
    plan = "segmentation(pairwise=False, normalize=False)"
    losses = train(data, tmp_path / "sigmoid", "--cross-attention", plan, "--input-feeding")
    assert len(losses) == 6 and losses[-1] < 0.95 * losses[0]
    best = tmp_path / "sigmoid" / "checkpoint_best.pt"
    text = fairseq("generate", data, "--path", best, "--beam", 3, "--batch-size", 7, "--max-len-b", 9,
                   "--print-alignment", "hard")
    assert len(re.findall(r"^H-\d+\t", text, re.MULTILINE)) == 60
    sources = dict(re.findall(r"^S-(\d+)\t(.*)$", text, re.MULTILINE))
    aligned = re.findall(r"^A-(\d+)\t(\d+)-0", text, re.MULTILINE)
    assert len(aligned) == 60 and all(int(place) <= len(sources[i].split()) for i, place in aligned)
    with caplog.at_level(logging.WARNING):
        again = train(data, tmp_path / "structured", "--cross-attention", "segmentation(normalize=False)",
                      "--input-feeding", "--finetune-from-model", best)
    assert "initial values for decoder.attention.pairwise" in caplog.text
    assert again[0] < losses[0]
    assert "decoder.attention.pairwise" in load_checkpoint(tmp_path / "structured" / "checkpoint_last.pt")["model"]
