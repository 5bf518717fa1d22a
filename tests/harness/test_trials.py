"""Hours of published trainings, by what a trial says of an update."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seqstruct.harness.script import Script
from seqstruct.harness.trials import line, main, report, updates
from tests.harness.scripts import ROOT

RECIPES = ROOT / "recipes"


def trial(record, row):
    amounts = {"training_tokens_per_second": 500.0, "tokens_per_update": 1000.0, "gpu_memory": 1.25}
    metrics = {name: {"value": value, "unit": "u"} for name, value in amounts.items()}
    return record(paper="published_sizes", table="trial", row=row, scale="paper", metrics=metrics,
                  machine={"gpu": "NVIDIA A1"})


def test_hours_are_those_of_the_updates_that_the_configs_name(record):
    minutes = Script(RECIPES / "peng_thesis" / "table-4.4.sh").estimate
    found = line(trial(record, "peng_thesis/table-4.4, BASE"), RECIPES)
    assert found[:-1] == ("peng_thesis/table-4.4, BASE", "A1", "1.2", "2.000", "350,000", "194.4")
    cell = next(cell for cell in Script(RECIPES / "peng_thesis" / "table-4.4.sh").cells("paper") if cell.row == "BASE")
    assert found[-1] == f"{minutes(cell)[1] / 60:.0f}"


def test_a_later_file_of_the_configs_decides():
    script = Script(RECIPES / "nmt_lectures" / "transformer.sh")
    assert updates(script, "EN-DE Transformer (base model)") == 100_000
    assert updates(script, "EN-DE Transformer (big)") == 300_000


def test_a_training_by_epochs_has_no_line(record):
    assert line(trial(record, "stack_attention/table-2, Tf"), RECIPES) is None


def test_a_trial_made_again_has_one_line(record, monkeypatch):
    first = trial(record, "peng_thesis/table-4.4, BASE")
    again = replace(first, machine={"gpu": "NVIDIA B2"})
    monkeypatch.setattr("seqstruct.harness.trials.read_folder", lambda folder: [first, again])
    _, _, *rows = report(RECIPES).splitlines()
    assert len(rows) == 1 and "B2" in rows[0]


def test_no_records_are_said_in_a_sentence(tmp_path, capsys):
    assert main([str(tmp_path)]) == 1
    assert "expected records of published_sizes at scale paper, found none" in capsys.readouterr().err


def test_a_recipe_that_is_gone_is_said(record):
    with pytest.raises(ValueError, match="table-0"):
        line(trial(record, "peng_thesis/table-0, BASE"), RECIPES)
