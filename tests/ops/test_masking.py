"""Masks."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops.masking import (
    bound_padding,
    causal_mask,
    check_padding_mask,
    clear_padding,
    left_to_right_visible,
    positions,
    started,
)

MASK = torch.tensor([[1, 1, 0, 0, 0], [0, 0, 0, 1, 1], [1, 1, 1, 1, 1], [0, 1, 0, 1, 0]], dtype=torch.bool)


def test_causal_mask_lets_the_last_query_see_all_keys() -> None:
    assert causal_mask(2, 4).int().tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    assert causal_mask(0, 3).shape == (0, 3)


def test_positions_count_real_tokens_before() -> None:
    assert positions(MASK).tolist() == [[0, 0, 0, 1, 2], [0, 1, 2, 3, 3], [0] * 5, [0, 1, 1, 2, 2]]


def test_started_from_the_first_real_token_on() -> None:
    assert started(MASK).int().tolist() == [[0, 0, 1, 1, 1], [1] * 5, [0] * 5, [1] * 5]
    assert started(MASK[:, :0]).shape == (4, 0)


def test_visible_is_real_and_not_in_the_future() -> None:
    visible = left_to_right_visible(MASK, 5)
    assert visible[0].int().tolist() == [[0] * 5, [0] * 5, [0, 0, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 1, 1, 1]]


def test_a_mask_that_does_not_fit_is_refused() -> None:
    check_padding_mask(None, 3, 4)
    check_padding_mask(MASK, 4, 5)
    with pytest.raises(ValueError, match="expected 4 x 6, got 4 x 5"):
        check_padding_mask(MASK, 4, 6)
    with pytest.raises(ValueError, match="expected bool"):
        check_padding_mask(MASK.float(), 4, 5)


def test_padding_is_cleared_and_one_tensor_stays_one() -> None:
    x = torch.arange(1.0, 41.0).view(4, 5, 2)
    x[MASK] = torch.nan
    first, second, other = clear_padding(MASK, x, x, x + 1)
    assert first is second
    for cleared, given in ((first, x), (other, x + 1)):
        assert torch.equal(cleared[~MASK], given[~MASK])
        assert not cleared[MASK].any()
    assert clear_padding(None, x, x)[1] is x


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_padding_is_bounded_where_it_is_large_or_no_number(dtype: torch.dtype) -> None:
    x = torch.full((4, 5, 2), 6e4, dtype=dtype)
    x[0, 0], x[0, 1, 1], x[1, 3] = -200.0, torch.nan, -torch.inf
    bounded = bound_padding(MASK, x)
    assert torch.equal(bounded[~MASK], x[~MASK])
    assert torch.equal(bounded[0, 0], x[0, 0])
    assert bounded[MASK].count_nonzero() == 2
