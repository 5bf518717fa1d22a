"""The trial of published sizes: each row has the training of the recipe that it names, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqstruct.harness.script import Cell, Script

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
TRIAL = Script(RECIPES / "published_sizes" / "trial.sh")
OWN = ("task.data=", "common.seed=", "checkpoint.", "optimization.max_update=", "common.log_interval=",
       "dataset.disable_validation=")  # fmt: skip


def trainings(script, row):
    plan = script.plan(Cell(row, 1, "paper"))
    return [step.words for step in plan.steps if step.words[0] == "fairseq-hydra-train"]


@pytest.mark.parametrize("row", TRIAL.rows("paper"))
def test_a_row_trains_as_its_recipe(row):
    recipe, _, published = row.partition(", ")
    *_, theirs = trainings(Script(RECIPES / f"{recipe}.sh"), published)
    (ours,) = trainings(TRIAL, row)
    assert [word for word in ours if not word.startswith(OWN)] == [w for w in theirs if not w.startswith(OWN)]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("nmt_lectures/luong, copy", "has no training of copy"),
        ("peng_thesis/table-2.1, DM NEURBOPARSER", "no published size"),
    ],
)
def test_a_row_without_a_training_or_a_size_is_refused(row, told):
    with pytest.raises(ValueError, match=told):
        TRIAL.plan(Cell(row, 1, "small"))
