"""Trainings one after another in one process: each as if it were alone; a failure is named."""

from __future__ import annotations

import pytest

from seqstruct.data.text_classification.folder import Request, write_folder
from seqstruct.harness.process import CommandFailed
from seqstruct.harness.run import PLUGIN
from seqstruct.harness.trainings import run_trainings


@pytest.mark.training
def test_the_same_training_twice_gives_the_same_numbers(tmp_path):
    for split in ("train", "dev", "test"):
        (tmp_path / f"stsa.binary.{split}").write_text("1 good film\n0 bad film\n1 fine\n0 dull\n" * 5)
    write_folder(Request("sst", checked=False), tmp_path, tmp_path / "data")
    options = [
        str(tmp_path / "data"), "--user-dir", str(PLUGIN), "--task", "text_classification", "--criterion",
        "classification_cross_entropy", "--arch", "rnn_classifier", "--cell", "B", "--hidden-size", "3", "--embed-dim",
        "4", "--optimizer", "adam", "--lr", "0.01", "--batch-size", "4", "--max-epoch", "3", "--patience", "1", "--cpu",
        "--num-workers", "0", "--no-save", "--log-format", "json", "--vertical-dropout", "0.2",
    ]  # fmt: skip
    logs = run_trainings([options, options], tmp_path / "runs", 1)
    losses = [
        [entry.statistics["valid_loss"] for entry in entries if "valid_loss" in entry.statistics] for entries in logs
    ]
    assert len(losses) == 2 and losses[0] == losses[1] and len(losses[0]) >= 2


def test_a_failure_is_named(tmp_path):
    with pytest.raises(CommandFailed, match="seqstruct.harness.trainings"):
        run_trainings([["nowhere", "--task", "no_such_task"]], tmp_path, 1)
