from __future__ import annotations

from pathlib import Path

import pytest
import torch
from fairseq.data import Dictionary

from seqstruct.bridge.checkpoints import load_checkpoint
from seqstruct.bridge.patches.dictionaries import KEY, digest
from tests.data.scripts import prepared
from tests.models.front_door import binarize, fairseq, sizes
from tests.models.reversals import train


@pytest.fixture(scope="module")
def models(reversals: Path, recurrent: Path, reordered: Path, stranger: Path) -> dict[Path, Path]:
    """Checkpoints by their data, whose dictionaries have the same words in other orders."""
    return {reversals / "bin": recurrent, reordered / "bin": stranger}


def generate(data: Path, *models: Path) -> str:
    return fairseq("generate", data, "--path", ":".join(map(str, models)), "--max-len-b", 3)


@pytest.mark.training
def test_checkpoints_know_their_dictionaries(models: dict[Path, Path]) -> None:
    for data, checkpoint in models.items():
        recorded = load_checkpoint(checkpoint)["extra_state"][KEY]
        assert recorded == {
            side: digest(Dictionary.load(str(data / f"dict.{language}.txt")).symbols)
            for side, language in (("source", "de"), ("target", "en"))
        }
    assert digest(Dictionary().symbols) != recorded["source"]


@pytest.mark.training
def test_models_of_unlike_dictionaries_do_not_decode_together(models: dict[Path, Path]) -> None:
    (data, one), (other, two) = models.items()
    assert "H-0" in generate(data, one, one)
    with pytest.raises(ValueError, match="was trained with another source dictionary than the data folder has"):
        generate(data, one, two)
    with pytest.raises(ValueError, match="was trained with another source dictionary"):
        generate(other, one)
    validate = ["--task", "translation", "--path", one, "--batch-size", 20, "--valid-subset", "test"]
    assert "test_loss" in fairseq("validate", data, *validate, "--log-format", "json")
    with pytest.raises(ValueError, match="was trained with another source dictionary"):
        fairseq("validate", other, *validate)


@pytest.mark.training
def test_checkpoints_of_fairseq_alone_are_told_apart_by_their_folders(models: dict[Path, Path], tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("one.pt", "two.pt")]
    for path, checkpoint in zip(paths, models.values(), strict=True):
        state = torch.load(checkpoint, weights_only=True)
        del state["extra_state"][KEY]
        torch.save(state, path)
    data = next(iter(models))
    assert "H-0" in generate(data, paths[0])
    with pytest.raises(ValueError, match="one.*two.*have unlike source dictionaries"):
        generate(data, *paths)
    (tmp_path / "bin").mkdir()
    for path in data.iterdir():
        more = "extra 1\n" if path.name.startswith("dict") else ""
        (tmp_path / "bin" / path.name).write_bytes(path.read_bytes() + more.encode())
    with pytest.raises(ValueError, match=r"another source dictionary than the data folder has \(17 symbols there\)"):
        generate(tmp_path / "bin", paths[0])


@pytest.mark.training
@pytest.mark.parametrize("option", ["--restore-file", "--finetune-from-model"])
def test_training_goes_on_over_the_same_dictionaries(models: dict[Path, Path], option: str, tmp_path: Path) -> None:
    (data, one), (other, _) = models.items()
    options = (option, one, "--max-update", 5)
    assert train(data, tmp_path / "same", "rnn", *options).is_file()
    with pytest.raises(ValueError, match=f"{one} was trained with another source dictionary than the data folder has"):
        train(other, tmp_path / "other", "rnn", *options)


@pytest.mark.training
def test_language_models_belong_to_a_dictionary(reversals: Path, reordered: Path, tmp_path: Path) -> None:
    other = binarize(reordered / "text", tmp_path / "lm", only=".de")
    task = ["--task", "language_modeling", "--tokens-per-sample", 8, "--batch-size", 20]
    fairseq("train", reversals / "lm", *task, "--arch", "structured_transformer_lm", *sizes("decoder"), "--optimizer",
            "adam", "--max-update", 1, "--disable-validation", "--save-dir", tmp_path)
    evaluate = [*task, "--path", tmp_path / "checkpoint_last.pt"]
    assert "Perplexity" in fairseq("eval-lm", reversals / "lm", *evaluate)
    with pytest.raises(ValueError, match="was trained with another source dictionary than the data folder has"):
        fairseq("eval-lm", other, *evaluate)


@pytest.mark.training
def test_folders_of_commands_have_their_words_and_labels(tmp_path: Path) -> None:
    def folder(name: str, place: str) -> Path:
        (tmp_path / f"{name}.txt").write_text(f"1 Ann went to the {place}.\n2 Where is Ann?\t{place}\t1\n" * 3)
        text = ["--train", tmp_path / f"{name}.txt", "--valid", tmp_path / f"{name}.txt"]
        prepared("question-answering", *text, "--test", tmp_path / f"{name}.txt", "--out", tmp_path / name)
        return tmp_path / name

    own, other = folder("own", "hall"), folder("other", "attic")
    task = ["--task", "babi_qa", "--criterion", "babi_qa", "--batch-size", 2]
    train = [*task, "--arch", "memory_unary_crf", "--optimizer", "sgd", "--lr", 0.1, "--max-update", 1]
    fairseq("train", own, *train, "--save-dir", tmp_path / "run")
    checkpoint = tmp_path / "run" / "checkpoint_last.pt"
    fairseq("validate", own, *task, "--path", checkpoint)
    with pytest.raises(ValueError, match="was trained with another source dictionary than the data folder has"):
        fairseq("validate", other, *task, "--path", checkpoint)
    with pytest.raises(ValueError, match="was trained with another source dictionary than the data folder has"):
        fairseq("train", other, *train, "--restore-file", checkpoint, "--save-dir", tmp_path / "more")
