"""ListOps: values by brute force, lengths, uniqueness, shares of what is drawn, and the folder."""

from __future__ import annotations

import itertools
import random
import re
import statistics

import numpy as np
import pytest

from seqstruct.cli import main
from seqstruct.data.listops import formulas
from seqstruct.data.listops.folder import write_folder
from seqstruct.data.listops.formulas import (
    END,
    OPERATIONS,
    OPERATORS,
    SYMBOLS,
    FormulaOptions,
    check_cost,
    draw,
    draw_distinct,
    length_shares,
)
from seqstruct.data.text_classification.folder import read_meta, read_split


def by_rewriting(text: str) -> str:
    """The value by repeated replacement of the innermost operation, with the standard library's median."""
    of = {"MIN": min, "MAX": max, "MED": lambda v: int(statistics.median(v)), "SM": lambda v: sum(v) % 10}
    innermost = re.compile(r"\[(MIN|MAX|MED|SM) ([\d ]+?) \]")
    while "[" in text:
        text = innermost.sub(lambda m: str(of[m[1]](list(map(int, m[2].split())))), text, count=1)
    return text


def test_every_operation_on_few_digits():
    for count in (1, 2, 3):
        for values in itertools.product(range(10), repeat=count):
            for operator in OPERATORS:
                text = f"{operator} {' '.join(map(str, values))} {END}"
                assert str(OPERATIONS[operator](values)) == by_rewriting(text)


def test_the_drawn_value_is_the_value():
    generator = random.Random(3)
    drawn = list(draw_distinct(FormulaOptions((5, 60), max_depth=4, max_args=5), 300, generator, set()))
    assert len({" ".join(tokens) for tokens, _ in drawn}) == 300
    for tokens, value in drawn:
        assert 5 <= len(tokens) <= 60 and set(tokens) <= set(SYMBOLS)
        assert str(value) == by_rewriting(" ".join(tokens))
    assert by_rewriting("[MAX 4 3 [MIN 2 3 ] 1 0 [MED 1 5 8 9 2 ] ]") == "5"


def test_shares_of_what_is_drawn():
    """A quarter are operations where both may stand; operators, digits and numbers of arguments are uniform."""
    generator = random.Random(5)
    drawn = [draw(FormulaOptions((1, 99), max_depth=2, max_args=4), generator)[0] for _ in range(8000)]
    nested = [tokens for tokens in drawn if len(tokens) > 1]
    assert 0.23 < len(nested) / 8000 < 0.27
    for arguments in (2, 3, 4):
        assert 0.29 < sum(len(tokens) == arguments + 2 for tokens in nested) / len(nested) < 0.38
    for operator in OPERATORS:
        assert 0.21 < sum(tokens[0] == operator for tokens in nested) / len(nested) < 0.29
    digits = [token for tokens in drawn for token in tokens if token.isdigit()]
    for digit in "0123456789":
        assert 0.085 < digits.count(digit) / len(digits) < 0.115


def depth_of(tokens):
    depths = itertools.accumulate((token in OPERATORS) - (token == END) for token in tokens)
    return max(depths) + 1


def test_depth_and_arguments_are_bounded():
    options = FormulaOptions((20, 400), max_depth=4, max_args=3)
    drawn = [tokens for tokens, _ in draw_distinct(options, 50, random.Random(1), set())]
    assert max(map(depth_of, drawn)) == 4
    assert max(map(len, drawn)) <= 2 + 3 * (2 + 3 * (2 + 3))


def test_the_arena_lengths():
    (tokens, value), = draw_distinct(FormulaOptions(), 1, random.Random(2), set())
    assert 501 <= len(tokens) <= 1999 and by_rewriting(" ".join(tokens)) == str(value)


def test_a_folder_is_read_by_the_task(tmp_path, capsys):
    words = ["--lengths", "10:40", "--valid", "7", "--test", "5", "--seed", "3"]
    for name, count in (("a", "30"), ("b", "40")):
        assert main(["prepare", "listops", *words, "--train", count, "--out", str(tmp_path / name)]) == 0
    assert "30 train, 7 valid, 5 test formulas of 10 to 40 tokens" in capsys.readouterr().out
    meta = read_meta(tmp_path / "a")
    assert meta["labels"] == [str(d) for d in range(10)] and meta["sentences"] == {"train": 30, "valid": 7, "test": 5}
    assert meta["pairs"] is False and meta["lengths"] == [10, 40]
    seen = set()
    for split in ("train", "valid", "test"):
        texts, labels = read_split(tmp_path / "a", split, meta)
        assert [int(by_rewriting(" ".join(tokens))) for tokens in texts] == labels
        seen |= {tuple(tokens) for tokens in texts}
        if split != "train":
            assert (tmp_path / "a" / f"{split}.txt").read_text() == (tmp_path / "b" / f"{split}.txt").read_text()
    assert len(seen) == 42
    assert [line.split()[0] for line in (tmp_path / "a" / "dict.txt").read_text().splitlines()] == list(SYMBOLS)


@pytest.mark.parametrize("options", [
    FormulaOptions((3, 12), max_depth=2, max_args=4), FormulaOptions((5, 9), max_depth=3, max_args=2),
    FormulaOptions((1, 1), max_depth=1),
    FormulaOptions((1, 40), max_depth=4, max_args=3),
])
def test_shares_of_lengths(options):
    """Against sums of products of shares, one depth after another."""
    most = options.lengths[1]
    expected = digit = np.eye(most + 1)[1]
    for _ in range(options.max_depth - 1):
        powers = [expected]
        for _ in range(2, options.max_args + 1):
            powers.append(np.convolve(powers[-1], expected)[: most + 1])
        mean = sum(powers[1:]) / (options.max_args - 1)
        expected = 0.75 * digit + 0.25 * np.concatenate([[0, 0], mean])[: most + 1]
    np.testing.assert_allclose(length_shares(options), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("words", "message"), [
    ("--lengths 2:3", "not one draw in a billion gives a formula of 2 to 3 tokens with depth 10 and 10 arguments"),
    ("--lengths 1999:1999 --train 1000000", "one draw in 56,313 gives .* too rare to draw 1,004,000 of them; widen"),
    ("--lengths 90000:100000 --max-depth 9", "not one draw in a billion"),
    ("--train 1000000000", "expected 10,000,000 formulas or fewer in all, got 1,000,004,000"),
    ("--lengths 5:1000000", "lengths: expected 100000 or less, got 1000000"),
    ("--max-depth 5000", "max_depth: expected 100 or less, got 5000"),
    ("--max-args 100000", "max_args: expected 1000 or less, got 100000"),
    ("--lengths 1:1 --train 11 --valid 1 --test 1", "draws brought no new formula of 1 to 1 tokens"),
])
def test_what_cannot_be_drawn_is_refused_and_leaves_nothing(words, message, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(formulas, "MOST_REJECTED", 500)
    assert main(["prepare", "listops", *words.split(), "--out", str(tmp_path / "out")]) == 1
    assert re.search(message, capsys.readouterr().err)
    assert not list(tmp_path.iterdir())


def test_the_arena_is_far_from_the_bounds():
    check_cost(FormulaOptions(), 50 * 100_000)


def test_wrong_options(tmp_path, capsys, monkeypatch):
    for changed, message in (
        ({"lengths": (5, 4)}, "5:4"), ({"lengths": (0, 4)}, "0:4"), ({"max_depth": 0}, "max_depth"),
        ({"max_args": 1}, "max_args: expected 2"),
    ):
        with pytest.raises(ValueError, match=message):
            FormulaOptions(**changed)
    counts = {"train": 4, "valid": 4, "test": 4}
    with pytest.raises(ValueError, match="valid: expected 1 formula or more, got 0"):
        write_folder(tmp_path / "out", FormulaOptions(), {**counts, "valid": 0}, 1)
    monkeypatch.setattr(formulas, "MOST_REJECTED", 500)
    with pytest.raises(ValueError, match="500 draws brought no new formula of 1 to 1 tokens"):
        write_folder(tmp_path / "out", FormulaOptions((1, 1), 1), counts, 1)
    with pytest.raises(SystemExit):
        main(["prepare", "listops", "--lengths", "100-300", "--out", str(tmp_path / "out")])
    assert "expected LOW:HIGH, such as 40:80, not '100-300'" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
