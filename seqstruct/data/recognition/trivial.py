"""What can be said of a string without reading it: the most frequent answer, given one look at the string."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from seqstruct.data.recognition.examples import LabelledString

LOOKS: dict[str, Callable[[str], Hashable]] = {
    "majority": lambda string: None,
    "first symbol": lambda string: string[:1],
    "last symbol": lambda string: string[-1:],
    "length": len,
    "even or odd": lambda string: len(string) % 2,  # says something of lengths that training does not have
}


def trivially_right(train: Sequence[LabelledString], examples: Sequence[LabelledString]) -> np.ndarray:
    """Which examples each rule has right: bool, rules x examples, in the order of `LOOKS`.

    A rule gives the label that training has most often with what it looks at, and with what training never has the
    most frequent label of all; of equals, no member.
    """
    right = np.empty((len(LOOKS), len(examples)), dtype=bool)
    for row, look in zip(right, LOOKS.values(), strict=True):
        members: Counter[Hashable] = Counter()
        for member, string in train:
            members[look(string)] += 1 if member else -1
        overall = members.total() > 0
        row[:] = [(members[look(s)] > 0 if look(s) in members else overall) == member for member, s in examples]
    return right
