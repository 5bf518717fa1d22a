"""Derivations drawn from the top against the probabilities of the grammar, counted by hand."""

import random
from collections import Counter

import pytest

from seqstruct.data.cfl.derivations import Derivations, Node
from seqstruct.data.cfl.rules import nonterminal, read_rules

RULES = ['S -> "a" T [3] | "b" [1]', 'T -> [0.5] | "c" S [0.25] | "d" "e" [0.25]']
GRAMMAR = Derivations(read_rules(RULES).grammar)


def words(node):
    return "".join(child if isinstance(child, str) else words(child) for child in node.children)


def test_strings_come_as_often_as_the_grammar_says():
    # weights of S need not sum to 1; T is empty, goes on, or ends
    exact = {"b": 1 / 4, "a": 3 / 8, "ade": 3 / 16, "acb": 3 / 64, "aca": 9 / 128, "acade": 9 / 256}
    generator, draws = random.Random(5), 20_000
    found = Counter(words(GRAMMAR.sample(generator)) for _ in range(draws))
    for string, probability in exact.items():
        sigma = (probability * (1 - probability) / draws) ** 0.5
        assert found[string] / draws == pytest.approx(probability, abs=4 * sigma), string


def test_what_a_derivation_is():
    root = nonterminal("T")
    drawn = {GRAMMAR.sample(random.Random(seed), root) for seed in range(40)}
    assert {Node(root, ()), Node(root, ("d", "e"))} < drawn and {node.symbol for node in drawn} == {root}
    assert GRAMMAR.sample(random.Random(3)) == GRAMMAR.sample(random.Random(3))
    with pytest.raises(RecursionError):
        Derivations(read_rules(['S -> "a" S']).grammar).sample(random.Random(1))
