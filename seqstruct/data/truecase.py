"""Truecasing as in Moses (Koehn et al. 2007): the first word of a sentence gets the form it mostly has elsewhere."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable

from seqstruct.data.files import atomic_write, open_text

OPENINGS = frozenset("'\"([{`«»„“”‘’¿¡-–—") | {"``", "''", "&quot;", "&apos;"}
ENDS = frozenset(".:;?!")


def starts(words: list[str]) -> list[int]:
    """Where a sentence begins in a line of words: at its first word and after each of . : ; ? !, quotation marks and
    brackets left out."""
    found, waiting = [], True
    for place, word in enumerate(words):
        if word in OPENINGS:
            continue
        if waiting:
            found.append(place)
        waiting = word in ENDS
    return found


def learn_truecase(lines: Iterable[str], path: str | os.PathLike) -> None:
    """Write the most frequent form of each word, counted where no sentence begins, one a line.

    Of forms that are as frequent as each other the first in the text is taken.
    """
    counts: dict[str, Counter[str]] = {}
    for line in lines:
        words = line.split()
        first = set(starts(words))
        for place, word in enumerate(words):
            if place not in first:
                counts.setdefault(word.lower(), Counter())[word] += 1
    with atomic_write(path) as stream:
        stream.writelines(f"{forms.most_common(1)[0][0]}\n" for forms in counts.values())


def load_truecase(path: str | os.PathLike) -> Callable[[str], str]:
    """A function from a line of words to the same line, truecased; words that were not learnt stay as they are."""
    with open_text(path) as stream:
        forms = {form.lower(): form for form in (line.rstrip("\n") for line in stream)}

    def truecase(line: str) -> str:
        words = line.split()
        for place in starts(words):
            words[place] = forms.get(words[place].lower(), words[place])
        return " ".join(words)

    return truecase
