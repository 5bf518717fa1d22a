"""Exponents of growth, and what is measured of a layer."""

from __future__ import annotations

import pytest

from seqstruct.benchmarks import growth
from seqstruct.harness import measurements
from seqstruct.ops.compiled import VARIABLE


@pytest.fixture(autouse=True)
def _without_kernels(monkeypatch):
    """As the command has it: a kernel counts as one operator at any length."""
    monkeypatch.setenv(VARIABLE, "0")


def test_exponents_of_powers():
    for power in (0.0, 1.0, 2.5):
        points = [(1, 99.0), *((n, 3.0 * n**power) for n in (40, 80, 160))]
        assert growth.exponent(points) == pytest.approx(power, abs=1e-12)
    assert growth.exponent([(2, 4.0), (4, 16.0)]) == pytest.approx(2.0)
    for points in ([(2, 4.0)], [(2, 4.0), (4, 0.0)]):
        with pytest.raises(ValueError, match="two points or more of numbers above 0"):
            growth.exponent(points)


@pytest.mark.parametrize("name", growth.LAYERS)
def test_operators_and_memory_of_a_layer(name):
    found = growth.grow(name, [9, 5], 1)
    assert set(found) == set(growth.QUANTITIES)
    for points in found.values():
        assert [length for length, _ in points] == [5, 9] and all(value > 0 for _, value in points)
    operators = dict(found["operators"])
    assert operators == dict(growth.grow(name, [5, 9], 1)["operators"]), "a number that does not depend on the machine"
    assert (operators[9] > operators[5]) is (name != "SDPA")
    assert all(one[1] <= both[1] for one, both in zip(found["forward_memory"], found["memory"], strict=True))


def test_exponents_have_the_names_and_tables_that_are_asked_for():
    found = {"time": [(8, 3.0), (16, 12.0)], "operators": [(8, 5.0), (16, 5.0)]}
    made = growth.exponents(found, ["time", "1:work=operators"])
    assert [(m.table, m.metric, m.points) for m in made] == [
        ("", "time_exponent", found["time"]), ("1", "work_exponent", found["operators"])]
    assert [m.value for m in made] == [pytest.approx(2.0), pytest.approx(0.0, abs=1e-12)]


def test_the_command_writes_or_says_why_not(tmp_path, capsys):
    out, common = tmp_path / "found.json", ["SDPA", "--out", str(tmp_path / "found.json"), "--lengths"]
    for words, told in ((["0", "3"], "expected lengths of 1 or more, got 0"), (["3"], "two points or more"),
                        (["3", "6", "--exponents", "rate"], "with one of time, memory, forward_memory, operators")):
        assert growth.main([*common, *words]) == 1
        assert told in capsys.readouterr().err and not out.exists()
    assert growth.main([*common, "3", "6", "--exponents", "memory=forward_memory", "operators"]) == 0
    found = measurements.read(tmp_path, ["found.json"])
    assert [m.metric for m in found] == ["memory_exponent", "operators_exponent"] and found[0].points[0][0] == 3
    with pytest.raises(ValueError, match="expected one of SDPA, Sup, Nd"):
        growth.grow("LSTM", [3], 1)


def test_lengths_without_an_exponent_are_refused_before_anything_is_measured(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(growth, "grow", lambda *_: pytest.fail("measured"))
    for lengths, told in ((["3"], "two points or more"), (["3", "3"], "all x values are identical")):
        assert growth.main(["SDPA", "--out", str(tmp_path / "found.json"), "--lengths", *lengths]) == 1
        assert told in capsys.readouterr().err


@pytest.mark.parametrize("name", [*growth.TABLE_4_1, *growth.TABLE_5_2])
def test_cases_of_other_attention_grow_or_not(name):
    """Numbers that no machine changes: operators of what goes step by step, and memory, at lengths 64 and 128."""
    found = growth.grow(name, [64, 128], 1)
    assert all(value > 0 for points in found.values() for _, value in points)
    (_, before), (_, after) = found["operators"]
    stepwise = name.startswith(("decoding", "writing"))
    if stepwise:
        assert after == pytest.approx(2 * before, rel=0.05)
    elif name.startswith("reading") or "softmax" in name:
        assert after == before
    (_, before), (_, after) = found["forward_memory"]
    constant = {"decoding causal RFA", "writing ABC", "reading ABC"}
    assert (after == before) is (name in constant)
