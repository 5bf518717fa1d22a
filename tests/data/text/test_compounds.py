import math
from collections import Counter

import pytest

from seqstruct.data.text.compounds import LINKS, CompoundSplitter

COUNTS = Counter({
    "Aktion": 960, "Aktionsplan": 2, "Plan": 710, "Akt": 5, "Ion": 3, "Tag": 90, "Frei": 40, "Freitag": 800, "und": 500,
    "der": 900, "Brot": 6, "Abend": 7, "Tisch": 8, "Hände": 4,
})  # fmt: skip


def every_cut(word, least):
    if not word:
        return [[]]
    return [[word[:end], *rest] for end in range(least, len(word) + 1) for rest in every_cut(word[end:], least)]


def by_enumeration(splitter, word):
    """The greatest geometric mean of counts over all cuts, and the cut; the word itself if none is better."""
    lowered, best = Counter(), (0.0, [word])
    for known, count in COUNTS.items():
        lowered[known.lower()] += count
    if lowered[word.lower()]:
        best = (math.log(lowered[word.lower()]), [word])
    for parts in every_cut(word, splitter.least_length):
        if len(parts) < 2:
            continue
        counts = []
        for i, part in enumerate(parts):
            stems = [part.lower()]
            if i + 1 < len(parts):
                stems += [part.lower().removesuffix(link) for link in LINKS if part.lower().endswith(link)]
            known = [lowered[s] for s in stems if len(s) >= splitter.least_length]
            counts.append(max((c for c in known if c >= splitter.least_count), default=0))
        if min(counts):
            mean = sum(map(math.log, counts)) / len(counts)
            if mean > best[0]:
                best = (mean, parts)
    return best


@pytest.mark.parametrize("least_length", [2, 3])
@pytest.mark.parametrize("word", ["Aktionsplan", "Freitag", "Abendbrottisch", "Tagesplan", "Tisch", "Derplan", "Qwertz",
                                  "Händetag", "Abendtagundplan", "", "A"])
def test_the_greatest_geometric_mean_over_all_cuts(word, least_length):
    splitter = CompoundSplitter(COUNTS, least_length)
    found = splitter(word)
    assert "".join(found) == word
    assert found == by_enumeration(splitter, word)[1]


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
    counts = {"abc": 1, "def": 9}
    assert CompoundSplitter(counts, least_count=1)("abcdef") == ["abc", "def"]
    assert CompoundSplitter(counts, least_count=2)("abcdef") == ["abcdef"]
    with pytest.raises(ValueError, match="expected 1 or more, got 0 and 2"):
        CompoundSplitter(counts, least_length=0)
