"""Small translation models of fairseq-train."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.reversals import train


@pytest.fixture(scope="session")
def models(reversals: Path, recurrent: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Checkpoints by name."""
    folder = tmp_path_factory.mktemp("models")
    return {
        "rnn": recurrent,
        "other": train(reversals / "bin", folder / "other", "rnn", "--seed", 2),
        "transformer": train(reversals / "bin", folder / "transformer", "transformer"),
    }
