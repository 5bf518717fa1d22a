"""How far hypotheses are right: the share of the target before the first failure (Grefenstette et al. 2015)."""

from __future__ import annotations

from collections.abc import Sequence


def share_before_failure(hypothesis: Sequence[str], reference: Sequence[str]) -> float:
    """Share in [0, 1] of the reference's symbols, its end counted as one, that come before the first wrong one."""
    right = 0
    for own, wanted in zip(hypothesis, reference, strict=False):
        if own != wanted:
            break
        right += 1
    if right == len(hypothesis) == len(reference):
        right += 1
    return right / (len(reference) + 1)
