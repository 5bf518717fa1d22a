import math
from collections import Counter

import pytest

from seqstruct.data.text.compounds import LEAST_COUNT, LEAST_LENGTH, LINKS, CompoundSplitter

COUNTS = Counter({
    "Aktion": 960, "Aktionsplan": 2, "Plan": 710, "Akt": 5, "Ion": 3, "Tag": 90, "Frei": 40, "Freitag": 800, "und": 500,
    "der": 900, "Brot": 6, "Abend": 7, "Tisch": 8, "Hände": 4,
})


def every_cut(word, least):
    if not word:
        return [[]]
    return [[word[:end], *rest] for end in range(least, len(word) + 1) for rest in every_cut(word[end:], least)]


def by_enumeration(word):
    """The greatest geometric mean of counts over all cuts, and the cut; the word itself if none is better."""
    lowered, best = Counter(), (0.0, [word])
    for known, count in COUNTS.items():
        lowered[known.lower()] += count
    if lowered[word.lower()]:
        best = (math.log(lowered[word.lower()]), [word])
    for parts in every_cut(word, LEAST_LENGTH):
        if len(parts) < 2:
            continue
        counts = []
        for i, part in enumerate(parts):
            stems = [part.lower()]
            if i + 1 < len(parts):
                stems += [part.lower().removesuffix(link) for link in LINKS if part.lower().endswith(link)]
            known = [lowered[s] for s in stems if len(s) >= LEAST_LENGTH]
            counts.append(max((c for c in known if c >= LEAST_COUNT), default=0))
        if min(counts):
            mean = sum(map(math.log, counts)) / len(counts)
            if mean > best[0]:
                best = (mean, parts)
    return best


@pytest.mark.parametrize("word", ["Aktionsplan", "Freitag", "Abendbrottisch", "Tagesplan", "Tisch", "Derplan", "Qwertz",
                                  "Händetag", "Abendtagundplan", "", "A"])
def test_the_greatest_geometric_mean_over_all_cuts(word):
    found = CompoundSplitter(COUNTS)(word)
    assert "".join(found) == word
    assert found == by_enumeration(word)[1]


def test_the_example_of_the_paper():
    splitter = CompoundSplitter(COUNTS)
    assert splitter("Aktionsplan") == ["Aktions", "plan"]
    assert splitter("Freitag") == ["Freitag"]  # more frequent than the geometric mean of Frei and Tag
    assert splitter("TAGESPLAN") == ["TAGES", "PLAN"]


def test_what_is_no_word_of_letters_stays_whole():
    splitter = CompoundSplitter({"12": 5, "abc": 9, "def": 9})
    assert [splitter(w) for w in ("1212", "abc-def", "abcdef", "İabcdef")] == [
        ["1212"], ["abc-def"], ["abc", "def"], ["İabcdef"]]


def test_rare_parts_do_not_count():
    assert CompoundSplitter({"abc": 2, "def": 9})("abcdef") == ["abc", "def"]
    assert CompoundSplitter({"abc": 1, "def": 9})("abcdef") == ["abcdef"]
