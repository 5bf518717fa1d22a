"""`stack_lstm_lm` against the released models (Stack Attention, appendix D), in decoding, and through fairseq."""

from __future__ import annotations

import argparse
import math
import re
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY
from torch import Tensor
from torch.nn.functional import cross_entropy

from seqstruct.bridge.checkpoints import load_checkpoint
from seqstruct.data.cfl.folder import StringsRequest, write_folder
from seqstruct.models.language_models import stack_lstm_lm
from seqstruct.models.language_models.stack_lstm_lm import StackLSTMLanguageModel, StackLSTMLanguageModelConfig
from seqstruct.ops.pushdown import PushdownTape
from tests.models.building import assert_same_by_steps, cfl_dictionary, task_of
from tests.models.front_door import fairseq

PRESETS = {"LSTM": "lstm", "LSTM_Sup": "sup", "LSTM_Nd": "nd"}
STACKS = [
    "none",
    "superposition_stack(size=4, sigmoid=True)",
    "superposition_stack(size=3)",
    "nondeterministic_stack(states=2, symbols=2, size=3)",
    "nondeterministic_stack(states=1, symbols=3, size=2, sigmoid=True)",
]


def build(dictionary: Any, **options: Any) -> StackLSTMLanguageModel:
    return StackLSTMLanguageModel.build_model(StackLSTMLanguageModelConfig(**options), task_of(dictionary))


def published(kind: str) -> StackLSTMLanguageModel:
    """A model of the experiments on the hardest CFL, through its preset."""
    options = argparse.Namespace()
    if kind == "LSTM_Nd":
        options.stack = stack_lstm_lm.NONDETERMINISTIC.replace("states=2", "states=3")
    ARCH_CONFIG_REGISTRY[f"stack_lstm_lm_{PRESETS[kind]}"](options)
    return build(cfl_dictionary("hardest-cfl"), **vars(options))


def random_tokens(dictionary: Any, batch: int, length: int, generator: torch.Generator) -> Tensor:
    """BOS and strings B (1 + length)."""
    tokens = torch.randint(dictionary.nspecial, len(dictionary), (batch, length + 1), generator=generator)
    tokens[:, 0] = dictionary.bos()
    return tokens


def own_name(name: str) -> str:
    """Ours for a parameter of the reference's."""
    ends = {
        "rnn.weight_ih_l0": "lstm.weight_ih",
        "rnn.weight_hh_l0": "lstm.weight_hh",
        "rnn.bias_ih_l0": "lstm.bias",
        "bottom_vector": "lstm.stack.bottom",
    }
    for end, own in ends.items():
        if name.endswith(end):
            return f"decoder.{own}"
    kind = name.rsplit(".", 1)[1]
    if name.startswith("second."):
        return f"decoder.output_projection.{kind}"
    layer = "action_layer" if "action_layer" in name or "operation_layer" in name else "pushed_layer"
    return f"decoder.lstm.stack.{layer}.{kind}"


@pytest.mark.parametrize("kind", list(PRESETS))
def test_logits_and_gradients(kind: str, golden: Callable[[str, str], Path]) -> None:
    arrays = dict(np.load(golden("stack", f"model_{kind}_hardest-cfl.npz")))
    values, gradients = (
        {own_name(n[len(which) :]): torch.from_numpy(x).double() for n, x in arrays.items() if n.startswith(which)}
        for which in ("param.", "grad.")
    )
    dictionary = cfl_dictionary("hardest-cfl")
    model = published(kind).double().eval()
    assert set(values) == {name for name, _ in model.named_parameters()}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(values[name])
    tokens = torch.from_numpy(arrays["tokens"]) + dictionary.nspecial
    tokens = torch.cat([torch.full((len(tokens), 1), dictionary.bos()), tokens], 1)
    logits = model(tokens)[0]
    order = [*range(dictionary.nspecial, len(dictionary)), dictionary.eos()]
    own = logits[..., order]
    torch.testing.assert_close(own, torch.from_numpy(arrays["logits"]), rtol=1e-10, atol=1e-10)
    others = [i for i in range(len(dictionary)) if i not in order]
    assert torch.isneginf(logits[..., others]).all()
    nll = cross_entropy(own.transpose(1, 2), torch.from_numpy(arrays["target"]), reduction="none")
    torch.testing.assert_close(nll, torch.from_numpy(arrays["nll"]), rtol=1e-10, atol=1e-10)
    (nll.sum() / len(nll)).backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(
            parameter.grad, gradients[name], rtol=1e-5, atol=2e-6, msg=lambda message, name=name: f"{name}: {message}"
        )


@pytest.mark.parametrize("stack", STACKS)
def test_step_by_step_with_reordering(stack: str, generator: torch.Generator) -> None:
    dictionary = cfl_dictionary("dyck")
    model = build(dictionary, hidden_size=7, stack=stack, initialization_bound=1.0).eval()
    orders = {1: [3, 0, 0, 4, 1], 4: [2, 0, 1], 9: [2, 0, 1]}
    assert_same_by_steps(model, random_tokens(dictionary, 5, 12, generator), orders=orders, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("stack", STACKS)
def test_a_prefix_at_once(stack: str, generator: torch.Generator) -> None:
    dictionary = cfl_dictionary("dyck")
    model = build(dictionary, hidden_size=7, stack=stack).eval()
    tokens = random_tokens(dictionary, 2, 6, generator)
    state: dict[str, Any] = {}
    with torch.no_grad():
        parts = [model.decoder(tokens[:, :t], incremental_state=state)[0] for t in (3, 7)]
    torch.testing.assert_close(torch.cat(parts, 1), model(tokens)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("stack", STACKS)
def test_the_future_and_the_padding_are_invisible(stack: str, generator: torch.Generator) -> None:
    dictionary = cfl_dictionary("hardest-cfl")
    model = build(dictionary, hidden_size=5, stack=stack, initialization_bound=1.0).eval()
    tokens = random_tokens(dictionary, 3, 8, generator)
    padded = torch.cat([tokens[:, :5], torch.full((3, 4), dictionary.pad())], 1)
    first, second = model(tokens)[0], model(padded)[0]
    torch.testing.assert_close(first[:, :5], second[:, :5], rtol=1e-6, atol=1e-6)
    assert (first - second)[:, 5:, dictionary.eos()].abs().min() > 0
    bias = torch.full((len(dictionary),), -math.inf)
    bias[dictionary.nspecial :] = model.decoder.output_projection.bias[:-1].detach()
    bias[dictionary.eos()] = model.decoder.output_projection.bias[-1].detach()
    torch.testing.assert_close(first[:, 0], bias.expand(3, -1), rtol=0, atol=0)


@pytest.mark.parametrize("stack", STACKS[1:])
@pytest.mark.parametrize("spread", [1.0, 50.0, 100.0])
def test_all_steps_at_once_equal_step_by_step(stack: str, spread: float, generator: torch.Generator) -> None:
    """The bias of the actions has the given spread; gradients of all parameters included."""
    dictionary = cfl_dictionary("dyck")
    model = build(dictionary, hidden_size=5, stack=stack, initialization_bound=1.0).double()
    bias = model.decoder.lstm.stack.action_layer.bias
    with torch.no_grad():
        bias.copy_(spread * torch.randn(bias.shape, generator=generator, dtype=torch.float64))
    tokens, lstm = random_tokens(dictionary, 3, 23, generator), model.decoder.lstm
    inputs = model.decoder.rows[tokens[:, 1:]]
    hiddens = [lstm(inputs, None, False)[0], lstm(inputs, lstm.initial_state(3), False)[0]]
    torch.testing.assert_close(*hiddens, rtol=0, atol=1e-9)
    parameters = list(lstm.parameters())
    grads = [torch.autograd.grad(x.square().sum(), parameters) for x in hiddens]
    torch.testing.assert_close(*grads, rtol=1e-8, atol=1e-8)


def test_rows_out_of_range_go_step_by_step(generator: torch.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    dictionary = cfl_dictionary("dyck")
    model = build(dictionary, hidden_size=5, stack=STACKS[3], initialization_bound=1.0).double()
    inputs, lstm = model.decoder.rows[random_tokens(dictionary, 4, 7, generator)[:, 1:]], model.decoder.lstm
    expected = lstm(inputs, lstm.initial_state(4), False)[0]
    truth = torch.autograd.grad(expected.square().sum(), list(lstm.parameters()))
    for lost in ([1], [0, 3], [0, 1, 2, 3]):

        def in_range(tape: PushdownTape, lost: list[int] = lost) -> Tensor:
            trusted = torch.ones(tape.batch, dtype=torch.bool)
            if tape.batch == 4:
                trusted[lost] = False
                for readings in tape.readings:
                    readings[lost] = math.nan
            return trusted

        monkeypatch.setattr(PushdownTape, "in_range", in_range)
        found = lstm(inputs, None, False)[0]
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
        grads = torch.autograd.grad(found.square().sum(), list(lstm.parameters()))
        torch.testing.assert_close(grads, truth, rtol=0, atol=1e-11)


def test_max_length_bounds_both_forms(generator: torch.Generator) -> None:
    dictionary = cfl_dictionary("dyck")
    stack = "nondeterministic_stack(states=1, symbols=2, size=2, max_length=5)"
    model = build(dictionary, hidden_size=3, stack=stack)
    tokens = random_tokens(dictionary, 2, 7, generator)
    assert model(tokens[:, :7])[0].isfinite().any()
    with pytest.raises(ValueError, match=r"at most 5 steps \(max_length\), not for 6"):
        model(tokens)
    with torch.no_grad(), pytest.raises(ValueError, match=r"at most 5 \(max_length\)"):
        model.decoder(tokens, incremental_state={})


@pytest.mark.parametrize("kind", list(PRESETS))
def test_initial_values(kind: str) -> None:
    """Xavier for the output layer and the layers of a superposition stack, else U(-0.1, 0.1)."""
    torch.manual_seed(1)
    model = published(kind)
    for name, parameter in model.named_parameters():
        layer = name.rsplit(".", 1)[0]
        xavier = layer.endswith("output_projection") or (kind == "LSTM_Sup" and layer.endswith("_layer"))
        if not xavier:
            assert 0.04 < parameter.abs().max() <= 0.1, name
        elif parameter.dim() == 1:
            assert not parameter.any(), name
        else:
            bound = math.sqrt(6 / sum(parameter.shape))
            assert 0.9 * bound < parameter.abs().max() <= bound, name


def test_options_that_do_not_fit() -> None:
    dictionary = cfl_dictionary("dyck")
    with pytest.raises(ValueError, match="superposition_stack or nondeterministic_stack, not with softmax"):
        build(dictionary, stack="softmax")
    with pytest.raises(ValueError, match="hidden size of 1 or more"):
        build(dictionary, hidden_size=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stack_lstm") / "dyck"
    lengths = {"lengths": (4, 10), "test_lengths": (4, 12)}
    write_folder(StringsRequest("dyck", train=40, valid=10, test_per_length=2, **lengths), path)
    return path


@pytest.mark.training
@pytest.mark.parametrize("kind", list(PRESETS))
def test_trained_validated_and_sampled_through_fairseq(kind: str, folder: Path, tmp_path: Path) -> None:
    task = ["--task", "cfl_language_modeling"]
    log = fairseq(
        "train", folder, *task, "--criterion", "cfl_cross_entropy", "--arch", f"stack_lstm_lm_{PRESETS[kind]}",
        "--optimizer", "adam", "--lr", 0.1, "--batch-size", 10, "--max-epoch", 3, "--no-epoch-checkpoints",
        "--save-dir", tmp_path, "--hidden-size", 9, "--best-checkpoint-metric", "perplexity",
    )
    losses = [float(x) for x in re.findall(r"valid on 'valid' subset.*?\| cross_entropy ([\d.]+)", log)]
    assert len(losses) == 3 and min(losses) < 0.9 * math.log(5), "four brackets and the end, all alike"
    best = tmp_path / "checkpoint_best.pt"
    common = [folder, *task, "--path", best]
    log = fairseq(
        "validate", *common, "--criterion", "cfl_cross_entropy", "--valid-subset", "valid", "--batch-size", 10
    )
    assert float(re.search(r"\| cross_entropy ([\d.]+)", log).group(1)) == pytest.approx(min(losses), abs=2e-3)
    text = fairseq("generate", *common, "--gen-subset", "valid", "--beam", 3, "--prefix-size", 2, "--max-len-b", 6,
                   "--batch-size", 5)
    assert len(re.findall(r"^H-\d+\t", text, re.MULTILINE)) == 10
    kept = load_checkpoint(best)["model"]
    assert kept["decoder.lstm.weight_hh"].shape == (36, 9)
