"""What can be said of a string without its structure: the most frequent answer, given one look at the string."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np

from seqstruct.data.recognition.examples import LabelledString

Looks = Mapping[str, Callable[[str], Hashable]]

LOOKS: Looks = {
    "majority": lambda string: None,
    "first symbol": lambda string: string[:1],
    "last symbol": lambda string: string[-1:],
    "length": len,
    "even or odd": lambda string: len(string) % 2,  # says something of lengths that training does not have
}


def odd(string: str) -> frozenset[str]:
    """The symbols that a string has an odd number of times."""
    return frozenset(symbol for symbol, count in Counter(string).items() if count % 2)


def middle(string: str) -> str:
    """The symbol in the middle of a string of odd length, if it is nowhere else."""
    symbol = string[len(string) // 2 :][: len(string) % 2]
    return symbol if symbol and string.count(symbol) == 1 else ""


# finite automata, or one counter: no stack
COUNTS: Looks = {
    "parities": odd,
    "parities and ends": lambda string: (odd(string), string[:1], string[-1:]),
    "parities and two at each end": lambda string: (odd(string), string[:2], string[-2:]),
    "middle": middle,
}


def trivially_right(
    train: Sequence[LabelledString], examples: Sequence[LabelledString], looks: Looks = LOOKS
) -> np.ndarray:
    """Which examples each rule has right: bool, rules x examples, in the order of `looks`, `LOOKS` or `COUNTS`.

    A rule gives the label that training has most often with what it looks at, and with what training never has the
    most frequent label of all; of equals, no member.
    """
    right = np.empty((len(looks), len(examples)), dtype=bool)
    for row, look in zip(right, looks.values(), strict=True):
        members: Counter[Hashable] = Counter()
        for member, string in train:
            members[look(string)] += 1 if member else -1
        overall = members.total() > 0
        row[:] = [(members[look(s)] > 0 if look(s) in members else overall) == member for member, s in examples]
    return right
