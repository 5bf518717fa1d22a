"""Labelled strings as FLaRe draws them (Butoi et al. 2025): positive or negative, one as likely as the other.

A positive string has a length that is uniform among those of the language.  A negative one is, half of the time, a
string of uniform length and symbols, else a positive string with K edits, P(K = k) = 2^-k: inserting, replacing or
deleting a symbol, one as likely as the other of those that keep the length in its range, at a uniform place.  What
turns out to be a member is drawn anew, the coin too.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from seqstruct.data.recognition.languages import FormalLanguage, word

MOST_TRIES = 1000


class LabelledString(NamedTuple):
    """member: whether the string is one of the language."""

    member: bool
    string: str


def draw_examples(
    language: FormalLanguage, count: int, lengths: tuple[int, int], generator: Random
) -> list[LabelledString]:
    """So many strings of these lengths, both ends included, independently.

    Raises ValueError as `FormalLanguage.lengths`, and if no string turns up that is not a member.
    """
    valid = language.lengths(*lengths)
    drawn = []
    for _ in range(count):
        member = generator.random() < 0.5
        string = positive(language, valid, generator) if member else negative(language, valid, lengths, generator)
        drawn.append(LabelledString(member, string))
    return drawn


def positive(language: FormalLanguage, valid: list[int], generator: Random) -> str:
    """A member of one of the lengths."""
    return language.draw(generator.choice(valid), generator)


def negative(language: FormalLanguage, valid: list[int], lengths: tuple[int, int], generator: Random) -> str:
    """No member, of a length in the range; valid: those lengths in it that members have."""
    for _ in range(MOST_TRIES):
        if generator.random() < 0.5:
            string = word(language.terminals, generator.randint(*lengths), generator)
        else:
            string = positive(language, valid, generator)
            edits = 1
            while generator.random() < 0.5:
                edits += 1
            for _ in range(edits):
                string = edited(string, language.terminals, lengths, generator)
        if not language.accepts(string):
            return string
    raise ValueError(f"of {MOST_TRIES} strings of length {lengths[0]} to {lengths[1]} all are in {language.name}")


def edited(string: str, terminals: str, lengths: tuple[int, int], generator: Random) -> str:
    """One symbol inserted, replaced by another one or deleted; as it is where nothing can be done."""
    low, high = lengths
    ways = ["insert"] * (len(string) < high) + ["replace"] * bool(string) + ["delete"] * (len(string) > low)
    if not ways:
        return string
    way = generator.choice(ways)
    place = generator.randrange(len(string) + (way == "insert"))
    if way == "delete":
        return string[:place] + string[place + 1 :]
    others = terminals if way == "insert" else terminals.replace(string[place], "")
    return string[:place] + generator.choice(others) + string[place + (way == "replace") :]
