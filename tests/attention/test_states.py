"""The one walk over states."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from seqstruct.attention.states import batch_size_of, map_tensors, select_rows


class Pair(NamedTuple):
    first: Tensor
    second: tuple[Tensor, ...]


def test_every_tensor_is_met_and_tuples_keep_their_kind(generator: torch.Generator) -> None:
    x, y, z = (torch.randn(3, 2, generator=generator) for _ in range(3))
    state = (Pair(x, (y,)), (), z)
    found = map_tensors(torch.neg, state)
    assert type(found) is tuple and type(found[0]) is Pair and found[1] == ()
    for one, other in ((found[0].first, x), (found[0].second[0], y), (found[2], z)):
        torch.testing.assert_close(one, -other)
    assert batch_size_of(state) == 3 and batch_size_of(z) == 3


def test_rows_may_be_fewer_and_come_twice(generator: torch.Generator) -> None:
    x, y = torch.randn(3, 2, generator=generator), torch.randn(3, generator=generator)
    for order in ([2, 2, 0, 1], [1], []):
        rows = torch.tensor(order, dtype=torch.long)
        found = select_rows(Pair(x, (y,)), rows)
        assert torch.equal(found.first, x[rows]) and torch.equal(found.second[0], y[rows])
