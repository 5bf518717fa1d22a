"""What every task is: sequences with a target at some positions, drawn by rule."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import ClassVar, NamedTuple

NONE = "-"  # stands in a file where nothing is asked for; no symbol of a task


class Tagged(NamedTuple):
    """symbols: what is read.  targets: what is asked for after each, None where nothing is.

    levels: of each target how far it goes, from 0 on, in the task's `axis`; 0 where nothing is asked for.
    """

    symbols: Sequence[str]
    targets: Sequence[str | None]
    levels: Sequence[int]


class Ability(ABC):
    """A task: its fields are its options, checked when it is made.

    axis: what levels count.  clue_name: what `clues` tell, "" where the task has none.  limits: least
    and greatest of options that are numbers.
    """

    axis: ClassVar[str]
    clue_name: ClassVar[str] = ""
    limits: ClassVar[Mapping[str, tuple[int, int]]] = {}

    def __post_init__(self) -> None:
        for name, (least, most) in self.limits.items():
            found = getattr(self, name)
            expect(least <= found <= most, name, f"{least} to {most}", found)

    @abstractmethod
    def symbols(self) -> list[str]:
        """All that are read or asked for, in the order of the dictionary."""

    @abstractmethod
    def draw(self, lengths: tuple[int, int], generator: random.Random) -> Tagged | None:
        """One example of so many symbols, both bounds included; None where the draw met a dead end.

        Raises ValueError where no example has such a length.
        """

    def clues(self, symbols: Sequence[str]) -> list[Hashable]:
        """What a simple rule of the task's own goes by at each position; asked of tasks with a `clue_name` alone."""
        raise NotImplementedError(f"{type(self).__name__} has no clue_name, so no clues")


def expect(condition: bool, option: str, expected: str, found: object) -> None:
    """Raise ValueError, by the name of the command's option, unless the condition holds."""
    if not condition:
        raise ValueError(f"--{option.replace('_', '-')}: expected {expected}, got {found}")


def check_lengths(lengths: tuple[int, int], least: int, why: str) -> None:
    """Raise ValueError unless the shorter length leaves room."""
    expect(least <= lengths[0] <= lengths[1], "lengths", f"{least} or more, the longer last ({why})",
           f"{lengths[0]}:{lengths[1]}")
