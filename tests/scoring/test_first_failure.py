"""The share before the first failure, on cases by hand."""

from __future__ import annotations

import pytest

from seqstruct.scoring.first_failure import share_before_failure


@pytest.mark.parametrize(
    "hypothesis, expected",
    [("1 + 2", 1.0), ("1 + 3", 0.5), ("2 + 2", 0.0), ("", 0.0), ("1 +", 0.5), ("1 + 2 + 2", 0.75), ("1 * 2", 0.25)],
)
def test_by_hand(hypothesis: str, expected: float) -> None:
    assert share_before_failure(hypothesis.split(), ["1", "+", "2"]) == expected


def test_an_empty_reference() -> None:
    assert share_before_failure([], []) == 1.0 and share_before_failure(["1"], []) == 0.0
