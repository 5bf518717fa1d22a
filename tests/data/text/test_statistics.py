import sys
from collections import Counter

import pytest

from seqstruct.data.text.statistics import SEGMENTATIONS, CutOptions, count_words, line_of

TRAIN = ["low lower lowest low", "new newer newest new low"]
TEST = ["low newst x", "slower neue"]
OTHER = ["niedrig niedriger", "neu neuer"]
OPTIONS = CutOptions("en", vocabulary=25, joint_vocabulary=30, shortlist=2)


def line(name, options=OPTIONS, other=OTHER):
    return line_of(name, count_words(TRAIN), count_words(TEST), count_words(other) if other else None, options)


def by_hand(name):
    """The same numbers from the text cut token by token."""
    cut = SEGMENTATIONS[name](count_words(TRAIN), count_words(OTHER), OPTIONS)

    def tokens(lines):
        return [seg + ("" if i + 1 == len(cut(w)) else "@@") for line in lines for w in line.split()
                for i, seg in enumerate(cut(w))]

    train = tokens(TRAIN)
    return len(train), len(set(train)), sum(t not in set(train) for t in tokens(TEST))


@pytest.mark.parametrize("name", [n for n in SEGMENTATIONS if n not in ("morfessor", "hyphenation")])
def test_the_numbers_are_those_of_the_segmented_text(name):
    found = line(name)
    assert (found.tokens, found.types, found.unknown) == by_hand(name)
    assert not found.missing


def test_small_numbers_by_hand():
    found = {name: line(name) for name in ("none", "characters", "character bigrams", "character bigrams (shortlist)")}
    assert (found["none"].tokens, found["none"].types, found["none"].unknown) == (9, 6, 4)  # newst x slower neue
    assert found["characters"].tokens == sum(len(word) * n for word, n in count_words(TRAIN).items())
    assert found["characters"].unknown == 3  # x, u, and e at the end of a word
    assert found["character bigrams (shortlist)"].tokens == found["character bigrams"].tokens - 5  # low and new whole


@pytest.mark.parametrize("name", SEGMENTATIONS)
def test_every_segmentation_is_lossless(name):
    if name in ("morfessor", "hyphenation"):
        pytest.importorskip({"morfessor": "morfessor", "hyphenation": "pyphen"}[name])
    cut = SEGMENTATIONS[name](count_words(TRAIN), count_words(OTHER), OPTIONS)
    for word in [w for line in TRAIN + TEST for w in line.split()] + ["Straße", "½€😀ab", "日本語"]:
        parts = cut(word)
        assert "".join(parts) == word
        assert all(parts)


def test_what_is_missing_is_said(monkeypatch):
    for module, name in (("morfessor", "morfessor"), ("pyphen", "hyphenation")):
        monkeypatch.setitem(sys.modules, module, None)
        found = line(name)
        assert found.missing == f"{module} is not installed: pip install {module}"
        assert (found.tokens, found.types, found.unknown) == (0, 0, 0)
    assert line("BPE (joint)", other=None).missing == "the other language's text was not given"


def test_the_shortlist_is_one_list_whatever_the_order_of_the_text():
    counts = Counter({"bb": 2, "aa": 2, "cc": 1})
    reversed_counts = Counter(dict(reversed(counts.items())))
    for found in (counts, reversed_counts):
        cut = SEGMENTATIONS["character bigrams (shortlist)"](found, None, CutOptions("en", shortlist=1))
        assert cut("aa") == ["aa"]
        assert cut("bbb") == ["bb", "b"]


def test_refusals():
    with pytest.raises(ValueError, match="expected one of none, characters"):
        line("syllables")
    with pytest.raises(ValueError, match="shortlist: expected 1 or more, got 0"):
        CutOptions("en", shortlist=0)


def test_multi30k_has_the_order_of_the_published_table(reference):
    from seqstruct.data.text.aligned import read_lines
    from seqstruct.data.text.subwords import moses_tokenizer

    tokenize = moses_tokenizer("de")
    folder = reference / "data" / "multi30k"
    lines = [tokenize(line) for line in read_lines(folder / "val.de.gz")]
    train, test = count_words(lines[:800]), count_words(lines[800:])
    names = ("none", "characters", "character bigrams", "character trigrams", "compound splitting", "BPE")
    found = {n: line_of(n, train, test, None, CutOptions("de", vocabulary=1000)) for n in names}
    assert found["none"].tokens < found["compound splitting"].tokens < found["BPE"].tokens
    assert found["BPE"].tokens < found["character trigrams"].tokens < found["character bigrams"].tokens
    assert found["character bigrams"].tokens < found["characters"].tokens
    assert found["none"].types > found["BPE"].types > found["characters"].types
    assert found["none"].unknown > found["compound splitting"].unknown > found["BPE"].unknown
