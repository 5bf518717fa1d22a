"""Inside and outside scores of a recursion that moves, masks and uses its elements more than once."""

from __future__ import annotations

import torch

from seqstruct.ops.max_marginals import max_marginals

INF = float("inf")


def test_a_recursion_written_by_hand():
    """Structures {a, b}, {a, c} and {b, c} of parts that are lifted in another order; one row has a part less."""
    parts = torch.tensor([[3.0, -1.0, 5.0, 9.0], [3.0, -INF, 5.0, 9.0]])

    def total(potentials, semiring):
        turned = semiring.lift(potentials[0].flip(1)[:, 1:])
        c, b, a = turned.unbind(-1)
        pairs = [semiring.times(a, b), semiring.times(a, c), semiring.times(b, c)]
        return semiring.sum(torch.stack(pairs, -1), -1)

    (found,) = max_marginals(total, [parts])
    assert found.tolist() == [[8.0, 4.0, 8.0, -INF], [8.0, -INF, 8.0, -INF]]
