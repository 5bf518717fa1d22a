"""Matching of rows to columns with the largest sum of gains, each at most once (Kuhn 1955; Munkres 1957)."""

from __future__ import annotations

from collections.abc import Sequence


def best_matching(gains: Sequence[Sequence[float]]) -> list[int]:
    """The column of each row, or -1, so that no column is taken twice and the sum of the gains taken is largest.

    gains: n rows of m numbers; only those above 0 are ever taken.  Shortest augmenting paths with potentials, one
    row after another (Jonker and Volgenant 1987): O(n^2 (n + m)), in plain Python, for small matrices.
    """
    n = len(gains)
    m = len(gains[0]) if n else 0
    # columns m .. m + n - 1 stand for "none", at no cost
    cost = [[-max(float(gain), 0.0) for gain in row] + [0.0] * n for row in gains]
    width = m + n
    row_potential, column_potential = [0.0] * (n + 1), [0.0] * (width + 1)
    row_of = [n] * (width + 1)  # n: free
    for start in range(n):
        free, best, before = width, [float("inf")] * (width + 1), [width] * (width + 1)
        used = [False] * (width + 1)
        row_of[width] = start
        while row_of[free] != n:
            used[free] = True
            row, delta, nearest = row_of[free], float("inf"), width
            for column in range(width):
                if used[column]:
                    continue
                reduced = cost[row][column] - row_potential[row] - column_potential[column]
                if reduced < best[column]:
                    best[column], before[column] = reduced, free
                if best[column] < delta:
                    delta, nearest = best[column], column
            for column in range(width + 1):
                if used[column]:
                    row_potential[row_of[column]] += delta
                    column_potential[column] -= delta
                else:
                    best[column] -= delta
            free = nearest
        while free != width:
            row_of[free] = row_of[before[free]]
            free = before[free]
    taken = [-1] * n
    for column in range(m):
        row = row_of[column]
        if row != n and gains[row][column] > 0:
            taken[row] = column
    return taken
