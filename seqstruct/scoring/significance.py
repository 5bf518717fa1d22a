"""Whether the means of two samples differ, and what several such tests say together."""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Sequence


def welch(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Two-sided p of Welch's t test that two samples have one mean; None if it is undefined.

    Undefined below two values in either sample, and where neither sample varies.  Not paired by seed: what two models'
    runs of one seed have in common, the order of batches, says little of how they end; rows often have other seeds;
    and where runs of one seed do go together, this test errs on the side of saying nothing.
    """
    if min(len(first), len(second)) < 2 or statistics.variance(first) == statistics.variance(second) == 0:
        return None
    from scipy.stats import ttest_ind

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a sample that does not vary is no loss of digits
        return float(ttest_ind(first, second, equal_var=False).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values of several tests, corrected so that one of them is below alpha by chance with at most that probability.

    Holm 1979: from the least on, each times the number of those not yet counted, never below the one before.
    """
    corrected, least = [0.0] * len(p_values), 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[at]))
        corrected[at] = least
    return corrected
