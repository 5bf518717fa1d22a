"""Every task's targets by an independent solver, what is drawn how often, and options that are refused."""

from __future__ import annotations

import random
from collections import Counter
from itertools import permutations, product

import pytest

from seqstruct.data.abilities import states
from seqstruct.data.abilities.chart import CHART
from seqstruct.data.abilities.tasks import FAMILIES, TASKS, make, options_of
from tests.data.abilities.solvers import SOLVERS


def drawn(ability, lengths, count):
    generator, found = random.Random(1), []
    while len(found) < count:
        example = ability.draw(lengths, generator)
        if example is not None:
            found.append(example)
    return found


def share(found, probability):
    """Whether a number of hits among trials is within four standard errors of what is to be expected."""
    hits, trials = found
    return abs(hits / trials - probability) < 4 * (probability * (1 - probability) / trials) ** 0.5


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("lengths", [(17, 29), (24, 24)])
def test_targets_are_those_of_a_solver(task, lengths):
    ability = make(task, {})
    known = set(ability.symbols())
    for example in drawn(ability, lengths, 60):
        assert list(example.targets) == SOLVERS[task](list(example.symbols))
        assert lengths[0] <= len(example.symbols) == len(example.targets) == len(example.levels) <= lengths[1]
        assert any(example.targets) and set(example.symbols) | (set(example.targets) - {None}) <= known


def test_every_task_is_of_one_family_and_has_a_solver():
    assert sorted(task for tasks in FAMILIES.values() for task in tasks) == sorted(TASKS) == sorted(SOLVERS)
    assert set(CHART) <= set(TASKS)
    for task, column in CHART.items():
        assert make(task, column.options) and column.long_lengths[0] > column.lengths[1]


def test_word_problems_are_of_the_groups_named():
    sizes = {group: len(states.elements(group)) for group in states.GROUPS}
    assert sizes == {"z60": 60, "s3": 6, "a5": 60, "s5": 120}
    for group, size in sizes.items():
        reached = {states.elements(group)[0]}
        while True:
            more = reached | {states.product(group, a, b) for a in reached for b in states.GENERATORS[group]}
            if more == reached:
                break
            reached = more
        assert len(reached) == size and states.GENERATORS[group][0] == states.elements(group)[0]
    odd = set(map("".join, permutations("01234"))) - set(states.elements("a5"))
    assert "10234" in odd and "12034" not in odd
    assert all(states.product("s5", a, b) in states.elements("a5") for a, b in product(sorted(odd)[:5], repeat=2))


def test_a_word_problem_is_not_commutative_and_applies_the_first_first():
    assert states.product("s3", "102", "120") == "210" and states.product("s3", "120", "102") == "021"


def test_generators_alone_stand_in_a_word():
    for example in drawn(make("a5", {"generators": True}), (9, 9), 20):
        assert set(example.symbols) <= {"01234", "12034", "12340"}


def test_levels_say_how_far_a_target_goes():
    for example in drawn(make("recall", {}), (20, 25), 20):
        for place, (symbol, target) in enumerate(zip(example.symbols, example.targets, strict=True)):
            if target:
                assert example.levels[place] == place - example.symbols.index(symbol) - 2
    for example in drawn(make("dyck", {"depth": 3}), (20, 24), 30):
        opened = [sum(1 if s[0] == "(" else -1 for s in example.symbols[: i + 1]) for i in range(len(example.symbols))]
        assert list(example.levels) == opened and max(opened) <= 3 and opened[-1] == 0
    heights = [max(example.levels) for example in drawn(make("listops", {"depth": 4}), (10, 30), 60)]
    assert set(heights) == {2, 3}, "ten tokens or more are two operations or more"
    deep = drawn(make("undo", {"depth": 2}), (30, 30), 40)
    for example in deep:
        height = 0
        for symbol in example.symbols:
            height += {"+": 1, "u": -1}.get(symbol[0], 0)
            assert 0 <= height <= 2
    assert max(max(example.levels) for example in deep) == 2


def test_what_is_uniform_is_drawn_uniformly():
    few = make("induction", {"values": 2})
    counts = Counter(tuple(example.symbols) for example in drawn(few, (3, 3), 4000))
    assert set(counts) == {tuple(f"v{n}" for n in word) for word in product(range(2), repeat=3)}
    assert all(share((count, 4000), 1 / 8) for count in counts.values()), "a word of three of two symbols repeats one"
    lengths = Counter(len(example.symbols) for example in drawn(make("parity", {}), (4, 7), 4000))
    assert set(lengths) == {4, 5, 6, 7} and all(share((count, 4000), 1 / 4) for count in lengths.values())
    items = Counter("".join(e.symbols) for e in drawn(make("copying", {"items": (1, 1), "values": 2}), (4, 4), 4000))
    assert len(items) == 6 and all(share((count, 4000), 1 / 6) for count in items.values())
    asked = Counter()
    for example in drawn(make("recall", {"pairs": (2, 2), "keys": 3, "values": 2}), (6, 6), 4000):
        asked[example.symbols.index(example.symbols[4])] += 1
    assert all(share((asked[place], 4000), 1 / 2) for place in (0, 2))


def test_words_of_brackets_have_the_probabilities_of_the_walk():
    """Length 4, one kind: after the first opening both ways are open, then all else is decided."""
    counts = Counter("".join(s[0] for s in e.symbols) for e in drawn(make("dyck", {"kinds": 1}), (4, 4), 4000))
    assert set(counts) == {"(())", "()()"} and share((counts["(())"], 4000), 1 / 2)
    flat = drawn(make("dyck", {"kinds": 2, "depth": 1}), (4, 5), 50)
    assert {"".join(s[0] for s in example.symbols) for example in flat} == {"()()"}


def test_commands_of_a_register_have_their_probabilities():
    counts = Counter(symbol[0] for example in drawn(make("undo", {"depth": 1000}), (40, 40), 2000)
                     for symbol in example.symbols)
    assert share((counts["+"], 80000), 3 / 8) and share((counts["r"], 80000), 1 / 4)
    assert counts["u"] < 80000 / 4 and counts["~"] > 80000 / 8, "where nothing can be undone one to ignore stands"


def test_gaps_are_within_their_bounds():
    for example in drawn(make("recall", {"gap": (6, 9), "pairs": (2, 3)}), (16, 20), 30):
        gaps = [level for level, target in zip(example.levels, example.targets, strict=True) if target]
        assert min(gaps) >= 6 and max(gaps) <= 9


@pytest.mark.parametrize("task, options, lengths, told", [
    ("recall", {"pairs": (0, 2)}, None, "--pairs: expected 1 to the number of keys, 16, got 0:2"),
    ("recall", {"pairs": (3, 20)}, None, "--pairs"), ("recall", {"gap": (5, 4)}, None, "--gap"),
    ("recall", {"values": 1}, None, "--values: expected 2 or more, got 1"),
    ("recall", {}, (14, 20), "--lengths: expected 15 or more"), ("copying", {}, (9, 20), "--lengths: expected 16"),
    ("copying", {"items": (0, 1)}, None, "--items"), ("induction", {}, (1, 3), "--lengths"),
    ("induction", {"values": 0}, None, "--values"), ("counting", {"modulus": 1}, None, "--modulus: expected 2 to 100"),
    ("parity", {"modulus": 3}, None, "counting has others"), ("parity", {}, (9, 8), "the longer last"),
    ("s3", {}, (0, 4), "--lengths"), ("dyck", {"kinds": 0}, None, "--kinds"), ("dyck", {"depth": 0}, None, "--depth"),
    ("dyck", {}, (7, 7), "an even length"), ("undo", {"values": 1}, None, "--values"),
    ("undo", {"depth": 0}, None, "--depth"), ("listops", {"max_args": 1}, None, "--max-args: expected 2 to 1000"),
    ("listops", {"depth": 1}, None, "--depth"), ("listops", {}, (3, 9), "--lengths"),
    ("parity", {"pairs": (1, 2)}, None, "parity has no option --pairs; it has: --modulus"),
    ("chess", {}, None, "no task is called 'chess'; there are: recall, copying"),
])
def test_what_cannot_be_is_refused(task, options, lengths, told):
    with pytest.raises(ValueError) as error:
        make(task, options).draw(lengths or (20, 30), random.Random(1))
    assert told in str(error.value)


def test_options_of_a_task_are_its_own():
    assert options_of("s5") == {"generators": False} and options_of("dyck") == {"kinds": 4, "depth": 8}
