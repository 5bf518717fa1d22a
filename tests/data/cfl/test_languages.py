import json

import numpy as np
import pytest

from seqstruct.data.cfl.languages import LANGUAGES, MAX_LENGTH, get_language


@pytest.fixture(params=LANGUAGES)
def case(request, golden):
    return request.param, json.loads(golden("cfl", f"{request.param}.json").read_text("utf-8"))


def test_grammar_is_the_published_one(case):
    name, truth = case
    grammar = get_language(name).grammar
    ids = {symbol: str(i) for i, symbol in enumerate(grammar.terminals)}
    ours = {(r.left, tuple(ids.get(s, s) for s in r.right)): r.weight for r in grammar.rules}
    theirs = {(r["lhs"], tuple(r["rhs"])): r["p"] for r in truth["pcfg_as_written"]}
    assert ours == pytest.approx(theirs, rel=1e-12)
    assert grammar.start == truth["start"]
    assert list(grammar.terminals) == truth["vocab"]


def test_weights_of_each_nonterminal_sum_to_one(case):
    grammar = get_language(case[0]).grammar
    for name in grammar.nonterminals:
        assert sum(r.weight for r in grammar.rules if r.left == name) == pytest.approx(1.0, rel=1e-12)


def test_log_inside(case):
    name, truth = case
    found = get_language(name).log_inside(100)
    for length, value in truth["log_inside_by_length"]:
        assert found[length] == pytest.approx(value, abs=1e-10)


def test_valid_lengths(case):
    name, truth = case
    language = get_language(name)
    assert language.valid_lengths(1, 100) == truth["valid_lengths_1_to_100"]
    assert len(language.valid_lengths(40, 80)) == truth["n_valid_40_80"]
    assert len(language.valid_lengths(40, 100)) == truth["n_valid_40_100"]


def test_lengths_as_written():
    assert get_language("dyck", "as-written").valid_lengths(1, 5) == [2, 4]
    assert get_language("padded-reversal", "as-written").valid_lengths(1, 3) == [1, 2, 3]


def test_inside_does_not_depend_on_how_far_it_is_made():
    language = get_language("dyck")
    np.testing.assert_array_equal(language.inside(200)[:50], language.inside(49))
    assert np.isfinite(language.log_inside(MAX_LENGTH)[MAX_LENGTH])


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (41, 41, "dyck has no string of length 41"),
        (1, 3, "dyck has no string of length 1 to 3"),
        (0, 8, "lengths go from 1"),
        (8, 7, "the smaller first; got 8:7"),
        (8, MAX_LENGTH + 1, f"to {MAX_LENGTH}"),
    ],
)
def test_impossible_lengths(low, high, message):
    with pytest.raises(ValueError, match=message):
        get_language("dyck").valid_lengths(low, high)


def test_names():
    with pytest.raises(ValueError, match="no language is called 'dick'; there are: marked-reversal, "):
        get_language("dick")
    assert get_language("dyck").encode("([])") == [0, 2, 3, 1]
    with pytest.raises(ValueError, match="symbol 3, 'x', is not one of dyck"):
        get_language("dyck").encode("()x")
