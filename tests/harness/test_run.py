"""Where a run finds raw data, and trainings cut short."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from seqstruct.harness import run as module
from seqstruct.harness.process import Usage
from seqstruct.harness.progress import Progress
from seqstruct.harness.recipe import Cell
from seqstruct.harness.run import Run
from tests.harness.fake_recipe import recipe


def test_raw_data_is_given_or_among_the_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run.__new__(Run)
    run.source = tmp_path / "given"
    assert run.raw_data("corpus") == tmp_path / "given"
    run.source = None
    monkeypatch.delenv("SEQSTRUCT_REFERENCE", raising=False)
    assert run.raw_data("corpus") is None
    monkeypatch.setenv("SEQSTRUCT_REFERENCE", str(tmp_path))
    assert run.raw_data("corpus") is None
    (tmp_path / "data" / "corpus").mkdir(parents=True)
    assert run.raw_data("corpus") == tmp_path / "data" / "corpus"


def test_a_training_that_was_never_validated_is_not_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def train(command, log: Path, **_) -> Usage:
        calls.append(command)
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("")
        checkpoints = log.parent / "checkpoints"
        checkpoints.mkdir(exist_ok=True)
        with zipfile.ZipFile(checkpoints / ("checkpoint_last.pt" if len(calls) == 1 else "checkpoint_best.pt"), "w"):
            pass
        return Usage(seconds=1.0, peak_memory=1)

    monkeypatch.setattr(module, "run_command", train)
    run = Run(recipe, Cell("plain", 1, "small"), tmp_path, progress=Progress(), max_minutes=0.5)
    with pytest.raises(ValueError, match="0.5 minutes; --max-minutes"):
        run.fairseq_train("data", [], epochs=1)
    assert run.fairseq_train("data", [], epochs=1).exists()
    run.fairseq_train("data", [], epochs=1)
    assert len(calls) == 2


def test_a_command_says_whether_kernels_were_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = Cell("plain", 1, "small")
    monkeypatch.delenv("SEQSTRUCT_COMPILED", raising=False)
    plain = module.command_line(recipe, cell)
    assert plain.startswith("python ") and plain.endswith('--scale small --row "plain" --seed 1')
    monkeypatch.setenv("SEQSTRUCT_COMPILED", "1")
    assert module.command_line(recipe, cell) == f"SEQSTRUCT_COMPILED=1 {plain}"
