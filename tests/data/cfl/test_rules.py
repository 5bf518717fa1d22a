import math

import pytest

from seqstruct.data.cfl.rules import read_rules


def test_the_example_of_the_module():
    text = """
    # clauses, one inside another
    S  -> NP VP [0.9] | NP VP "that" S [0.1]
    NP -> "the" N
    N  -> "dog" | "cat" | 'mouse' [1/2]   # half of all
    VP -> V | V NP
    V  -> "#->|[]"
        | "sees" [ 2e-1 ]
    """
    grammar, places = read_rules(text.splitlines())
    short = {(r.left.split()[-1], tuple(s.split()[-1] for s in r.right)): r.weight for r in grammar.rules}
    assert short == pytest.approx({
        ("S", ("NP", "VP")): 0.9, ("S", ("NP", "VP", "that", "S")): 0.1, ("NP", ("the", "N")): 1.0,
        ("N", ("dog",)): 0.25, ("N", ("cat",)): 0.25, ("N", ("mouse",)): 0.5, ("VP", ("V",)): 0.5,
        ("VP", ("V", "NP")): 0.5, ("V", ("#->|[]",)): 0.8, ("V", ("sees",)): 0.2,
    })
    assert grammar.terminals == ("that", "the", "dog", "cat", "mouse", "#->|[]", "sees")
    assert grammar.start == grammar.rules[0].left
    assert places[1] == 'line 3: S -> NP VP "that" S' and places[-1] == 'line 8: V -> "sees"'


def test_empty_right_hand_sides_and_names():
    grammar, _ = read_rules(["S->|NP-x' S[0.2]|'S'", "NP-x' -> [1/3]", "| \"NP-x'\" [7]"])
    start, other = grammar.nonterminals
    assert [tuple(rule) for rule in grammar.rules] == [
        (start, (), 0.4), (start, (other, start), 0.2), (start, ("S",), 0.4),
        (other, (), 1 / 3), (other, ("NP-x'",), 7.0),
    ]


def test_shares_are_of_all_lines_of_a_left_hand_side():
    grammar, _ = read_rules(['S -> "a" | "b" [0.4]', 'T -> "a"', 'S -> T | "c" [0.1]'])
    assert [r.weight for r in grammar.rules] == pytest.approx([0.25, 0.4, 1.0, 0.25, 0.1])
    assert math.fsum(r.weight for r in grammar.rules if r.left == grammar.start) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected rules such as"),
        ("# nothing\n\n", "expected rules such as"),
        ('S -> "a"\nS "b"', "line 2: expected NAME -> SYMBOL ... .WEIGHT. | ..., got 'S \"b\"'"),
        ('"a" -> S', "line 1: expected NAME -> SYMBOL"),
        ('| "a"', "line 1: expected NAME -> SYMBOL"),
        ('S -> "a" -> "b"', "line 1: expected one -> in a line"),
        ('S -> "a"\nT -> "b', "line 2, column 6: expected a name, a terminal in quotes"),
        ("S -> a b", "line 1: S -> a b: a has no rule; a terminal stands in quotes"),
        ('S -> "a" | A [0.1]', "line 1: S -> A: A has no rule"),
        ('S -> "a" [0.5', "line 1, column 10"),
        ("S -> $", "line 1, column 6"),
        ('S -> "a" [0.5] "b"', "line 1: after a weight comes . or the end, got 'b'"),
        ('S -> "a" [0.5] [0.5]', "line 1: after a weight comes"),
        ('S -> "a"\n  | "b" [0]', "line 2: expected a weight above 0, such as 0.25 or 1/4, got '0'"),
        ('S -> "a" [-1]', "got '-1'"),
        ('S -> "a" [nan]', "got 'nan'"),
        ('S -> "a" [inf]', "got 'inf'"),
        ('S -> "a" [1/0]', "got '1/0'"),
        ('S -> "a" [half]', "got 'half'"),
        ('S -> "a" []', "got ''"),
        ('S -> "a" "b"\nT -> "c"\nS -> "c" | "a" "b"', 'line 3: S -> "a" "b": stands in line 1 already'),
        ('S -> "a" [0.6] | "b" [0.4] | "c"', 'line 1: S -> "c": has no weight, and the others of S leave nothing of 1'),
        ('S -> "a" [7] | "b"', 'line 1: S -> "b": has no weight'),
        ('S -> "a b"', "line 1: a terminal is a word without spaces, and not <s>, .*; got 'a b'"),
        ('S -> ""', "line 1: a terminal is a word"),
        ('S -> "</s>"', "got '</s>'"),
        ('S -> "a\u00a0b"', "line 1: a terminal is a word"),
    ],
)
def test_what_is_no_grammar_is_refused_with_its_line(text, message):
    with pytest.raises(ValueError, match=message):
        read_rules(text.splitlines())
