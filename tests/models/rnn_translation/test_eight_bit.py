"""8-bit matrices: the integers of the source, close results, and decoding through the front door."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from seqstruct.layers.recurrent import RecurrentLayer
from seqstruct.models.rnn_translation.eight_bit import EightBitLayer, EightBitLinear, quantize
from tests.models.building import dictionary_of, small_translation_model
from tests.models.front_door import fairseq
from tests.models.rnn_translation.test_model import VARIANTS, build, targets, tokens


def test_integers_are_those_of_the_source(generator: torch.Generator) -> None:
    weight = torch.randn(5, 7, generator=generator) * torch.tensor([1.0, 10.0, 0.1, 0.0, 3.0])[:, None]
    integers, bias = torch.ops.quantized.linear_unpack(EightBitLinear(weight, torch.ones(5)).packed)
    largest = weight.abs().amax(1, keepdim=True)
    expected = (weight / largest * 127).round().nan_to_num(0.0)
    assert torch.equal(integers.int_repr().float(), expected)
    torch.testing.assert_close(integers.dequantize(), (expected * largest / 127).nan_to_num(0.0))
    assert bias.tolist() == [1.0] * 5


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_a_layer_is_close_to_its_own_with_padding_and_by_steps(kind: str, generator: torch.Generator) -> None:
    layer = RecurrentLayer(kind, 13, 11).eval()
    eight = EightBitLayer(layer)
    inputs = torch.randn(4, 9, 13, generator=generator)
    mask = torch.zeros(4, 9, dtype=torch.bool)
    mask[1, :5] = mask[2] = True
    with torch.no_grad():
        found, last = eight(inputs, None, mask)
        expected, _ = layer(inputs, None, mask)
        assert (found - expected)[~mask].abs().max() < 0.05
        assert not found[2].any()
        step, state, known = eight.stepper(4), eight.initial_state(4), eight.known(inputs[..., :9])
        for t in range(9):
            state = step(known[:, t], inputs[:, t, 9:], state)
        unmasked, end = eight(inputs)
        torch.testing.assert_close(state.hidden, end.hidden, rtol=0, atol=0.05)
        assert eight(inputs[:, :0])[0].shape == (4, 0, 11)


@pytest.mark.parametrize("variant", list(VARIANTS))
def test_models_of_all_kinds(variant: str, generator: torch.Generator) -> None:
    model = build(**{**VARIANTS[variant], "initialization_bound": 0.3}).float()
    source, before = tokens(generator, 3, 7), targets(generator, 3, 5)
    with torch.no_grad():
        expected = model(source, None, before)[0].log_softmax(2)
        quantize(model)
        found = model(source, None, before)[0].log_softmax(2)
        quantize(model)
        torch.testing.assert_close(model(source, None, before)[0].log_softmax(2), found)
        state: dict[str, Any] = {}
        encoded = model.encoder(source)
        steps = [model.decoder(before[:, : t + 1], encoded, state)[0] for t in range(5)]
    assert not any(isinstance(module, RecurrentLayer) for module in model.modules())
    assert 0 < (found - expected).abs().max() < 0.1
    assert (torch.cat(steps, 1).log_softmax(2) - expected).abs().max() < 0.1


def test_what_cannot_be_quantized() -> None:
    with pytest.raises(ValueError, match="rnn_translation, not StructuredTransformerModel"):
        quantize(small_translation_model(dictionary_of("abc")))
    for model in (build().float().train(), build()):
        with pytest.raises(ValueError, match="for decoding, on a CPU and from 32-bit floats"):
            quantize(model)


@pytest.mark.training
def test_decoded_by_fairseq_generate(reversals: Path, tmp_path: Path) -> None:
    fairseq(
        "train", reversals / "bin", "--arch", "rnn_gnmt", "--embed-dim", 8, "--hidden-size", 8, "--encoder-layers", 3,
        "--decoder-layers", 3, "--optimizer", "adam", "--lr", 0.02, "--criterion", "cross_entropy", "--batch-size", 20,
        "--max-update", 8, "--cell-clip", 8, "--cell-clip-final", 1, "--cell-clip-updates", 8, "--logit-clip", 25,
        "--no-epoch-checkpoints", "--save-dir", tmp_path,
    )
    generate = [reversals / "bin", "--task", "translation_gnmt", "--path", tmp_path / "checkpoint_last.pt"]
    scores = []
    for options in ([], ["--eight-bit"]):
        printed = fairseq("generate", *generate, *options, "--score-reference", "--batch-size", 7)
        scores.append([float(s) for s in re.findall(r"^H-\d+\t(\S+)", printed, re.MULTILINE)])
    assert len(scores[0]) == len(scores[1]) == 60
    assert scores[0] != scores[1]
    assert scores[1] == pytest.approx(scores[0], abs=0.05)
    printed = fairseq(
        "generate", *generate, "--eight-bit", "--length-alpha", 0.6, "--coverage-beta", 0.4, "--beam-pruning", 3,
        "--max-len-b", 8,
    )
    assert len(re.findall(r"^H-\d+\t", printed, re.MULTILINE)) == 60
