import numpy as np
import pytest

from seqstruct.data.cfl.grammar import Grammar, Rule, to_binary
from seqstruct.data.cfl.languages import LANGUAGES, get_language
from tests.data.cfl.brute_force import enumerate_strings

# Empty and unary rules, a unary cycle, a nullable symbol twice on one right-hand side, three levels of nullables.
AWKWARD = Grammar(
    ("a", "b", "c"),
    "S",
    (
        Rule("S", ("A", "B", "A"), 0.25),
        Rule("S", ("A",), 0.25),
        Rule("S", ("a", "S", "b", "c"), 0.25),
        Rule("S", ("c",), 0.25),
        Rule("A", ("B",), 0.3),
        Rule("A", ("a", "A"), 0.3),
        Rule("A", (), 0.4),
        Rule("B", ("A",), 0.2),
        Rule("B", ("b",), 0.5),
        Rule("B", (), 0.3),
    ),
)


def derived(binary, longest):
    """Strings and weights of a binary grammar, by rewriting."""
    rules = [
        Rule(f"N{left}", (f"N{b}", f"N{c}"), weight)
        for (left, b, c), weight in zip(binary.binary, binary.binary_weight, strict=True)
    ]
    rules += [
        Rule(f"N{left}", (binary.terminals[terminal],), weight)
        for (left, terminal), weight in zip(binary.lexical, binary.lexical_weight, strict=True)
    ]
    return enumerate_strings(Grammar(binary.terminals, f"N{binary.start}", tuple(rules)), longest)


def test_as_written_keeps_every_weight():
    truth = enumerate_strings(AWKWARD, 4)
    truth.pop(())
    found = derived(to_binary(AWKWARD, "as-written"), 4)
    assert found.keys() == truth.keys()
    for string, weight in truth.items():
        assert found[string] == pytest.approx(weight, rel=1e-9)


def test_published_leaves_out_the_unary_rules_of_the_root():
    """The root's other rules over the full grammar, divided by what they weigh together."""
    inner = enumerate_strings(Grammar(AWKWARD.terminals, "A", AWKWARD.rules), 4)
    rules = AWKWARD.rules
    without = tuple(r for r in rules if not (r.left == "S" and r.right == ("A",)))
    root = tuple(Rule("root", r.right, r.weight) for r in without if r.left == "S")
    truth = enumerate_strings(Grammar(AWKWARD.terminals, "root", root + rules), 4)
    # S -> A B A with two of its parts empty is unary as well
    empty_a, empty_b = inner[()], enumerate_strings(Grammar(AWKWARD.terminals, "B", rules), 4)[()]
    middle = enumerate_strings(Grammar(AWKWARD.terminals, "B", rules), 4)
    empty = enumerate_strings(Grammar(AWKWARD.terminals, "S", rules), 4)[()]
    lost = 0.25 * (1 - empty_a) + 0.25 * (2 * empty_a * empty_b * (1 - empty_a) + empty_a**2 * (1 - empty_b))
    found = derived(to_binary(AWKWARD, "published"), 4)
    for string, weight in found.items():
        unary = 0.25 * (2 * empty_a * empty_b * inner.get(string, 0.0) + empty_a**2 * middle.get(string, 0.0))
        assert weight == pytest.approx((truth[string] - unary) / (1 - empty - lost), rel=1e-9)


@pytest.mark.parametrize("form", ["published", "as-written"])
@pytest.mark.parametrize("name", LANGUAGES)
def test_inside_weights_sum_the_strings(name, form):
    binary = get_language(name, form).binary
    longest = 7 if name == "hardest-cfl" else 8
    inside = binary.inside_by_length(longest)
    totals = np.zeros(longest + 1)
    for string, weight in derived(binary, longest).items():
        totals[len(string)] += weight
    np.testing.assert_allclose(inside[:, binary.start], totals, rtol=1e-12)


def test_a_proper_grammar_sums_to_one():
    """Nearly all strings of a grammar with short strings are among the first 60 lengths."""
    binary = to_binary(AWKWARD, "as-written")
    empty = enumerate_strings(AWKWARD, 2)[()]
    assert binary.inside_by_length(60)[:, binary.start].sum() + empty == pytest.approx(1.0, abs=1e-9)


def test_sizes_zero_and_one():
    binary = get_language("marked-reversal").binary
    assert binary.inside_by_length(0).shape == (1, binary.size)
    assert binary.inside_by_length(1)[1, binary.start] == pytest.approx(1 / 61, rel=1e-12)


def test_dyck_is_the_published_table():
    """The reference grammar of Dyck-2: strings of one group are lost at the root, and all weights double."""
    written, published = get_language("dyck", "as-written"), get_language("dyck")
    strings = derived(written.binary, 8)
    for string, weight in derived(published.binary, 8).items():
        assert weight == pytest.approx(2 * (strings[string]), rel=1e-12)
    lost = set(strings) - set(derived(published.binary, 8))
    assert ("(", ")") in lost and ("(", "[", "]", ")") in lost
    assert all(_one_group(string) for string in lost)


def _one_group(string):
    depth = 0
    for position, symbol in enumerate(string):
        depth += 1 if symbol in "([" else -1
        if depth == 0:
            return position == len(string) - 1
    return False
