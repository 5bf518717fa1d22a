"""Phrase pairs beside their definition, the scores of a table, and a table made of two files."""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from itertools import product

import pytest

from seqstruct.cli import main
from seqstruct.data.made_up.translation import made_up_pairs
from seqstruct.data.text.phrase_extraction import phrase_spans, table_lines

try:
    import systran_align
except ImportError:
    systran_align = None

PAIRS = [("a b".split(), "x y z".split()), ("b".split(), "z".split()), ("a b".split(), "z".split())]
LINKS = [{(0, 0), (1, 2)}, {(0, 0)}, {(0, 0), (1, 0)}]


def by_definition(lengths, links, longest):
    """All pairs of spans in which some words are linked, and none to a word outside."""
    sides = [[(b, e) for b in range(n) for e in range(b + 1, min(b + longest, n) + 1)] for n in lengths]
    for (i0, i1), (j0, j1) in product(*sides):
        inside = [i0 <= i < i1 and j0 <= j < j1 for i, j in links]
        touching = [i0 <= i < i1 or j0 <= j < j1 for i, j in links]
        if any(inside) and inside == touching:
            yield i0, i1, j0, j1


@pytest.mark.parametrize("longest", [1, 2, 3, 7])
def test_spans_are_those_of_the_definition(longest):
    draw = random.Random(longest)
    for lengths in product(range(7), repeat=2):
        for _ in range(5):
            links = [link for link in product(*map(range, lengths)) if draw.random() < 0.25]
            draw.shuffle(links)
            found = list(phrase_spans(lengths, links, longest))
            assert sorted(found) == sorted(by_definition(lengths, links, longest)), (lengths, links)


def test_the_scores_of_a_table_counted_by_hand():
    assert list(table_lines(PAIRS, LINKS, 2)) == [
        "a ||| x ||| 1 1 0.5 0.5 ||| 0-0 ||| 1 2 1",  # a is linked to x and to z: lex(x | a) = 1 / 2
        "a ||| x y ||| 1 1 0.5 0.5 ||| 0-0 ||| 1 2 1",  # y to nothing, and alone so: lex(y | NULL) = 1
        # of z's four links one is to a: lex = 1/4 * 3/4; and (lex(z | a) + lex(z | b)) / 2 = (1/2 + 1) / 2
        "a b ||| z ||| 0.333333 0.1875 1 0.75 ||| 0-0 1-0 ||| 3 1 1",
        "b ||| y z ||| 1 0.75 0.333333 1 ||| 0-1 ||| 1 3 1",
        "b ||| z ||| 0.666667 0.75 0.666667 1 ||| 0-0 ||| 3 3 2",
    ]


def test_probabilities_sum_to_one_over_the_targets_and_over_the_sources():
    draw = random.Random(3)
    pairs = [([draw.choice("abc") for _ in range(5)], [draw.choice("xyz") for _ in range(7)]) for _ in range(13)]
    links = [{(i, j) for i, j in product(range(5), range(7)) if draw.random() < 0.2} for _ in pairs]
    sums = [defaultdict(float), defaultdict(float)]
    for line in table_lines(pairs, links, 4):
        source, target, scores, *_ = line.split(" ||| ")
        inverse, lexical_inverse, direct, lexical = map(float, scores.split())
        assert 0 < lexical <= 1 and 0 < lexical_inverse <= 1
        sums[0][source] += direct
        sums[1][target] += inverse
    assert len(sums[0]) > 5
    for value in (value for side in sums for value in side.values()):
        assert value == pytest.approx(1, abs=5e-6)  # six digits are written of each


@pytest.fixture
def prefix(tmp_path):
    pairs = made_up_pairs(300, random.Random(1))
    for side, language in enumerate(("de", "en")):
        (tmp_path / f"text.{language}").write_text("".join(f"{pair[side]}\n" for pair in pairs).replace(".\n", " .\n"))
    return tmp_path / "text"


def prepare(prefix, out, *words):
    return main(["prepare", "phrase-table", str(prefix), "--src", "de", "--trg", "en", "--out", str(out), *words])


@pytest.mark.skipif(systran_align is None, reason="systran-align is not installed (extra `align`)")
def test_a_table_of_two_files_is_the_same_twice_and_has_the_right_phrase_first(prefix, tmp_path, capsys):
    for name in ("first", "second"):
        assert prepare(prefix, tmp_path / name, "--longest", "3") == 0
    first, second = (tmp_path / name / "phrase-table" for name in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()
    best = {}
    for line in first.read_text().splitlines():
        source, target, scores, *_ = line.split(" ||| ")
        assert max(len(source.split()), len(target.split())) <= 3
        best[source] = max(best.get(source, (0.0, "")), (float(scores.split()[2]), target))
    assert (best["Der Hund"][1], best["Der Vogel"][1]) == ("The dog", "The bird")
    assert f"300 sentence pairs: {len(first.read_text().splitlines())} phrase pairs" in capsys.readouterr().out


def test_refusals(prefix, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "systran_align", None)
    assert prepare(prefix, tmp_path / "out") == 1
    assert "needs systran-align (Python up to 3.11): pip install 'seqstruct[align]'" in capsys.readouterr().err
    assert prepare(prefix, tmp_path / "out", "--longest", "0") == 1
    assert "longest is at least 1, not 0" in capsys.readouterr().err
    assert prepare(tmp_path / "none", tmp_path / "out") == 1
    assert "none.de: no such file" in capsys.readouterr().err
    text = prefix.with_suffix(".de")
    lines = text.read_text()
    for word in ("|||", "D|||r"):  # of which a reader of the table makes two fields
        text.write_text(lines.replace("Der", word, 1))
        assert prepare(prefix, tmp_path / "out") == 1
        assert "line 1: expected no '|||'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
