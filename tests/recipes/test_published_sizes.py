"""The trial of published sizes: each row has the training of the recipe that it names, word for word."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from seqstruct.harness.records import Record, read_folder
from seqstruct.harness.script import Cell, Script

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
TRIAL = Script(RECIPES / "published_sizes" / "trial.sh")
OWN = ("task.data=", "common.seed=", "checkpoint.", "optimization.max_update=", "common.log_interval=",
       "dataset.disable_validation=", "+task.pretrained_parser=", "$(cat ", "+model.hidden_size=")


def trainings(script, row):
    plan = script.plan(Cell(row, 1, "paper"))
    found = [step for step in plan.steps if step.words[0] == "fairseq-hydra-train"]
    return [step.words for step in sorted(found, key=lambda step: step.kind == "train")]  # its own after what it shares


@pytest.mark.parametrize("row", TRIAL.rows("paper"))
def test_a_row_trains_as_its_recipe(row):
    recipe, _, published = row.partition(", ")
    (ours,) = trainings(TRIAL, row)
    *_, theirs = (words for words in trainings(Script(RECIPES / f"{recipe}.sh"), published) if words[4] == ours[4])
    assert [word for word in ours if not word.startswith(OWN)] == [w for w in theirs if not w.startswith(OWN)]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("nmt_lectures/luong, copy", "has no training of copy"),
        ("peng_thesis/table-4.6, BASE", "no published size"),
    ],
)
def test_a_row_without_a_training_or_a_size_is_refused(row, told):
    with pytest.raises(ValueError, match=told):
        TRIAL.plan(Cell(row, 1, "small"))


def test_the_trials_on_a_gpu_are_told_as_recorded():
    page = " ".join((RECIPES.parent / "docs" / "reproduction" / "published_sizes.md").read_text("utf-8").split())
    found: dict[str, dict[str, Record]] = {"small": {}, "paper": {}}
    for record in read_folder(RECIPES / "published_sizes" / "records"):
        found[record.scale][record.row] = record
    small, paper = ({row: r.value("training_tokens_per_second") for row, r in found[scale].items()}
                    for scale in ("small", "paper"))
    assert f"{len(paper)} of the {len(TRIAL.rows('paper'))} rows" in page and paper.keys() < small.keys()
    assert {r.machine["gpu"] for r in found["paper"].values()} == {"NVIDIA H200"}
    most = max(record.value("gpu_memory") for record in found["paper"].values())
    assert f"the tensors of every row fit into {math.ceil(most)} GiB" in page
    faster = {row: paper[row] / small[row] for row in paper}
    waiting = [n for row, n in faster.items() if row.startswith(("stack_attention/table-2", "peng_thesis/table-2.1"))]
    assert len(waiting) == 5 and f"are {min(waiting):.0f} to {max(waiting):.0f} times as fast there" in page
    large = [n for row, n in faster.items() if row.startswith(("peng_thesis/table-4.3", "peng_thesis/table-4.4"))]
    assert len(large) == 5 and min(large) > 100


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
                             "optimizer": config.optimizer})
    made = build_optimizer(root.optimizer, [torch.nn.Parameter(torch.zeros(3))])
    assert made.get_lr() == 0.25 or made.optimizer_config["lr"] == 0.25
