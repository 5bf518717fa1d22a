"""Compound splitting by frequency (Koehn and Knight 2003, sec. 3 and 4.1): "Aktionsplan" into "Aktions" and "plan".

Of all ways to cut a word into words of the training text the one with the greatest geometric mean of the parts' counts
is taken, the whole word among them.  Between two parts a linking element may stand; it stays at the end of the first.
Deviations: parts are looked up without regard to case, because a noun's part loses its capital; what is unknown as a
whole and cannot be cut stays whole.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

LINKS = ("s", "es")  # the linking elements of the paper, for German
LEAST_LENGTH = 3  # letters of a part, its linking element apart
LEAST_COUNT = 2  # how often a part occurs by itself


class CompoundSplitter:
    """Cuts words of one language; counts: of the words in training."""

    def __init__(self, counts: Mapping[str, int]):
        self.counts: Counter[str] = Counter()
        for word, count in counts.items():
            self.counts[word.lower()] += count
        self.longest = max(map(len, self.counts), default=0)

    def __call__(self, word: str) -> list[str]:
        """The parts of a word, which joined are the word.  O(length^2 parts) time."""
        length = len(word)
        most = length // LEAST_LENGTH
        lowered = word.lower()
        if most < 2 or len(lowered) != length or not word.isalpha():
            return [word]
        # best[n][end]: greatest sum of the logarithms of counts over n parts of the first `end` letters, and the
        # place where the last of them starts
        best: list[dict[int, tuple[float, int]]] = [{0: (0.0, 0)}]
        for _ in range(most):
            reached: dict[int, tuple[float, int]] = {}
            for start, (total, _) in best[-1].items():
                for end in range(start + LEAST_LENGTH, length + 1):
                    count = self._count(lowered[start:end], last=end == length)
                    if count and (end not in reached or total + math.log(count) > reached[end][0]):
                        reached[end] = (total + math.log(count), start)
            best.append(reached)
        means = [(best[n][length][0] / n, -n) for n in range(2, most + 1) if length in best[n]]
        whole = self.counts[lowered]
        if not means or (whole and math.log(whole) >= max(means)[0]):
            return [word]
        parts, end = [], length
        for n in range(-max(means)[1], 0, -1):
            start = best[n][end][1]
            parts.append(word[start:end])
            end = start
        return parts[::-1]

    def _count(self, part: str, last: bool) -> int:
        """How often a part occurs by itself, with or, unless it is the last, without a linking element; 0 if rarely."""
        stems = [part]
        if not last:
            stems += [part.removesuffix(link) for link in LINKS if part.endswith(link)]
        counts = [self.counts[stem] for stem in stems if LEAST_LENGTH <= len(stem) <= self.longest]
        return max((c for c in counts if c >= LEAST_COUNT), default=0)
