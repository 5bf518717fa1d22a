"""The layer from B T C to B T C: all at once, step by step, from a state, across, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from seqstruct.attention import Shape, Site, parse_choices
from seqstruct.nn import Mixer, select_rows
from tests.randomised import randomised

ROOT = Path(__file__).resolve().parents[2]
CAUSAL = ["softmax", "rfa(features=8, gate=True)", "abc_mlp(slots=3)", "gated_delta", "sliding_window(slots=3)",
          "superposition_stack(size=5)", "nondeterministic_stack(states=2, symbols=2, size=3)"]
B, T, S, C = 3, 7, 5, 12


@pytest.fixture
def inputs(generator):
    x = torch.randn(B, T, C, generator=generator)
    padding_mask = torch.zeros(B, T, dtype=torch.bool)
    padding_mask[1, :2] = padding_mask[2, 5:] = True
    return x, padding_mask


@pytest.mark.parametrize("plan", CAUSAL)
def test_a_causal_layer_is_the_mechanism_and_steps_give_what_one_pass_does(plan, inputs, generator):
    x, padding_mask = inputs[0].double(), inputs[1]
    mixer = randomised(Mixer(plan, C, 2), generator, 0.5).double().eval()
    assert mixer.site is Site.DECODER_SELF
    whole = mixer(x, None, padding_mask)
    torch.testing.assert_close(whole, mixer.mechanism(x, x, x, padding_mask)[0].output)
    for cuts in ([1] * T, [3, 1, 3], [T]):
        state, outputs = mixer.initial_state(B), []
        for part, mask in zip(x.split(cuts, 1), padding_mask.split(cuts, 1), strict=True):
            output, state = mixer.step(part, state, mask)
            outputs.append(output)
        torch.testing.assert_close(torch.cat(outputs, 1), whole)
        assert state.position.tolist() == [T] * B
    order = torch.tensor([2, 0])
    state = mixer.step(x[:, :4], mixer.initial_state(B))[1]
    chosen, _ = mixer.step(x[order, 4:5], select_rows(state, order))
    torch.testing.assert_close(chosen, mixer(x)[order, 4:5])


@pytest.mark.parametrize("plan", ["softmax", "dependency", "sinkhorn(size=4)", "bigbird(size=2, random=1)"])
def test_at_the_encoder_all_is_seen(plan, inputs, generator):
    x, padding_mask = inputs[0].double(), inputs[1]
    mixer = randomised(Mixer(plan, C, 2, site="encoder_self"), generator, 0.5).double().eval()
    reading = mixer.read(x, padding_mask=padding_mask)
    torch.testing.assert_close(reading.output, mixer(x, padding_mask=padding_mask))
    assert reading.output.shape == x.shape
    with pytest.raises(ValueError, match="needs the whole sequence at once: no steps"):
        mixer.initial_state(B)


@pytest.mark.parametrize("plan", ["softmax", "rfa(features=8)", "local_monotonic(half_width=2)", "abc_mlp(slots=3)"])
def test_across_to_a_memory(plan, inputs, generator):
    x = inputs[0].double()
    memory, mask = torch.randn(B, S, 6, generator=generator).double(), torch.zeros(B, S, dtype=torch.bool)
    mask[1, 3:] = True
    mixer = randomised(Mixer(plan, C, 2, site="cross", memory_dim=6), generator, 0.5).double().eval()
    state, outputs = mixer.initial_state(B, memory, mask), []
    for t in range(T):
        output, state = mixer.step(x[:, t : t + 1], state)
        outputs.append(output)
    torch.testing.assert_close(torch.cat(outputs, 1), mixer(x, memory, mask))
    torch.testing.assert_close(mixer.step(x, mixer.initial_state(B, memory, mask))[0], mixer(x, memory, mask))
    with pytest.raises(ValueError, match="at cross: expected a memory to see"):
        mixer(x)
    with pytest.raises(ValueError, match="at cross: expected a memory to see"):
        mixer.initial_state(B)


def test_weights_are_shown_where_there_are_any(inputs):
    weights = Mixer("softmax", C, 3).read(inputs[0], need_weights=True).weights
    assert weights.shape == (B, 3, T, T)
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, 3, T))
    assert Mixer("rfa(features=8)", C, 3).read(inputs[0], need_weights=True).weights is None


@pytest.mark.parametrize("length", [0, 1])
def test_short_sequences(length):
    for plan in CAUSAL:
        assert Mixer(plan, C, 2)(torch.zeros(2, length, C)).shape == (2, length, C)


def test_it_learns_and_is_the_plan_s_choice(inputs):
    mixer = Mixer("softmax", C, 2, dropout=0.1)
    mixer(inputs[0]).sum().backward()
    assert all(parameter.grad is not None for parameter in mixer.parameters())
    (choice,) = parse_choices("softmax", 1, Site.DECODER_SELF)
    own = choice.build(Shape.of(Site.DECODER_SELF, C, 2, 0.1))
    assert {name: p.shape for name, p in own.named_parameters()} == {
        name.removeprefix("mechanism."): p.shape for name, p in mixer.named_parameters()}


def test_what_does_not_fit_is_refused(inputs):
    with pytest.raises(ValueError, match="dependency does not work at decoder_self"):
        Mixer("dependency", C)
    with pytest.raises(ValueError, match="site: expected one of encoder_self, decoder_self, cross, got 'sideways'"):
        Mixer("softmax", C, site="sideways")
    with pytest.raises(ValueError, match="memory_dim: expected a site of cross"):
        Mixer("softmax", C, memory_dim=3)
    with pytest.raises(ValueError, match="at decoder_self: expected no memory"):
        Mixer("softmax", C)(inputs[0], inputs[0])
    for sizes in ((0, 1), (C, 0), (C, -2)):
        with pytest.raises(ValueError, match="a number of heads of 1 or more"):
            Mixer("softmax", *sizes)
    with pytest.raises(ValueError, match="dropout: expected 0 or more and below 1, got 2.0"):
        Mixer("softmax", C, 2, dropout=2.0)
    for plan in ("rfa(features=8)", "softmax"):
        mixer = Mixer(plan, C, 2)
        for x in (inputs[0][:1, :1], inputs[0][:, :1, :5], inputs[0][0]):
            with pytest.raises(ValueError, match="expected tokens 3 x T x 12, as the state has rows, got"):
                mixer.step(x, mixer.initial_state(B))
    with pytest.raises(ValueError, match="padding_mask: expected one of a memory alone"):
        mixer.initial_state(B, padding_mask=torch.zeros(B, 2, dtype=torch.bool))


@pytest.mark.parametrize("plan", ["softmax", "luong", "rfa(features=8)", "location(length=9)"])
def test_a_memory_that_does_not_fit_is_refused(plan, generator):
    across = Mixer(plan, C, 2, site="cross", memory_dim=5)
    memory = torch.randn(B, 4, 5, generator=generator)
    for rows, given in ((B - 1, memory), (1, memory), (B, memory[..., :4]), (B, memory[0])):
        with pytest.raises(ValueError, match=rf"expected a memory {rows} x S x 5, got \("):
            across.initial_state(rows, given)
    state, x = across.initial_state(B, memory), torch.randn(B, 2, C, generator=generator)
    with pytest.raises(ValueError, match="padding_mask: expected None at cross"):
        across.step(x, state, torch.zeros(B, 2, dtype=torch.bool))


def test_torch_alone_is_imported():
    code = ("import json, sys, torch; before = set(sys.modules); import seqstruct.nn; "
            "print(json.dumps(sorted({name.partition('.')[0] for name in set(sys.modules) - before})))")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    loaded = set(json.loads(done.stdout)) - {"torch"} - set(sys.stdlib_module_names)
    assert loaded == {"seqstruct"}
