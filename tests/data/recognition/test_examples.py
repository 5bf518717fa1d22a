"""Positive and negative strings: labels, how negative ones come about, edits, what trivial rules have right."""

from __future__ import annotations

from collections import Counter
from math import sqrt
from random import Random

import numpy as np
import pytest

from seqstruct.data.recognition.examples import LabelledString, draw_examples, edited
from seqstruct.data.recognition.languages import LANGUAGES
from seqstruct.data.recognition.trivial import COUNTS, LOOKS, middle, odd, trivially_right
from tests.data.recognition.definitions import DEFINITIONS


@pytest.mark.parametrize("name", LANGUAGES)
def test_labels_are_memberships(name):
    examples = draw_examples(LANGUAGES[name], 300, (0, 14), Random(2))
    assert [e.member for e in examples] == [DEFINITIONS[name](e.string) for e in examples]
    assert all(len(e.string) <= 14 and set(e.string) <= set(LANGUAGES[name].terminals) for e in examples)
    assert 110 < sum(e.member for e in examples) < 190
    assert examples == draw_examples(LANGUAGES[name], 300, (0, 14), Random(2))


def test_lengths_of_members_are_uniform_among_those_of_the_language():
    examples = draw_examples(LANGUAGES["marked-copy"], 6000, (2, 11), Random(4))
    counts = Counter(len(e.string) for e in examples if e.member)
    total = counts.total()
    assert set(counts) == {3, 5, 7, 9, 11}
    assert all(abs(count - total / 5) < 5 * sqrt(total * 0.16) for count in counts.values())


def test_shares_of_negative_strings():
    """Edits of (01)* leave strings near to it, and a random string of length 60 is not so."""
    language = LANGUAGES["repeat-01"]
    negative = [e.string for e in draw_examples(language, 1600, (60, 62), Random(5)) if not e.member]
    near = [s for s in negative if s.count("01") > 24]
    assert abs(len(near) / len(negative) - 0.5) < 5 * sqrt(0.25 / len(negative))


def test_one_edit_is_uniform():
    """Of "01" between lengths 1 and 3: three ways, then places, then symbols."""
    generator, draws = Random(6), 6000
    counts = Counter(edited("01", "01", (1, 3), generator) for _ in range(draws))
    third = draws / 3
    insertions = Counter("01"[:i] + c + "01"[i:] for i in range(3) for c in "01")
    expected = {"11": third / 2, "00": third / 2, "0": third / 2, "1": third / 2}
    expected |= {s: third * n / 6 for s, n in insertions.items()}
    assert set(counts) == set(expected)
    assert all(abs(counts[s] - e) < 5 * sqrt(e) for s, e in expected.items())


def test_edits_keep_the_length_in_its_range():
    generator = Random(7)
    assert {len(edited("0101", "01", (4, 4), generator)) for _ in range(60)} == {4}
    assert {len(edited("0101", "01", (4, 5), generator)) for _ in range(60)} == {4, 5}
    assert {edited("", "ab", (0, 3), generator) for _ in range(60)} == {"a", "b"}
    assert edited("", "ab", (0, 0), generator) == ""


def test_strings_that_cannot_be_had():
    with pytest.raises(ValueError, match="of 1000 strings of length 0 to 0 all are in even-pairs"):
        draw_examples(LANGUAGES["even-pairs"], 50, (0, 0), Random(1))
    with pytest.raises(ValueError, match="parity has no string of length 0"):
        draw_examples(LANGUAGES["parity"], 1, (0, 0), Random(1))


def labelled(*lines: str) -> list[LabelledString]:
    return [LabelledString(line[0] == "+", line[1:]) for line in lines]


def test_trivial_rules_by_hand():
    """Training: most are no members, 1 begins members, 0 ends them, length 3 is a member's, odd lengths are."""
    train = labelled("+100", "+110", "-01", "-01", "-0", "-11", "+100")
    test = labelled("+100", "-01", "+00", "-10", "+11100", "-")
    found = dict(zip(LOOKS, trivially_right(train, test).tolist(), strict=True))
    assert found == {
        "majority": [False, True, False, True, False, True],
        "first symbol": [True, True, False, False, True, True],
        "last symbol": [True, True, True, False, True, True],
        "length": [True, True, False, True, False, True],
        "even or odd": [True, True, False, True, True, True],
    }
    assert trivially_right(train, []).shape == (len(LOOKS), 0)


def test_rules_that_count_by_hand():
    """Training: members have an even number of each symbol, end as they begin, or have # in the middle alone."""
    train = labelled("+0110", "+11", "-011", "-0101", "-0#", "+1#1", "-11#")
    test = labelled("+1001", "-1010", "+00", "+0#1", "-1##")
    found = dict(zip(COUNTS, trivially_right(train, test, COUNTS).tolist(), strict=True))
    assert found == {
        "parities": [True, False, True, False, True],
        "parities and ends": [True, True, True, False, True],
        "parities and two at each end": [False, True, False, False, True],
        "middle": [False, True, False, True, True],
    }
    assert [middle(s) for s in ("", "0", "01", "0#1", "0#0##", "##0")] == ["", "0", "", "#", "", ""]
    assert odd("0110#") == {"#"} and odd("") == frozenset()


def test_the_majority_answers_what_training_never_has():
    train, test = labelled("+0", "+0", "+0", "-1", "-1"), labelled("+000", "-000")
    found = dict(zip(LOOKS, trivially_right(train, test).tolist(), strict=True))
    assert found["length"] == [True, False] == found["majority"]
    assert np.array_equal(trivially_right(labelled("+0", "-0"), labelled("-0")), np.ones((len(LOOKS), 1), dtype=bool))
