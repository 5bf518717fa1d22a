import itertools

import numpy as np
import pytest

from seqstruct.data.cfl.chart import log_probabilities
from seqstruct.data.cfl.own import own_language

AUTOMATON = """
# two states start; from 2 to 0 nothing is read
start 0 0.5
start 2
final 1 1/4
final 2 3
0 0 a 0.25
0 1 a 2
1 2 b 0.5
2 2 b
1 1 c 0.125
2 0 <eps> 0.3
0 2 <eps> 0.4
"""


def matrices():
    """Weights of start and end, of each symbol and of the paths that read nothing."""
    start, final = np.array([0.5, 0, 1]), np.array([0, 0.25, 3])
    steps = {symbol: np.zeros((3, 3)) for symbol in "abc"}
    steps["a"][0, 0], steps["a"][0, 1] = 0.25, 2
    steps["b"][1, 2], steps["b"][2, 2] = 0.5, 1
    steps["c"][1, 1] = 0.125
    silent = np.zeros((3, 3))
    silent[2, 0], silent[0, 2] = 0.3, 0.4
    return start, final, steps, np.linalg.inv(np.eye(3) - silent)


def test_strings_weigh_what_the_matrices_multiply_to():
    start, final, steps, silent = matrices()
    language = own_language("a.wfsa", "wfsa", AUTOMATON)
    assert language.terminals == ("a", "b", "c")
    for length in range(1, 6):
        strings, weights = list(itertools.product(range(3), repeat=length)), []
        for string in strings:
            row = start @ silent
            for symbol in string:
                row = row @ steps["abc"[symbol]] @ silent
            weights.append(row @ final)
        with np.errstate(divide="ignore"):
            truth = np.log(weights) - np.log(sum(weights))
        np.testing.assert_allclose(log_probabilities(language, strings), truth, rtol=0, atol=1e-12)


def test_long_strings_by_matrices_in_logarithms():
    start, final, steps, silent = matrices()
    language = own_language("a.wfsa", "wfsa", AUTOMATON)
    every = sum(steps.values())
    row, whole, logs = start @ silent, start @ silent, np.zeros(2)
    string = np.random.default_rng(1).choice([0, 0, 1, 1, 2], 300)
    for symbol in string:
        row, whole = row @ steps["abc"[symbol]] @ silent, whole @ every @ silent
        logs += np.log([row.sum() or 1, whole.sum()])
        row, whole = row / (row.sum() or 1), whole / whole.sum()
    with np.errstate(divide="ignore"):
        truth = np.log(row @ final) + logs[0] - np.log(whole @ final) - logs[1]
    assert log_probabilities(language, [string])[0] == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a line `start STATE .WEIGHT.`, got none"),
        ("start 0", "expected a line `final STATE"),
        ("start 0\nfinal 0\n0 0", "line 3: expected start STATE .WEIGHT., final STATE .WEIGHT. or STATE STATE SYMBOL"),
        ("start 0\nfinal 0\n0 0 a 1 2", "line 3: expected start STATE"),
        ("start 0 1 2\nfinal 0", "line 1: expected start STATE"),
        ("start", "line 1: expected start STATE"),
        ("start 0\nfinal 0\n0 0 a x", "line 3: expected a weight above 0, such as 0.25 or 1/4, got 'x'"),
        ("start 0\nfinal 0 0", "line 2: expected a weight above 0"),
        ("start 0\nfinal 0\n0 0 a\n# more\n0 0 a 2", "line 5: 0 0 a stands in line 3 already"),
        ("start 0\nfinal 0\n0 0 a 1/", "line 3: expected a weight above 0, such as 0.25 or 1/4, got '1/'"),
        ("start 0\nfinal 0\n0 final a", "line 3: a state is any word but start and final, got '0 final a'"),
        ("start 0\nfinal 0\nstart final", "line 3: a state is any word but start and final, got 'start final'"),
        ("start 0\nfinal 0\n0 0 <pad>", "line 3: a terminal is a word"),
        ("start 0\nfinal 1\n0 0 a", "line 1: start 0: derives no string: the language is empty"),
        ("start 0\nfinal 0", "the empty string is its only string"),
        ("start 0\nfinal 0\n0 0 a\n0 1 <eps> 2\n1 0 <eps> 0.5", "line 4: 0 1 <eps>: derivations go round here without"),
    ],
)
def test_what_is_no_automaton_is_refused_with_its_line(text, message):
    with pytest.raises(ValueError, match=message):
        own_language("a.wfsa", "wfsa", text)


def test_states_that_lead_nowhere_are_reported():
    language = own_language("a.wfsa", "wfsa", "start 0\nfinal 0\n0 0 a\n0 7 b\n5 0 a\n")
    assert language.terminals == ("a",)
    assert language.notes[:2] == (
        "line 4: 0 7 b: 7 derives no string; its rules are left out",
        "line 5: 5 0 a: 5 is reached by no derivation; its rules are left out",
    )
