"""Numbers of examples, found and published."""

from __future__ import annotations

from collections.abc import Mapping


def check_counts(
    name: str, found: Mapping[str, int], published: Mapping[str, int], what: str, tolerance: float = 0.0
) -> None:
    """Raise ValueError, naming the first split, unless the numbers of `what` are the published ones, up to a part of
    them."""
    for split, expected in published.items():
        if abs(found[split] - expected) > tolerance * expected:
            raise ValueError(f"{name}: the {split} set has {found[split]} {what}, expected {expected}: "
                             "truncated or altered (see --unchecked)")
