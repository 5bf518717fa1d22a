"""Recall and copying: what was read is asked for again.

    recall      pairs of a key and a value, then keys: the value of each (multi-query associative recall, Arora et al.
                2024, sec. 4.1; there gaps follow a power law, here positions are uniform between two bounds of the gap)
    copying     items among blanks, then one mark for each: the items in their order (selective copying, Gu & Dao 2023,
                sec. 4.1.1)
    induction   random symbols; wherever one has come before, what followed it the last time (Olsson et al. 2022)
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar

from seqstruct.data.abilities.ability import Ability, Tagged, check_lengths, expect

BLANK, MARK = ".", "?"


@dataclass(frozen=True)
class Recall(Ability):
    """pairs: fewest and most.  gap: least and greatest number of symbols between a pair and its key's return.

    keys, values: how many there are of each.  Keys of an example differ, values are uniform; each key returns once, in
    any order, at positions drawn uniformly, with blanks at the others.
    """

    pairs: tuple[int, int] = (2, 5)
    gap: tuple[int, int] = (0, 1000)
    keys: int = 16
    values: int = 16
    axis: ClassVar[str] = "gap"

    def __post_init__(self) -> None:
        expect(1 <= self.pairs[0] <= self.pairs[1] <= self.keys, "pairs", f"1 to the number of keys, {self.keys}",
               f"{self.pairs[0]}:{self.pairs[1]}")
        expect(0 <= self.gap[0] <= self.gap[1], "gap", "0 or more, the greater last", f"{self.gap[0]}:{self.gap[1]}")
        expect(self.values >= 2, "values", "2 or more", self.values)

    def symbols(self) -> list[str]:
        """Keys, values and the blank."""
        return [*(f"k{n}" for n in range(self.keys)), *(f"v{n}" for n in range(self.values)), BLANK]

    def draw(self, lengths: tuple[int, int], generator: random.Random) -> Tagged | None:
        """None where a gap is out of bounds."""
        check_lengths(lengths, 3 * self.pairs[1], "a pair and its key's return are three symbols")
        length, count = generator.randint(*lengths), generator.randint(*self.pairs)
        keys = [f"k{n}" for n in generator.sample(range(self.keys), count)]
        values = [f"v{generator.randrange(self.values)}" for _ in keys]
        symbols = [symbol for pair in zip(keys, values, strict=True) for symbol in pair]
        symbols += [BLANK] * (length - len(symbols))
        targets: list[str | None] = [None] * length
        levels = [0] * length
        for number, place in enumerate(generator.sample(range(2 * count, length), count)):
            gap = place - 2 * number - 2
            if not self.gap[0] <= gap <= self.gap[1]:
                return None
            symbols[place], targets[place], levels[place] = keys[number], values[number], gap
        return Tagged(symbols, targets, levels)


@dataclass(frozen=True)
class Copying(Ability):
    """items: fewest and most.  values: different ones.  Places of the items before the marks are uniform."""

    items: tuple[int, int] = (4, 8)
    values: int = 8
    axis: ClassVar[str] = "item"

    def __post_init__(self) -> None:
        expect(1 <= self.items[0] <= self.items[1], "items", "1 or more, the greater last",
               f"{self.items[0]}:{self.items[1]}")
        expect(self.values >= 2, "values", "2 or more", self.values)

    def symbols(self) -> list[str]:
        """Items, the blank and the mark."""
        return [*(f"v{n}" for n in range(self.values)), BLANK, MARK]

    def draw(self, lengths: tuple[int, int], generator: random.Random) -> Tagged:
        check_lengths(lengths, 2 * self.items[1], "an item and its mark are two symbols")
        length, count = generator.randint(*lengths), generator.randint(*self.items)
        items = [f"v{generator.randrange(self.values)}" for _ in range(count)]
        symbols = [BLANK] * (length - count) + [MARK] * count
        for place, item in zip(sorted(generator.sample(range(length - count), count)), items, strict=True):
            symbols[place] = item
        return Tagged(symbols, [None] * (length - count) + items, [0] * (length - count) + list(range(count)))


@dataclass(frozen=True)
class Induction(Ability):
    """values: different symbols, drawn uniformly."""

    values: int = 16
    axis: ClassVar[str] = "distance"

    def __post_init__(self) -> None:
        expect(self.values >= 2, "values", "2 or more", self.values)

    def symbols(self) -> list[str]:
        """v0, v1 and so on."""
        return [f"v{n}" for n in range(self.values)]

    def draw(self, lengths: tuple[int, int], generator: random.Random) -> Tagged | None:
        """None where no symbol comes twice."""
        check_lengths(lengths, 2, "a symbol comes twice")
        symbols = [f"v{generator.randrange(self.values)}" for _ in range(generator.randint(*lengths))]
        last: dict[str, int] = {}
        targets: list[str | None] = []
        levels = []
        for place, symbol in enumerate(symbols):
            before = last.get(symbol)
            targets.append(None if before is None else symbols[before + 1])
            levels.append(0 if before is None else place - before)
            last[symbol] = place
        return Tagged(symbols, targets, levels) if len(last) < len(symbols) else None
