from __future__ import annotations

from pathlib import Path

import pytest
import torch
from fairseq.data import Dictionary

from seqstruct.bridge.checkpoints import load_checkpoint
from seqstruct.bridge.patches.dictionaries import KEY, digest
from tests.models.front_door import PLUGIN, binarize, fairseq, write_copy_corpus

OPTIONS = ["--user-dir", PLUGIN, "--cpu", "--num-workers", 0]
TRAINING = ["--arch", "rnn_translation", "--embed-dim", 8, "--hidden-size", 8, "--optimizer", "adam", "--lr", 0.02,
            "--criterion", "cross_entropy", "--batch-size", 20, "--max-update", 2, "--disable-validation",
            "--no-epoch-checkpoints", *OPTIONS]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two corpora whose dictionaries have the same words in other orders, with a model each."""
    found = []
    for name in ("one", "two"):
        folder = tmp_path_factory.mktemp(name)
        write_copy_corpus(folder)
        if name == "two":
            for language in ("de", "en"):
                path = folder / f"train.{language}"
                path.write_text(path.read_text() + "tag tag tag tag tag\n" * 40)
        binarize(folder, folder / "bin")
        fairseq("train", folder / "bin", *TRAINING, "--save-dir", folder)
        found.append(folder)
    return found


def generate(folder: Path, *models: Path) -> str:
    return fairseq("generate", folder / "bin", *OPTIONS, "--path", ":".join(map(str, models)), "--max-len-b", 3)


@pytest.mark.training
def test_checkpoints_know_their_dictionaries(folders: list[Path]) -> None:
    for folder in folders:
        recorded = load_checkpoint(folder / "checkpoint_last.pt")["extra_state"][KEY]
        assert recorded == {
            side: digest(Dictionary.load(str(folder / "bin" / f"dict.{language}.txt")))
            for side, language in (("source", "de"), ("target", "en"))
        }
    assert digest(Dictionary()) != recorded["source"]


@pytest.mark.training
def test_models_of_unlike_dictionaries_do_not_decode_together(folders: list[Path]) -> None:
    one, two = (folder / "checkpoint_last.pt" for folder in folders)
    assert "H-0" in generate(folders[0], one, one)
    with pytest.raises(ValueError, match="was trained with another source dictionary than the data folder has"):
        generate(folders[0], one, two)
    with pytest.raises(ValueError, match="was trained with another source dictionary"):
        generate(folders[1], one)


@pytest.mark.training
def test_checkpoints_of_fairseq_alone_are_told_apart_by_their_folders(folders: list[Path], tmp_path: Path) -> None:
    paths = []
    for folder in folders:
        state = torch.load(folder / "checkpoint_last.pt", weights_only=True)
        del state["extra_state"][KEY]
        paths.append(tmp_path / f"{folder.name}.pt")
        torch.save(state, paths[-1])
    assert "H-0" in generate(folders[0], paths[0])
    with pytest.raises(ValueError, match="one.*two.*have unlike source dictionaries"):
        generate(folders[0], *paths)
    (tmp_path / "bin").mkdir()
    for path in (folders[0] / "bin").iterdir():
        more = "extra 1\n" if path.name.startswith("dict") else ""
        (tmp_path / "bin" / path.name).write_bytes(path.read_bytes() + more.encode())
    with pytest.raises(ValueError, match=r"another source dictionary than the data folder has \(17 symbols there\)"):
        generate(tmp_path, paths[0])
