"""A training that is cut and resumed equals an unbroken one, patience and plateau included."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from seqstruct.bridge.checkpoints import load_checkpoint
from tests.models.front_door import binarize, fairseq, sizes

TRAIN = [
    "--task", "language_modeling", "--arch", "transformer_lm", *sizes("decoder", heads=2), "--dropout", 0.3,
    "--tokens-per-sample", 8, "--batch-size", 3, "--sample-break-mode", "none", "--optimizer", "adam", "--lr", 0.05,
    "--no-epoch-checkpoints",
]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Binarised text of random words, in validation of such as training never has: it gets worse from the start."""
    folder = tmp_path_factory.mktemp("text")
    generator = torch.Generator().manual_seed(5)
    for split, lines in (("train", 13), ("valid", 5)):
        words = torch.randint(7, (lines, 7), generator=generator).tolist()
        (folder / split).write_text("".join(" ".join(f"{split}{w}" for w in line) + "\n" for line in words))
    return binarize(folder, folder / "bin", only="")


def train(data: Path, folder: Path, epochs: int) -> tuple[dict, str]:
    """Checkpoint and output of a tiny language model trained up to an epoch, going on from what is in the folder."""
    printed = fairseq(
        "train", data, *TRAIN, "--lr-scheduler", "reduce_lr_on_plateau", "--lr-patience", 1, "--lr-shrink", 0.5,
        "--patience", 4, "--max-epoch", epochs, "--save-dir", folder, "--update-epoch-batch-itr", "True", "--seed", 3,
    )
    return load_checkpoint(folder / "checkpoint_last.pt"), printed


@pytest.mark.training
def test_resumed_equals_unbroken_bit_for_bit(data, tmp_path):
    whole, output = train(data, tmp_path / "whole", 40)
    assert "early stop since" in output
    lr = whole["last_optimizer_state"]["param_groups"][0]["lr"]
    assert lr < 0.05
    epochs = whole["extra_state"]["train_iterator"]["epoch"] - 1
    assert 4 <= epochs < 40
    train(data, tmp_path / "cut", epochs - 2)
    cut, output = train(data, tmp_path / "cut", 40)
    assert "early stop since" in output
    assert cut["extra_state"]["train_iterator"] == whole["extra_state"]["train_iterator"]
    assert cut["last_optimizer_state"]["param_groups"][0]["lr"] == lr
    torch.testing.assert_close(cut["model"], whole["model"], rtol=0, atol=0)


@pytest.mark.training
def test_what_begins_anew_without_the_optimizers_state_is_told(data, tmp_path):
    options = [data, *TRAIN, "--disable-validation", "--no-save-optimizer-state", "--save-dir", tmp_path]
    told = "checkpoint_last.pt, of 3 updates, has no state of the optimizer, as with --no-save-optimizer-state: "
    assert told not in fairseq("train", *options, "--max-update", 3)
    assert told in fairseq("train", *options, "--max-update", 5)
    other = [*options[:-1], tmp_path / "other", "--restore-file", tmp_path / "checkpoint_last.pt", "--reset-optimizer"]
    assert "has no state of the optimizer" not in fairseq("train", *other, "--max-update", 1)


@pytest.mark.training
@pytest.mark.parametrize("updates", [8, 10], ids=["within an epoch", "at its end"])
def test_batches_of_the_first_epoch_are_kept(data, tmp_path, updates):
    """Without --update-epoch-batch-itr; five batches an epoch."""
    options = [*TRAIN, "--disable-validation"]
    fairseq("train", data, *options, "--max-update", 15, "--save-dir", tmp_path / "whole")
    for last in (updates, 15):
        fairseq("train", data, *options, "--max-update", last, "--save-dir", tmp_path / "cut")
    whole, cut = (load_checkpoint(tmp_path / name / "checkpoint_last.pt") for name in ("whole", "cut"))
    assert cut["extra_state"]["train_iterator"] == whole["extra_state"]["train_iterator"]
    torch.testing.assert_close(cut["model"], whole["model"], rtol=0, atol=0)


@pytest.mark.training
def test_a_run_with_bleu_goes_on(reversals, tmp_path):
    options = ["--arch", "rnn_translation", "--embed-dim", 8, "--hidden-size", 8, "--optimizer", "adam", "--batch-size",
               20, "--no-epoch-checkpoints", "--eval-bleu", "--eval-bleu-args", '{"beam": 1, "max_len_b": 3}',
               "--best-checkpoint-metric", "bleu", "--maximize-best-checkpoint-metric"]
    for updates in (1, 2):
        log = fairseq("train", reversals / "bin", *options, "--max-update", updates, "--save-dir", tmp_path)
        assert " | bleu " in log
        assert load_checkpoint(tmp_path / "checkpoint_last.pt")["optimizer_history"][-1]["num_updates"] == updates
