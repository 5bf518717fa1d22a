"""The running average that `--store-ema` keeps: of all parameters, once each, and good to generate with."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from seqstruct.bridge.averaging import average_checkpoints
from seqstruct.bridge.checkpoints import load_checkpoint
from seqstruct.bridge.patches.running_average import first_names
from tests.models.front_door import fairseq, sizes


def train(folder: Path, run: Path, updates: int, *options: object) -> None:
    """Pre-norm, all embeddings tied, random features drawn anew at each step, a checkpoint after every update."""
    fairseq(
        "train", folder / "bin", "--arch", "structured_transformer_small", *sizes(heads=4), "--batch-size", 20,
        "--decoder-self-attention", "performer(features=6, redraw=1)", "--dropout", 0, "--optimizer", "adam",
        "--lr", 0.01, "--max-update", updates, "--save-interval-updates", 1, "--disable-validation", "--save-dir", run,
        *options,
    )


def read(path: Path) -> tuple[dict, dict]:
    state = load_checkpoint(path)
    return state["model"], state["extra_state"]["ema"]


@pytest.mark.training
def test_each_update_moves_every_parameter_once_and_a_resumed_run_goes_on(reversals: Path, tmp_path: Path) -> None:
    average = ["--store-ema", "--ema-decay", 0.75]
    train(reversals, tmp_path, 2, *average)
    train(reversals, tmp_path, 3, *average)
    _, mean = read(tmp_path / "checkpoint_1_1.pt")
    for path in (tmp_path / "checkpoint_1_2.pt", tmp_path / "checkpoint_last.pt"):
        model, found = read(path)
        assert found.keys() == model.keys()
        assert "encoder.layer_norm.weight" in found
        for name, value in model.items():
            buffer = name.endswith(("version", "projection", "seed", "passes", "_float_tensor"))
            expected = value if buffer else mean[name].mul(0.75).add(value, alpha=0.25)
            assert torch.equal(found[name], expected), name
        mean = found


@pytest.mark.training
def test_a_resumed_run_moves_the_average_at_the_same_updates(reversals: Path, tmp_path: Path) -> None:
    average = ["--store-ema", "--ema-decay", 0.75, "--ema-update-freq", 3]
    for updates in (2, 4):
        train(reversals, tmp_path, updates, *average)
    name = "decoder.layer_norm.weight"
    means = [read(tmp_path / f"checkpoint_1_{i}.pt")[1][name] for i in (1, 2, 3)]
    means.append(read(tmp_path / "checkpoint_last.pt")[1][name])
    assert [torch.equal(*pair) for pair in zip(means, means[1:], strict=False)] == [True, False, True]


@pytest.mark.training
def test_a_run_without_an_average_starts_one_where_it_goes_on(reversals: Path, tmp_path: Path) -> None:
    train(reversals, tmp_path, 2)
    train(reversals, tmp_path, 3, "--store-ema", "--ema-decay", 0.5)
    before = load_checkpoint(tmp_path / "checkpoint_1_2.pt")["model"]
    after, mean = read(tmp_path / "checkpoint_last.pt")
    name = "decoder.layer_norm.weight"
    assert not torch.equal(before[name], after[name])
    assert torch.equal(mean[name], before[name].mul(0.5).add(after[name], alpha=0.5))


@pytest.mark.training
def test_the_average_generates(reversals: Path, tmp_path: Path) -> None:
    train(reversals, tmp_path, 2, "--store-ema", "--ema-decay", 0.5)
    last = tmp_path / "checkpoint_last.pt"
    average_checkpoints([last], tmp_path / "mean.pt", running=True)
    model, mean = load_checkpoint(tmp_path / "mean.pt")["model"], read(last)[1]
    assert all(torch.equal(model[name], value) for name, value in mean.items())
    found = fairseq("generate", reversals / "bin", "--path", tmp_path / "mean.pt", "--batch-size", 20, "--beam", 1,
                    "--max-len-b", 9)
    assert found.count("\nH-") == 60


def test_names_of_one_tensor() -> None:
    table, view = torch.zeros(3, 2), torch.zeros(4)
    entries = {"a": table, "b": table, "c": view, "d": view[:2], "e": torch.zeros(0), "f": torch.zeros(0)}
    assert list(first_names(entries)) == ["a", "c", "d", "e", "f"]
