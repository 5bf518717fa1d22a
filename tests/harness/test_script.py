"""What a recipe's script says, without running any of it."""

from __future__ import annotations

import re
import shlex

import pytest

from seqstruct.harness.script import Cell, Script
from tests.harness.scripts import TEXT, make_repository


@pytest.fixture
def script(tmp_path):
    return Script(make_repository(tmp_path))


def test_cells_are_rows_by_seeds(script):
    assert [(c.row, c.seed) for c in script.cells("small", ["plain", "st*"])] == [
        ("plain", 1), ("plain", 2), ("stack + gate", 1), ("stack + gate", 2)]
    assert script.cells("smoke") == [Cell("plain", 1, "smoke"), Cell("copy", 1, "smoke")]
    assert script.cells("paper")[-2:] == [Cell("fail", 3, "paper"), Cell("copy", 1, "paper")]
    assert script.cells("smoke", ["stack + gate"], [5]) == [Cell("stack + gate", 5, "smoke")]
    assert (script.paper, script.table, script.licence, script.family) == (
        "nmt_lectures", "1.5", "public domain", "counters")
    assert script.doc.rstrip() == "Counts of nothing.\n\nIt has two paragraphs."


def test_a_baseline_has_one_seed_unless_its_data_are_drawn(script, tmp_path):
    assert script.cells("small", ["copy"], [4, 5]) == [Cell("copy", 1, "small")]
    drawn = Script(make_repository(tmp_path / "drawn", TEXT.replace("make.py n.txt", "make.py $seed.txt")))
    assert drawn.cells("small", ["copy"], [4, 5]) == [Cell("copy", 4, "small"), Cell("copy", 5, "small")]
    assert drawn.cells("small", ["copy"]) == [Cell("copy", 1, "small")]


@pytest.mark.parametrize("call, told", [
    (lambda s: s.cells("large"), "scale 'large' is unknown; scales: smoke, small, paper"),
    (lambda s: s.cells("small", ["x*"]), "no row matches 'x*'; rows: plain; stack + gate; fail; copy"),
])
def test_what_there_is_not(script, call, told):
    with pytest.raises(ValueError, match=re.escape(told)):
        call(script)


def test_a_plan_says_everything_in_plain_lines(script, tmp_path, monkeypatch):
    monkeypatch.delenv("SEQSTRUCT_REFERENCE", raising=False)
    plan = script.plan(Cell("stack + gate", 2, "small"), runs=tmp_path / "my runs", source=tmp_path)
    assert (plan.table, plan.dataset, plan.minutes, plan.disk, plan.download) == (
        "1.5-stand-in", "counts, small", 1.5, 2.0, 30.0)
    assert plan.out == tmp_path / "my runs" / "nmt_lectures" / "1.5-stand-in" / (
        f"stack-+-gate-small-{plan.configuration[:8]}-seed2")
    prepared, shared, validated, recorded = plan.steps
    assert prepared.words[-4:] == ("--from", str(tmp_path), "--out", prepared.target)
    assert plan.line(prepared).startswith(f"[ -d {shlex.quote(prepared.target)} ] || python bin/make.py ")
    assert plan.line(shared).endswith(f"&& touch '{shared.target}/finished'; }}")
    assert plan.line(validated).endswith(f"--cpu --num-workers 0 2>&1 | tee '{plan.out}/counted.log'")
    assert recorded.kind == "record" and "--row 'stack + gate' --seed 2" in plan.line(recorded)
    text = plan.text()
    assert "export OMP_NUM_THREADS=1" in text and text.count("\n") == 6 + len(plan.steps)
    assert script.plan(Cell("plain", 1, "paper")).environment == {}
    wider = Script(make_repository(tmp_path / "wider", TEXT.replace("disk=2", "disk=2 threads=3")))
    assert set(wider.plan(Cell("plain", 1, "small")).environment.values()) == {"3"}


def test_a_recipe_may_say_whether_kernels_are(script, tmp_path, monkeypatch):
    """They are then, or not, in all its commands, that which records among them; its configuration is the same."""
    cell, text = Cell("plain", 1, "small"), TEXT.replace("disk=2", "disk=2 kernels=%s")
    without = Script(make_repository(tmp_path / "without", text % 0))
    monkeypatch.setenv("SEQSTRUCT_COMPILED", "1")
    assert script.plan(cell).compiled is True and script.plan(cell, compiled=False).compiled is False
    for plan in (without.plan(cell), without.plan(cell, compiled=True)):
        assert plan.environment["SEQSTRUCT_COMPILED"] == "0" and plan.command.startswith("SEQSTRUCT_COMPILED=0 ")
        assert plan.configuration == script.plan(cell).configuration
    with pytest.raises(ValueError, match="expected kernels=0 or 1, got 'some'"):
        Script(make_repository(tmp_path / "some", text % "some")).plan(cell)


def test_on_a_gpu_the_same_cell_runs_there(script, tmp_path, monkeypatch):
    cell = Cell("stack + gate", 2, "small")
    plan = script.plan(cell, runs=tmp_path)
    monkeypatch.setenv("SEQSTRUCT_DEVICE", "cuda")
    there = script.plan(cell, runs=tmp_path)
    assert (there.configuration, there.out) == (plan.configuration, plan.out)
    assert there.command == f"SEQSTRUCT_DEVICE=cuda {plan.command}"
    for ours, theirs in zip(plan.steps, there.steps, strict=True):
        trained = ("common.cpu=false",) if "fairseq-hydra-train" in ours.words else ()
        assert theirs.words == (*(word for word in ours.words if word != "--cpu"), *trained)
    assert any("--cpu" in step.words for step in plan.steps)
    monkeypatch.setenv("SEQSTRUCT_DEVICE", "tpu")
    with pytest.raises(ValueError, match="expected SEQSTRUCT_DEVICE to be cpu or cuda, got 'tpu'"):
        script.plan(cell, runs=tmp_path)


def test_a_configuration_is_all_that_decides_and_nothing_else(script, tmp_path, monkeypatch):
    plan = script.plan(Cell("plain", 1, "small"))
    same = script.plan(Cell("plain", 2, "small"), runs=tmp_path, source=tmp_path, records=tmp_path)
    assert plan.configuration == same.configuration
    others = [script.plan(Cell("stack + gate", 1, "small")), script.plan(Cell("plain", 1, "paper"))]
    changed = Script(make_repository(tmp_path / "b", TEXT.replace("seven 8", "seven 9")))
    others.append(changed.plan(Cell("plain", 1, "small")))
    assert len({plan.configuration, *(o.configuration for o in others)}) == 4
    assert changed.plan(Cell("plain", 1, "small")).steps[1].target != plan.steps[1].target


def test_limited_trainings_are_another_configuration(tmp_path):
    text = TEXT.replace("    log=counted", '    shared lm fairseq-hydra-train first\n    log=counted')
    script = Script(make_repository(tmp_path, text))
    whole, limited = (script.plan(Cell("plain", 1, "small"), max_minutes=minutes) for minutes in (None, 3))
    assert limited.dataset == f"{whole.dataset}, trainings of at most 3 minutes"
    assert limited.configuration != whole.configuration and limited.out != whole.out
    whole, copied = (script.plan(Cell("copy", 1, "small"), max_minutes=minutes) for minutes in (None, 3))
    assert (copied.dataset, copied.configuration) == (whole.dataset, whole.configuration)


def test_the_reference_s_corpora_are_taken_where_they_are(script, tmp_path, monkeypatch):
    monkeypatch.setenv("SEQSTRUCT_REFERENCE", str(tmp_path))
    cell = Cell("plain", 1, "small")
    assert "--from" not in script.plan(cell).steps[0].words
    (tmp_path / "data" / "numbers").mkdir(parents=True)
    assert str(tmp_path / "data" / "numbers") in script.plan(cell).steps[0].words
    assert "--made-up" in script.plan(Cell("plain", 1, "smoke")).steps[0].words


def test_variables_of_the_user_s_are_no_settings(script, monkeypatch):
    plan = script.plan(Cell("plain", 1, "small"))
    for name in ("log", "given", "max_minutes", "minutes", "table", "threads", "kernels", "rows", "out", "LC_ALL"):
        monkeypatch.setenv(name, "9")
    assert Script(script.path).plan(Cell("plain", 1, "small")) == plan


@pytest.mark.parametrize("old, new, told", [
    ("paper=nmt_lectures", "paper=mine", "expected paper to be one of"),
    (TEXT, "true\n", "expected paper to be one of"),
    ('rows=(plain "stack + gate" fail)', "rows=()", "it has no rows"),
    ("minutes=1.5", "minutes=soon", "minutes='soon' is no number"),
    ("minutes=1.5", "minutes=1.5 threads='2 threads'", "threads='2 threads' is no number"),
    ("    record \"times", "    true \"times", "expected a cell to end with `record`"),
    ("raw numbers", "nonsense numbers", "nonsense: command not found"),
])
def test_a_script_that_is_wrong(tmp_path, old, new, told):
    script = Script(make_repository(tmp_path, TEXT.replace(old, new)))
    with pytest.raises(ValueError, match=re.escape(told)):
        script.plan(script.cells("small")[0])


def test_draws_are_those_of_the_seed(tmp_path):
    drawn = TEXT.replace('"$row" "$seed"', '"$row" "$(log_uniform rate 0.001 0.1)"')
    script = Script(make_repository(tmp_path, drawn))
    rates = [float(script.plan(Cell("plain", seed, "small")).steps[2].words[3]) for seed in (1, 2, 2, 30)]
    assert rates[1] == rates[2] and len(set(rates)) == 3 and all(0.001 <= rate <= 0.1 for rate in rates)


def test_words_that_the_shell_makes_are_quoted_as_they_need(tmp_path):
    listing = TEXT.replace('"$row" "$seed"', 'data="$(shards "$data/bin")" "$(whole n 3 5)"')
    script = Script(make_repository(tmp_path, listing))
    steps = {seed: script.plan(Cell("plain", seed, "small"), runs=tmp_path / "my runs").steps for seed in range(1, 9)}
    assert {step[2].words[3] for step in steps.values()} == {"3", "4", "5"}
    prepared, shared, validated, _ = steps[1]
    line = script.plan(Cell("plain", 1, "small"), runs=tmp_path / "my runs").line(validated)
    assert f'data="$(python -m seqstruct.data.shards \'{prepared.target}/bin\')"' in line
    assert f"$(cat '{shared.target}/chosen')" in line
