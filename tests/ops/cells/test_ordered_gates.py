"""Gates and gated attention of the parsing-reading-predict network against their equations."""

import torch

from seqstruct.ops.cells.ordered_gates import distance_gates, gated_attention


def test_gates_are_products_of_comparisons(generator):
    past, now = torch.rand(3, 7, dtype=torch.double, generator=generator), torch.rand(3, generator=generator).double()
    gates = distance_gates(now, past, 4.0)
    for b in range(3):
        for i in range(7):
            expected = 1.0
            for j in range(i + 1, 7):
                expected *= (min(1.0, max(-1.0, float(now[b] - past[b, j]) * 4.0)) + 1) / 2
            assert abs(float(gates[b, i]) - expected) < 1e-12


def test_sharp_gates_stop_at_the_first_greater_distance():
    past = torch.tensor([0.1, 0.9, 0.2, 0.3])
    assert distance_gates(torch.tensor(0.5), past, 1e6).tolist() == [0.0, 1.0, 1.0, 1.0]
    assert distance_gates(torch.tensor(1.0), past, 1e6).tolist() == [1.0] * 4


def test_weights_are_gates_times_softmax(generator):
    gates = torch.rand(2, 5, generator=generator)
    scores = torch.randn(2, 5, generator=generator)
    there = torch.tensor([[False, False, True, True, True], [False] * 5])
    weights = gated_attention(gates, scores, there)
    real = slice(2, 5)
    expected = gates[0, real] / gates[0, real].sum() * scores[0, real].softmax(0)
    torch.testing.assert_close(weights[0], torch.cat([torch.zeros(2), expected]))
    assert weights[1].tolist() == [0.0] * 5


def test_gradients_stay_finite_where_nothing_is(generator):
    gates = torch.rand(1, 3, generator=generator, requires_grad=True)
    scores = torch.randn(1, 3, generator=generator, requires_grad=True)
    gated_attention(gates, scores, torch.zeros(1, 3, dtype=torch.bool)).sum().backward()
    assert gates.grad.isfinite().all() and scores.grad.isfinite().all()
