"""Small translation models of fairseq-train."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.front_door import PLUGIN, binarize, fairseq, sizes, write_copy_corpus

SMALL = {
    "rnn": ["--arch", "rnn_translation", "--embed-dim", 8, "--hidden-size", 8, "--encoder-layers", 1,
            "--decoder-layers", 1, "--max-source-positions", 20, "--max-target-positions", 20],
    "transformer": ["--arch", "structured_transformer_small", *sizes(), "--max-source-positions", 20,
                    "--max-target-positions", 20],
}  # fmt: skip


def train(data: Path, save: Path, model: str, *options: object) -> Path:
    """A few updates; the checkpoint."""
    fairseq(
        "train", data, "--user-dir", PLUGIN, "--cpu", "--num-workers", 0, *SMALL[model], "--optimizer", "adam",
        "--lr", 0.02, "--criterion", "cross_entropy", "--batch-size", 20, "--max-update", 4, "--no-epoch-checkpoints",
        "--no-progress-bar", "--disable-validation", "--save-dir", save, *options,
    )  # fmt: skip
    return save / "checkpoint_last.pt"


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with text and bin/, of six words."""
    folder = tmp_path_factory.mktemp("copy")
    write_copy_corpus(folder)
    binarize(folder, folder / "bin")
    return folder


@pytest.fixture(scope="session")
def models(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Checkpoints by name."""
    folder = tmp_path_factory.mktemp("models")
    return {
        "rnn": train(corpus / "bin", folder / "rnn", "rnn"),
        "other": train(corpus / "bin", folder / "other", "rnn", "--seed", 2),
        "transformer": train(corpus / "bin", folder / "transformer", "transformer"),
    }


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the same sizes whose dictionary has the same words in another order."""
    folder = tmp_path_factory.mktemp("stranger")
    write_copy_corpus(folder)
    for language in ("de", "en"):
        path = folder / f"train.{language}"
        path.write_text(path.read_text() + "tag tag tag tag tag\n" * 40)
    binarize(folder, folder / "bin")
    return train(folder / "bin", folder / "model", "rnn")
