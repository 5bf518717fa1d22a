"""Fine-tuning from a softmax model: what the rows start from, their options, what is read from logs."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from seqstruct.harness.launch import load_recipe
from seqstruct.harness.progress import Progress
from seqstruct.harness.recipe import Cell
from seqstruct.harness.run import Run
from tests.models.building import dictionary_of, small_language_model

FOLDER = Path(__file__).resolve().parents[2] / "recipes" / "peng_thesis"
RECIPE = load_recipe(FOLDER / "softmax_transfer.py")
MODULE = sys.modules[type(RECIPE).__module__]


def test_rows_and_metrics_are_those_of_the_table() -> None:
    rows = json.loads((FOLDER / "paper.json").read_text("utf-8"))["tables"]["figure-4.4"]["rows"]
    assert {entry["row"] for entry in rows} == set(RECIPE.rows)
    with pytest.raises(ValueError, match="cross_evaluation.py"):
        RECIPE.cells("paper")


def test_options_differ_from_training_in_plan_and_schedule_alone() -> None:
    options = MODULE.fine_tuning_options("RFA", "small")
    given = dict(zip(options, [*options[1:], "--"], strict=True))
    before = RECIPE.settings(Cell("RFA", 1, "small"))["softmax"]["train_options"]
    trained = dict(zip(before, [*before[1:], "--"], strict=True))
    changed = {name for name in trained if name.startswith("--") and given.get(name) != trained[name]}
    assert changed == {
        "--decoder-self-attention", "--lr", "--lr-scheduler", "--warmup-updates", "--max-update",
        "--save-interval-updates", "--keep-interval-updates", "--validate-after-updates",
    }  # fmt: skip
    assert given["--decoder-self-attention"] == "rfa(features=128)" and given["--max-update"] == "300"
    assert not any("interval" in word for word in options)


def parameters_of(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


@pytest.mark.parametrize("row", ["RFA", "RFA reset", "softmax reset", "T2R"])
def test_what_a_row_starts_from(row: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Reset: attention's own initial values; otherwise the trained projections; all else is the trained model's."""
    words = dictionary_of("abcdef")
    trained = small_language_model(words, decoder_self_attention="softmax")
    torch.save({"model": trained.state_dict()}, tmp_path / "checkpoint_best.pt")
    run = SimpleNamespace(cell=Cell(row, 1, "small"), folder=tmp_path)
    start = MODULE.start_from(run, tmp_path / "checkpoint_best.pt")
    fresh = small_language_model(words, decoder_self_attention=MODULE.ROWS[row][0])
    initial = parameters_of(fresh)
    with caplog.at_level(logging.WARNING):
        fresh.load_state_dict(torch.load(start, weights_only=True)["model"], strict=True)
    assert "needs fine-tuning" in caplog.text
    assert "35.5 BLEU" in caplog.text and "0.4" in caplog.text, "table 4.6"
    reset = MODULE.ROWS[row][1]
    for name, value in fresh.state_dict().items():
        attention = ".self_attn." in name
        own = attention and (reset or name not in trained.state_dict())
        assert torch.equal(value, (initial if own else trained.state_dict())[name]), name


def test_losses_are_read_from_a_log(tmp_path: Path) -> None:
    log = tmp_path / "train.log"

    def line(tag: str, **values: str) -> str:
        return f"2026 | INFO | {tag} | {json.dumps(values)}\n"

    log.write_text(
        line("train_inner", num_updates="25", loss="9.5") + line("train_inner", num_updates="50", loss="8.25")
        + line("train", train_num_updates="60", train_loss="8.75")
    )
    assert MODULE.loss_curve(log) == [(25, 9.5), (50, 8.25)]
    assert MODULE.training_loss(log) == 8.75
    log.write_text("nothing\n")
    with pytest.raises(ValueError, match="no epoch was finished"):
        MODULE.training_loss(log)


def test_a_softmax_model_that_is_trained_is_taken(tmp_path: Path) -> None:
    """BASE of the other recipe, where its cell is finished in the same folder of runs; nothing is trained again."""
    base = Run(MODULE.language_models, Cell("BASE", 3, "small"), tmp_path, progress=Progress())
    (base.folder / "checkpoints").mkdir(parents=True)
    for name in ("trained.json", "train.log", "checkpoints/checkpoint_best.pt"):
        (base.folder / name).write_text(name)
    run = Run(RECIPE, Cell("T2R", 3, "small"), tmp_path, progress=Progress())
    found = MODULE.trained_softmax(run, tmp_path)
    assert (found / "checkpoint_best.pt").read_text() == "checkpoints/checkpoint_best.pt"
    assert (found / "train.log").read_text() == "train.log"
    assert MODULE.trained_softmax(run, tmp_path) == found
