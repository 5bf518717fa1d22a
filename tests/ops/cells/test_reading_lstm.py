"""An LSTM that attends to its last states, against its equations, and its derivatives."""

import pytest
import torch

from seqstruct.ops.cells import lstm_step, reading_lstm

B, T, S, H = 2, 6, 3, 5


def arguments(generator, T=T):
    shapes = ((T, B, 4 * H), (T, B, H), (T, B, S), (B, S, 2 * H), (H, 4 * H), (H, H))
    return [torch.randn(shape, dtype=torch.double, generator=generator) for shape in shapes]


def by_definition(gates, keys, log_gates, memory, recurrent, key_weight):
    """Weights are gates times exponentials of scores, divided by their sum."""
    h, c = ([*x.unbind(1)] for x in memory.split(H, 2))
    for t in range(len(gates)):
        key = (keys[t] + h[-1] @ key_weight) / H**0.5
        weights = torch.stack([(h[t + s] * key).sum(1).exp() for s in range(S)], 1) * log_gates[t].exp()
        weights = weights / weights.sum(1, keepdim=True)
        read, cell = (sum(weights[:, s, None] * x[t + s] for s in range(S)) for x in (h, c))
        hidden, cell = lstm_step(gates[t] + read @ recurrent, cell)
        h.append(hidden)
        c.append(cell)
    return torch.cat([torch.stack(h, 1), torch.stack(c, 1)], 2)


def test_states_are_those_of_the_equations(generator):
    given = arguments(generator)
    torch.testing.assert_close(reading_lstm(*given), by_definition(*given))


def test_gradients_are_those_of_the_equations(generator):
    assert torch.autograd.gradcheck(reading_lstm, [x.requires_grad_() for x in arguments(generator)])


def test_one_pass_gives_what_two_give(generator):
    gates, keys, log_gates, memory, *weights = arguments(generator)
    whole = reading_lstm(gates, keys, log_gates, memory, *weights)
    first = reading_lstm(gates[:1], keys[:1], log_gates[:1], memory, *weights)
    none = reading_lstm(gates[:0], keys[:0], log_gates[:0], first[:, -S:], *weights)
    second = reading_lstm(gates[1:], keys[1:], log_gates[1:], none, *weights)
    torch.testing.assert_close(torch.cat([first[:, :-S], second], 1), whole)


def test_half_precision_is_calculated_in_float32(generator):
    given = [x.to(torch.bfloat16) for x in arguments(generator)]
    assert torch.equal(reading_lstm(*given), reading_lstm(*(x.float() for x in given)))


def test_shapes_that_do_not_fit_are_refused(generator):
    gates, *others = arguments(generator)
    with pytest.raises(ValueError, match="expected gates T B 4h"):
        reading_lstm(gates[:, :, 1:], *others)
