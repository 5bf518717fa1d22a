"""The ordered-neurons LSTM against its equations written out, and its limit, the LSTM; gates from distances."""

import math

import pytest
import torch

from seqstruct.ops.cells import cumax, distance_gates, lstm_step, ordered_lstm, ordered_step

B, D, CHUNK = 3, 10, 2
M = D // CHUNK


def test_cumax_rises_to_one(generator):
    logits = 3 * torch.randn(5, 7, dtype=torch.double, generator=generator)
    values = cumax(logits)
    assert (values.diff(dim=-1) >= 0).all()
    torch.testing.assert_close(values[:, -1], torch.ones(5, dtype=torch.double))
    # the expectation of the indicator of "position k or after", over a position drawn from the softmax
    expected = torch.stack([logits.softmax(-1)[:, : k + 1].sum(-1) for k in range(7)], -1)
    torch.testing.assert_close(values, expected)


def test_a_step_is_the_published_equations(generator):
    gates = torch.randn(B, 2 * M + 4 * D, dtype=torch.double, generator=generator)
    cell = torch.randn(B, D, dtype=torch.double, generator=generator)
    step = ordered_step(gates, cell, CHUNK)
    for b in range(B):
        master_forget = gates[b, :M].softmax(0).cumsum(0)
        master_input = 1 - gates[b, M : 2 * M].softmax(0).cumsum(0)
        o, c, i, f = (gates[b, 2 * M + k * D : 2 * M + (k + 1) * D] for k in range(4))
        for d in range(D):
            big_f, big_i = master_forget[d // CHUNK], master_input[d // CHUNK]
            omega = big_f * big_i
            f_hat = f[d].sigmoid() * omega + (big_f - omega)
            i_hat = i[d].sigmoid() * omega + (big_i - omega)
            new = f_hat * cell[b, d] + i_hat * c[d].tanh()
            torch.testing.assert_close(step.cell[b, d], new)
            torch.testing.assert_close(step.hidden[b, d], o[d].sigmoid() * new.tanh())
        torch.testing.assert_close(step.distance[b], 1 - master_forget.mean())


def test_with_both_master_gates_open_it_is_an_lstm(generator):
    rest = torch.randn(B, 4 * D, dtype=torch.double, generator=generator)
    cell = torch.randn(B, D, dtype=torch.double, generator=generator)
    masters = torch.full((B, 2 * M), -200.0, dtype=torch.double)
    masters[:, 0] = 200.0  # cumax is 1 everywhere
    masters[:, -1] = 200.0  # 1 - cumax is 1 everywhere but in the last chunk
    step = ordered_step(torch.cat([masters, rest], 1), cell, CHUNK)
    o, c, i, f = rest.split(D, 1)
    hidden, after = lstm_step(torch.cat([i, f, c, o], 1), cell)
    torch.testing.assert_close(step.cell[:, : D - CHUNK], after[:, : D - CHUNK])
    torch.testing.assert_close(step.hidden[:, : D - CHUNK], hidden[:, : D - CHUNK])


def test_in_parts_as_in_one(generator):
    inputs = torch.randn(B, 7, 2 * M + 4 * D, dtype=torch.double, generator=generator)
    weight = torch.randn(2 * M + 4 * D, D, dtype=torch.double, generator=generator)
    zero = torch.zeros(B, D, dtype=torch.double)
    whole = ordered_lstm(inputs, weight, zero, zero, CHUNK)
    first = ordered_lstm(inputs[:, :3], weight, zero, zero, CHUNK)
    empty = ordered_lstm(inputs[:, :0], weight, first[2], first[3], CHUNK)
    second = ordered_lstm(inputs[:, 3:], weight, empty[2], empty[3], CHUNK)
    torch.testing.assert_close(torch.cat([first[0], second[0]], 1), whole[0])
    torch.testing.assert_close(torch.cat([first[1], second[1]], 1), whole[1])
    torch.testing.assert_close(second[2:], whole[2:])


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="divide the size 10"):
        ordered_step(torch.zeros(2, 46), torch.zeros(2, 10), 3)
    with pytest.raises(ValueError, match="2 x 50"):
        ordered_step(torch.zeros(2, 46), torch.zeros(2, 10), 2)


def test_gates_are_products_of_comparisons(generator):
    past, now = torch.rand(3, 7, dtype=torch.double, generator=generator), torch.rand(3, generator=generator).double()
    gates = distance_gates(now, past, 0.7).exp()
    for b in range(3):
        for i in range(7):
            expected = 1.0
            for j in range(i + 1, 7):
                expected /= 1 + math.exp(-2 * 0.7 * float(now[b] - past[b, j]))
            assert abs(float(gates[b, i]) - expected) < 1e-12


def test_no_words_have_no_gates():
    assert distance_gates(torch.zeros(2), torch.zeros(2, 0), 1.0).shape == (2, 0)


def test_sharp_gates_stop_at_the_first_greater_distance():
    past = torch.tensor([0.1, 0.9, 0.2, 0.3])
    torch.testing.assert_close(distance_gates(torch.tensor(0.5), past, 1e6).exp(), torch.tensor([0.0, 1.0, 1.0, 1.0]))
    torch.testing.assert_close(distance_gates(torch.tensor(1.0), past, 1e6).exp(), torch.ones(4))


def test_equal_distances_halve_a_gate_with_every_word():
    gates = distance_gates(torch.tensor(0.5), torch.full((4,), 0.5), 10.0).exp()
    torch.testing.assert_close(gates, torch.tensor([0.125, 0.25, 0.5, 1.0]))
