"""Rows padded on either side are brought to the front and back."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops.rows import Rows
from tests.ops.chains.enumeration import masks

LENGTHS = [5, 3, 1, 0]


@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_to_the_front_and_back(generator, left, root):
    mask = masks(LENGTHS, 5, left)
    rows = Rows.of(mask, 4, 5)
    assert rows.real.sum(1).tolist() == rows.lengths(4, 5, mask.device).tolist() == LENGTHS
    x = torch.randn(4, 5 + root, 2, generator=generator)
    front = rows.to_front(x, 1, root=root)
    for b, length in enumerate(LENGTHS):
        words = x[b, root:][~mask[b]]
        assert torch.equal(front[b, root : root + length], words)
        assert not root or torch.equal(front[b, 0], x[b, 0])
    assert torch.equal(rows.back(front, 1, root=root), x)
    square = torch.randn(4, 5 + root, 5 + root, generator=generator)
    assert torch.equal(rows.back(rows.to_front(square, 1, 2, root=root), 1, 2, root=root), square)


@pytest.mark.parametrize("left", [False, True])
def test_some_of_the_rows(left):
    rows, some = Rows.of(masks(LENGTHS, 5, left), 4, 5), torch.tensor([2, 0])
    alone = Rows.of(masks(LENGTHS, 5, left)[some], 2, 5)
    found = rows.select(some)
    assert torch.equal(found.real, alone.real)
    assert (found.first is None) == (not left) and (not left or torch.equal(found.first, alone.first))


def test_no_padding():
    for mask in (None, torch.zeros(2, 3, dtype=torch.bool)):
        rows = Rows.of(mask, 2, 3)
        assert rows == Rows(None, None) == rows.select(torch.tensor([1]))
        assert rows.lengths(2, 3, torch.device("cpu")).tolist() == [3, 3]


def test_padding_between_real_positions_is_refused():
    mask = torch.tensor([[False, False, True], [False, True, False]])
    with pytest.raises(ValueError, match="not so in row 1"):
        Rows.of(mask, 2, 3)
