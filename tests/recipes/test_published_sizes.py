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
    found = [step for step in plan.steps if step.words[0] == "fairseq-hydra-train"]
    return [step.words for step in sorted(found, key=lambda step: step.kind == "train")]  # its own after what it shares


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
        ("peng_thesis/table-6.5, SST LSTM", "no published size"),
    ],
)
def test_a_row_without_a_training_or_a_size_is_refused(row, told):
    with pytest.raises(ValueError, match=told):
        TRIAL.plan(Cell(row, 1, "small"))


CONFIGS = RECIPES.parent / "configs"
OPTIMIZERS = sorted(path for path in CONFIGS.rglob("*.yaml") if "\noptimizer: {_name" in path.read_text("utf-8"))


@pytest.mark.parametrize("path", OPTIMIZERS, ids=lambda path: str(path.relative_to(CONFIGS)))
def test_the_optimizer_of_a_config_can_be_made(path):
    """Some of fairseq's read options that hydra gives defaults to, others want all of them in the file."""
    import torch
    from fairseq.dataclass.initialize import hydra_init
    from fairseq.optim import build_optimizer
    from omegaconf import OmegaConf

    import seqstruct.tasks  # noqa: F401  registers an optimizer

    hydra_init("config")
    config = OmegaConf.load(path)
    root = OmegaConf.create({"optimization": {"lr": [0.25]}, "common": {"tpu": False, "fp16": False, "bf16": False},
                             "optimizer": config.optimizer})  # fmt: skip
    made = build_optimizer(root.optimizer, [torch.nn.Parameter(torch.zeros(3))])
    assert made.get_lr() == 0.25 or made.optimizer_config["lr"] == 0.25
