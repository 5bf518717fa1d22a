"""Where a run finds raw data."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqstruct.harness.run import Run


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
