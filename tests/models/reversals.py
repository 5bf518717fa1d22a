"""What most small translation models learn from, sixty pairs a split whose target is the source reversed, and such
models."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.models.front_door import binarize, fairseq, sizes

WORDS = ("ein", "haus", "am", "see", "und", "tag")
SMALL = {
    "rnn": ["--arch", "rnn_translation", "--embed-dim", 8, "--hidden-size", 8, "--encoder-layers", 1,
            "--decoder-layers", 1],
    "transformer": ["--arch", "structured_transformer_small", *sizes()],
}


@contextmanager
def read_only(folder: Path) -> Iterator[Path]:
    """Whoever writes into it is found out at the end, whatever the rights."""

    def contents() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    before = contents()
    yield folder
    assert contents() == before, f"{folder}: a test wrote into what all tests read"


@pytest.fixture(scope="session")
def reversals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """text/; bin/, with a joined dictionary; lm/, the sources alone."""
    folder, chooser = tmp_path_factory.mktemp("reversals"), random.Random(3)
    text = folder / "text"
    text.mkdir()
    for split in ("train", "valid", "test"):
        lines = [[chooser.choice(WORDS) for _ in range(chooser.randint(1, 7))] for _ in range(60)]
        for language, side in (("de", lines), ("en", [line[::-1] for line in lines])):
            (text / f"{split}.{language}").write_text("".join(" ".join(line) + "\n" for line in side))
    binarize(text, folder / "bin")
    binarize(text, folder / "lm", only=".de")
    with read_only(folder):
        yield folder


@pytest.fixture(scope="session")
def reordered(reversals: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """text/ and bin/, with one word so often that the dictionary has the same words in another order."""
    folder = tmp_path_factory.mktemp("reordered")
    shutil.copytree(reversals / "text", folder / "text")
    for language in ("de", "en"):
        with (folder / "text" / f"train.{language}").open("a") as stream:
            stream.write("tag tag tag tag tag\n" * 40)
    binarize(folder / "text", folder / "bin")
    with read_only(folder):
        yield folder


@pytest.fixture(scope="session")
def unknown_words(reversals: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """text/ and raw/, data of `--dataset-impl raw`: no dictionary knows every third word of a test source."""
    folder = tmp_path_factory.mktemp("unknown")
    shutil.copytree(reversals / "text", folder / "text")
    lines = (folder / "text" / "test.de").read_text().splitlines()
    marked = [[f"{word}{i}" if i % 3 == 0 else word for i, word in enumerate(line.split())] for line in lines]
    (folder / "text" / "test.de").write_text("".join(" ".join(line) + "\n" for line in marked))
    binarize(folder / "text", folder / "raw", "--dataset-impl", "raw")
    with read_only(folder):
        yield folder


def train(data: Path, save: Path, model: str, *options: object) -> Path:
    """A few updates; the checkpoint."""
    fairseq(
        "train", data, *SMALL[model], "--max-source-positions", 20, "--max-target-positions", 20, "--optimizer", "adam",
        "--lr", 0.02, "--criterion", "cross_entropy", "--batch-size", 20, "--max-update", 4, "--no-epoch-checkpoints",
        "--disable-validation", "--save-dir", save, *options,
    )
    return save / "checkpoint_last.pt"


@pytest.fixture(scope="session")
def recurrent(reversals: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(reversals / "bin", tmp_path_factory.mktemp("recurrent"), "rnn")


@pytest.fixture(scope="session")
def stranger(reordered: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the same sizes whose dictionary has the same words in another order."""
    return train(reordered / "bin", tmp_path_factory.mktemp("stranger"), "rnn")
