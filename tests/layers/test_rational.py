"""Stacked recurrent networks: a text in segments equals one pass, counts of parameters, dropout with one mask."""

from __future__ import annotations

import pytest
import torch

from seqstruct.layers.rational import CELLS, recurrent_parameters, stack_of
from seqstruct.layers.recurrent import variational_dropout
from seqstruct.ops.automata import PATTERNS, rational_step
from tests.randomised import randomised

B, T, C, D = 3, 13, 5, 7


def random_rnn(cell, generator, output_gate=True, layers=2):
    return randomised(stack_of(cell, layers, C, D, output_gate=output_gate).double(), generator, 1.0)


def inputs_of(generator, steps=T):
    return torch.randn(B, steps, C, dtype=torch.double, generator=generator)


@pytest.mark.parametrize("output_gate", [True, False])
@pytest.mark.parametrize("cell", CELLS)
def test_segments_equal_one_pass(cell, output_gate, generator):
    rnn, inputs = random_rnn(cell, generator, output_gate), inputs_of(generator)
    whole, last, _ = rnn(inputs, rnn.initial_state(B))
    state, parts = rnn.initial_state(B), []
    for part in inputs.split([4, 1, 0, 6, 2], 1):
        hidden, state, _ = rnn(part, state)
        parts.append(hidden)
    torch.testing.assert_close(torch.cat(parts, 1), whole)
    torch.testing.assert_close(state, last)


@pytest.mark.parametrize("automaton", PATTERNS)
def test_a_layer_is_the_step_of_its_automaton(automaton, generator):
    """Gates have a bias, inputs have none: eq. E.2 to E.5."""
    layer = random_rnn(automaton, generator, layers=1).layers[0]
    inputs = inputs_of(generator)
    hidden, last = layer(inputs, layer.initial_state(B))
    state = layer.initial_state(B)
    weights = layer.weight.view(-1, D, C)
    for t in range(T):
        columns = []
        for k, weight in enumerate(weights):
            column = inputs[:, t] @ weight.T
            columns.append(column if k % 2 else column + layer.gate_bias[k // 2])
        found = rational_step(
            automaton, torch.stack(columns, 1), state,
            final_logits=layer.final_logits, epsilon_logits=layer.epsilon_logits,
        )
        state = found.state
        torch.testing.assert_close(found.hidden, hidden[:, t])
    torch.testing.assert_close(state, last)


def test_the_rnn_is_elman_s(generator):
    layer, inputs = random_rnn("RNN", generator, layers=1).layers[0], inputs_of(generator)
    hidden, last = layer(inputs, layer.initial_state(B))
    expected = layer.initial_state(B)
    for t in range(T):
        gates = inputs[:, t] @ layer.weight_ih_l0.T + expected @ layer.weight_hh_l0.T
        expected = (gates + layer.bias_ih_l0 + layer.bias_hh_l0).tanh()
        torch.testing.assert_close(hidden[:, t], expected)
    torch.testing.assert_close(last, expected)


@pytest.mark.parametrize("output_gate", [True, False])
@pytest.mark.parametrize("cell", CELLS)
def test_counts_of_parameters(cell, output_gate):
    layer = stack_of(cell, 1, C, D, output_gate=output_gate).layers[0]
    assert sum(p.numel() for p in layer.parameters()) == recurrent_parameters(cell, C, D, output_gate)


@pytest.mark.parametrize("cell", CELLS)
def test_gradients_reach_every_parameter(cell, generator):
    rnn = stack_of(cell, 2, C, D, output_gate=True, dropout=0.1, variational_dropout=0.2).double()
    rnn(inputs_of(generator), rnn.initial_state(B))[0].square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() and p.grad.any() for p in rnn.parameters())


@pytest.mark.parametrize("cell", [cell for cell in CELLS if cell != "RNN"])
def test_forget_gates_start_at_their_bias(cell):
    for bias in (0.0, 1.5):
        layer = stack_of(cell, 1, C, D, output_gate=True, forget_bias=bias).layers[0]
        if cell in ("LSTM", "GRU"):
            gates, others = layer.bias[D : 2 * D], torch.cat([layer.bias[:D], layer.bias[2 * D :]])
        else:
            gates, others = layer.gate_bias[:-1], layer.gate_bias[-1]
        assert (gates == bias).all() and (others == 0).all()


def test_variational_dropout_has_one_mask_for_all_steps():
    found = variational_dropout(torch.ones(4, 11, 50), 0.5, True)
    assert set(found.unique().tolist()) == {0.0, 2.0}
    assert torch.equal(found, found[:, :1].expand_as(found))
    assert not torch.equal(found[0], found[1])
    assert torch.equal(variational_dropout(found, 0.5, False), found)


def test_wrong_options():
    with pytest.raises(ValueError, match="expected a cell of LSTM, GRU, RNN, B, B_max_plus, C, F, got 'G'"):
        stack_of("G", 1, C, D, output_gate=True)
    with pytest.raises(ValueError, match="layers: expected 1 or more, got 0"):
        stack_of("B", 0, C, D, output_gate=True)
    with pytest.raises(ValueError, match="variational_dropout: expected 0 or more and below 1, got 1"):
        stack_of("B", 1, C, D, output_gate=True, variational_dropout=1)
    with pytest.raises(ValueError, match="forget_bias: expected a finite number, got inf"):
        stack_of("B", 1, C, D, output_gate=True, forget_bias=float("inf"))
    with pytest.raises(ValueError, match="input_deviation: expected a finite number above 0, got 0"):
        stack_of("B", 1, C, D, output_gate=True, input_deviation=0)
