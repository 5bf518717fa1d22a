"""State tracking: after each symbol, the state that all symbols so far lead to.

    parity      of ones among zeros and ones
    counting    of ones among zeros and ones, modulo a number
    z60, s3, a5, s5     word problems: the product of the group's elements so far (Merrill et al. 2024, sec. 5): Z60 and
                S3 are solvable, A5 and S5 are not.  With --generators symbols are two elements that generate the group
                and the identity, else all elements.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import ClassVar

from seqstruct.data.abilities.ability import Ability, Tagged, check_lengths, expect

GROUPS = ("z60", "s3", "a5", "s5")
# of permutations of 0 .. n-1, the images in their order: a transposition or a 3-cycle, and an n-cycle
GENERATORS = {"z60": ("0", "1", "7"), "s3": ("012", "102", "120"), "a5": ("01234", "12034", "12340"),
              "s5": ("01234", "10234", "12340")}


@dataclass(frozen=True)
class Counting(Ability):
    """modulus: of the count, 2 for parity."""

    modulus: int = 5
    axis: ClassVar[str] = "position"
    limits = {"modulus": (2, 100)}

    def symbols(self) -> list[str]:
        """Zero and one, and what a count may be."""
        return [str(n) for n in range(self.modulus)]

    def draw(self, lengths: tuple[int, int], generator: random.Random) -> Tagged:
        check_lengths(lengths, 1, "a symbol at least")
        steps = [generator.randrange(2) for _ in range(generator.randint(*lengths))]
        state, targets = 0, []
        for step in steps:
            state = (state + step) % self.modulus
            targets.append(str(state))
        return Tagged([str(step) for step in steps], targets, list(range(1, len(steps) + 1)))


@dataclass(frozen=True)
class Parity(Counting):
    """Counting modulo two."""

    modulus: int = 2

    def __post_init__(self) -> None:
        expect(self.modulus == 2, "modulus", "2 for parity; counting has others", self.modulus)


@dataclass(frozen=True)
class WordProblem(Ability):
    """group: one of `GROUPS`.  generators: whether symbols are generators and the identity alone.

    Elements are numbers of Z60, else permutations as the images of 0 .. n-1.  The product of a word g1 g2 ... applies
    g1 first.
    """

    group: str
    generators: bool = False
    axis: ClassVar[str] = "position"

    def __post_init__(self) -> None:
        expect(self.group in GROUPS, "task", f"one of {', '.join(GROUPS)}", self.group)

    def symbols(self) -> list[str]:
        """The elements; the identity stands first."""
        return list(elements(self.group))

    def draw(self, lengths: tuple[int, int], generator: random.Random) -> Tagged:
        check_lengths(lengths, 1, "a symbol at least")
        known = GENERATORS[self.group] if self.generators else elements(self.group)
        word = [generator.choice(known) for _ in range(generator.randint(*lengths))]
        state, targets = elements(self.group)[0], []
        for element in word:
            state = product(self.group, state, element)
            targets.append(state)
        return Tagged(word, targets, list(range(1, len(word) + 1)))


@cache
def elements(group: str) -> tuple[str, ...]:
    """Of a group, in the order of numbers or of words; A5 has the even permutations."""
    if group == "z60":
        return tuple(map(str, range(60)))
    found = permutations(range(int(group[1:])))
    return tuple("".join(map(str, p)) for p in found if group[0] == "s" or _is_even(p))


def _is_even(permutation: tuple[int, ...]) -> bool:
    pairs = ((i, j) for j in range(len(permutation)) for i in range(j))
    return sum(permutation[i] > permutation[j] for i, j in pairs) % 2 == 0


@cache
def product(group: str, first: str, second: str) -> str:
    """The element that does what the first does, then what the second does."""
    if group == "z60":
        return str((int(first) + int(second)) % 60)
    return "".join(second[int(image)] for image in first)
