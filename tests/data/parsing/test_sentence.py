"""Annotated sentences: trees, graphs, cycles and projectivity."""

import itertools

import pytest

from seqstruct.data.parsing.sentence import TOP, crossing_arc, find_cycle, graph_of, graph_of_sdp, lift, tree_of
from seqstruct.data.text.conllu import parse_conllu
from seqstruct.data.text.sdp import Graph
from tests.ops.trees.enumeration import is_projective, is_tree

CONLLU = """\
1\tShe\tshe\tPRON\tPRP\t_\t2\tnsubj\t2:nsubj|3:nsubj:xsubj|3:agent\t_
2\twants\twant\tVERB\tVBZ\t_\t0\troot\t0:root\t_
3\tout\tout\tADV\tRB\t_\t2\tadvmod\t2:advmod\t_
"""


def read(text):
    return next(parse_conllu(text.splitlines(), "f"))


def test_tree_and_graph_of_one_sentence():
    tree = tree_of(read(CONLLU))
    assert (tree.words, tree.lemmas) == (("She", "wants", "out"), ("she", "want", "out"))
    assert tree.tags == ("PRON", "VERB", "ADV")
    assert tree.heads == (2, 0, 2) and tree.arcs is None
    graph = graph_of(read(CONLLU), "xpos")
    assert graph.arcs == ((0, 2, TOP), (2, 1, "nsubj"), (2, 3, "advmod"), (3, 1, "nsubj:xsubj"))
    assert graph.heads == tree.heads and graph.tags == ("PRP", "VBZ", "RB")
    assert graph_of(read(CONLLU), coarse=True).arcs[-1] == (3, 1, "nsubj")


def test_graph_of_sdp():
    graph = graph_of_sdp(Graph(("a", "b"), ("a", "b"), ("X", "Y"), (2,), ((2, 1, "ARG1"),), "1"))
    assert graph.arcs == ((0, 2, TOP), (2, 1, "ARG1")) and graph.heads is None


def test_a_cycle_is_refused():
    with pytest.raises(ValueError, match="f, line 1: the heads have a cycle, 1 -> 2 -> 1"):
        tree_of(read(CONLLU.replace("VBZ\t_\t0", "VBZ\t_\t1")))


@pytest.mark.parametrize("n", [0, 1, 2, 4])
def test_cycles_and_projectivity_of_all_heads(n):
    for heads in itertools.product(range(n + 1), repeat=n):
        cycle = find_cycle(heads)
        assert bool(cycle) != is_tree(heads)
        for word, above in itertools.pairwise(cycle):
            assert heads[word - 1] == above
        if is_tree(heads):
            assert (crossing_arc(heads) is None) == is_projective(heads)
            lifted = lift(heads)
            assert is_tree(lifted) and is_projective(lifted)
            assert not is_projective(heads) or lifted == heads
