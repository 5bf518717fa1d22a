"""Stacks: what stands on top is asked for.

    dyck        brackets of several kinds, nested to a bounded depth: after a closing one, the closing bracket that may
                come next, or the end where none is open (the bounded Dyck language of Yao et al. 2021)
    undo        a register that is written, read and set back (flip-flops of Liu et al. 2023, with undoing): what it
                holds at each reading; symbols to be ignored stand between
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from seqstruct.data.abilities.ability import Ability, Tagged, check_lengths, expect

END, EMPTY, READ, UNDO = "end", "empty", "read", "undo"
COMMANDS = ("+", "+", "+", UNDO, UNDO, READ, READ, "~")


@dataclass(frozen=True)
class Dyck(Ability):
    """kinds: of brackets.  depth: the greatest.

    A bracket opens with probability 1/2 where it may both open and close, its kind is uniform, and at the end all that
    is open closes.  Levels are the number of brackets open.
    """

    kinds: int = 4
    depth: int = 8
    axis: ClassVar[str] = "depth"
    limits = {"kinds": (1, 100), "depth": (1, 1000)}

    def symbols(self) -> list[str]:
        """Opening and closing brackets, and the end."""
        return [f"{side}{n}" for side in "()" for n in range(self.kinds)] + [END]

    def draw(self, lengths: tuple[int, int], generator: random.Random) -> Tagged:
        check_lengths(lengths, 2, "a pair of brackets")
        even = [length for length in range(lengths[0], lengths[1] + 1) if length % 2 == 0]
        expect(bool(even), "lengths", "an even length between", f"{lengths[0]}:{lengths[1]}")
        length = generator.choice(even)
        symbols: list[str] = []
        targets: list[str | None] = []
        levels = []
        stack: list[int] = []
        for place in range(length):
            room = min(self.depth, length - place) - len(stack)
            if room > 0 and (not stack or generator.random() < 0.5):
                stack.append(generator.randrange(self.kinds))
                symbols.append(f"({stack[-1]}")
                targets.append(None)
            else:
                symbols.append(f"){stack.pop()}")
                targets.append(f"){stack[-1]}" if stack else END)
            levels.append(len(stack))
        return Tagged(symbols, targets, levels)


@dataclass(frozen=True)
class Undo(Ability):
    """values: that a register holds.  depth: the greatest number of writings that are not undone.

    A symbol is a writing with probability 3/8, an undoing or a reading with 1/4, one to ignore with 1/8; where nothing
    can be undone or the greatest depth is reached, one to ignore stands instead.  A register not written to is empty.
    Levels are the number of undoings since the last writing.
    """

    values: int = 4
    depth: int = 8
    axis: ClassVar[str] = "undone"
    clue_name: ClassVar[str] = "last writing"
    limits = {"values": (2, 100), "depth": (1, 1000)}

    def symbols(self) -> list[str]:
        """Writings, what is ignored, the two commands, and what a register holds."""
        numbers = range(self.values)
        return [*(f"+{n}" for n in numbers), *(f"~{n}" for n in numbers), UNDO, READ, *map(str, numbers), EMPTY]

    def draw(self, lengths: tuple[int, int], generator: random.Random) -> Tagged | None:
        """None where nothing is read."""
        check_lengths(lengths, 1, "a symbol at least")
        symbols, targets, levels = [], [], []
        stack: list[int] = []
        undone = 0
        for _ in range(generator.randint(*lengths)):
            kind, value, target = generator.choice(COMMANDS), generator.randrange(self.values), None
            if (kind == UNDO and not stack) or (kind == "+" and len(stack) == self.depth):
                kind = "~"
            if kind == UNDO:
                stack.pop()
                undone += 1
            elif kind == "+":
                stack.append(value)
                undone = 0
            elif kind == READ:
                target = str(stack[-1]) if stack else EMPTY
            symbols.append(kind if kind in (UNDO, READ) else f"{kind}{value}")
            targets.append(target)
            levels.append(undone if target else 0)
        return Tagged(symbols, targets, levels) if any(targets) else None

    def clues(self, symbols: Sequence[str]) -> list[Hashable]:
        """The last writing before each position, undone or not."""
        found: list[Hashable] = []
        for symbol in symbols:
            found.append(symbol if symbol[0] == "+" else found[-1] if found else None)
        return found
