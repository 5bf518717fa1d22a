"""Rational recurrences as torch's recurrent networks are called, and LSTMs with stacks that read vectors."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from seqstruct.layers.rational import stack_of
from seqstruct.nn import RRNN, StackLSTM
from seqstruct.ops.automata import PATTERNS

B, T, C, D = 3, 7, 5, 4


@pytest.mark.parametrize("automaton", PATTERNS)
def test_layers_and_states(automaton, generator):
    network = RRNN(automaton, C, D, 2).double()
    x = torch.randn(B, T, C, generator=generator, dtype=torch.float64)
    whole, last = network(x)
    assert whole.shape == (B, T, D)
    same = stack_of(automaton, 2, C, D, output_gate=True).double()
    same.load_state_dict(network.stack.state_dict())
    torch.testing.assert_close(same(x, same.initial_state(B))[0], whole)
    state, outputs = network.initial_state(B), []
    for t in range(T):
        output, state = network(x[:, t : t + 1], state)
        outputs.append(output)
    torch.testing.assert_close(torch.cat(outputs, 1), whole)
    torch.testing.assert_close(state, last)
    assert network(x[:, :0])[0].shape == (B, 0, D)


def test_what_does_not_fit_is_refused():
    for name in ("LSTM", "GRU", "RNN", "Z"):
        with pytest.raises(ValueError, match=f"automaton: expected one of B, .*F, got '{name}'"):
            RRNN(name, C, D)
    network = RRNN("F", C, D, 2)
    for shape in ((B, T, C + 1), (T, C)):
        with pytest.raises(ValueError, match=rf"expected inputs B T {C}, got \("):
            network(torch.zeros(shape))
    with pytest.raises(ValueError, match="expected a state of 2 layers, got one of 1"):
        network(torch.zeros(B, T, C), network.initial_state(B)[:1])


@pytest.mark.parametrize("stack", [None, "superposition_stack(size=3)",
                                   "nondeterministic_stack(states=2, symbols=2, size=3)"])
@pytest.mark.parametrize("need_state", [True, False])
def test_a_stack_lstm_reads_vectors_as_it_reads_symbols(stack, need_state, generator):
    layer = StackLSTM(6, D, stack).double()
    symbols = torch.randint(7, (B, T), generator=generator)
    vectors = F.one_hot(symbols, 7)[..., :6].double()
    expected, _ = layer(symbols, need_state=need_state)
    found, state = layer(vectors, need_state=need_state)
    torch.testing.assert_close(found, expected)
    if need_state:
        begun, middle = layer(vectors[:, :4])
        torch.testing.assert_close(torch.cat([begun, layer(vectors[:, 4:], middle)[0]], 1), found)
    assert layer(vectors[:, :0])[0].shape == (B, 0, D)


@pytest.mark.parametrize("stack", [None, "superposition_stack(size=3)"])
def test_other_inputs_of_a_stack_lstm_are_refused(stack):
    layer = StackLSTM(6, D, stack)
    for wrong in (torch.zeros(B, T, 5), torch.zeros(B, T, 7), torch.zeros(B, T), torch.zeros(T, dtype=torch.long)):
        with pytest.raises(ValueError, match=r"expected symbols B T, or vectors B T 6, got \("):
            layer(wrong)
    with pytest.raises(ValueError, match="expected a state of 3 rows, got one of 2"):
        layer(torch.zeros(B, T, 6), layer.initial_state(2))
    with pytest.raises(ValueError, match="expected symbols and a hidden size of 1 or more, got -2 and 4"):
        StackLSTM(-2, D, stack)


@pytest.mark.parametrize("stack", [None, "superposition_stack(size=3)",
                                   "nondeterministic_stack(states=2, symbols=2, size=3)"])
@pytest.mark.parametrize("assign", [True, False])
def test_a_stack_lstm_without_memory_takes_what_is_loaded(stack, assign, generator):
    layer = StackLSTM(6, D, stack)
    with torch.device("meta"):
        other = StackLSTM(6, D, stack)
    other = other if assign else other.to_empty(device="cpu")
    other.load_state_dict(layer.state_dict(), assign=assign)
    symbols = torch.randint(7, (B, T), generator=generator)
    for need_state in (True, False):
        torch.testing.assert_close(other(symbols, need_state=need_state)[0], layer(symbols, need_state=need_state)[0])


@pytest.mark.parametrize("stack", ["superposition_stack(size=11)",
                                   "nondeterministic_stack(states=2, symbols=1, size=11)"])
def test_a_stack_lstm_trains_after_inference(stack, generator):
    """Of sizes that no other test has: what is first made in inference mode is kept."""
    layer = StackLSTM(6, D, stack)
    symbols = torch.randint(7, (B, T), generator=generator)
    with torch.inference_mode():
        found = layer(symbols, need_state=False)[0]
    again = layer(symbols, need_state=False)[0]
    again.square().sum().backward()
    torch.testing.assert_close(again, found)
