"""`seqstruct parse-dependencies`: predicted trees as CoNLL-U, from text and from CoNLL-U, and what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import torch

from seqstruct.cli import main
from seqstruct.data.parsing.folder import read_meta, read_split, write_folder
from seqstruct.data.text.conllu import read_conllu
from seqstruct.scoring.parsers import load_dependency_parser
from tests.data.parsing.corpora import corpus
from tests.models.front_door import fairseq

pytestmark = pytest.mark.training  # all parse by a trained model

SIZES = ["--word-dim", 8, "--lemma-dim", 0, "--lstm-size", 7, "--lstm-layers", 1, "--mlp-size", 9]


def train(folder: Path, name: str, *options: object) -> Path:
    fairseq(
        "train", folder / "data", "--task", "joint_parsing", "--criterion", "joint_parsing", "--arch", "joint_parser",
        *SIZES, *options, "--optimizer", "adam", "--lr", 0.05, "--batch-size", 4, "--max-epoch", 3, "--save-dir",
        folder / name, "--no-epoch-checkpoints",
    )
    return folder / name / "checkpoint_last.pt"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """data/ and two checkpoints of parsers of trees: words/ reads words alone, tags/ words and tags."""
    folder = tmp_path_factory.mktemp("dependencies")
    write_folder({"trees": corpus("trees"), "sst": corpus("classes", 3)}, folder / "data")
    train(folder, "words", "--corpora", "trees", "--tag-dim", 0)
    train(folder, "tags", "--corpora", "trees", "--tag-dim", 3)
    return folder


def parse(*arguments: object) -> int:
    return main(["parse-dependencies", *map(str, arguments)])


def test_text_and_conllu_give_the_model_s_trees(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sentences = read_split(trained / "data", "trees", "test", read_meta(trained / "data"))
    lines = ["often", *(" ".join(sentence.words) for sentence in sentences), "a strange dog sees the very tree often"]
    (tmp_path / "some.txt").write_text("".join(f"{line}\n" for line in lines))
    with gzip.open(tmp_path / "other.conllu.gz", "wt") as stream:
        stream.write("1\tthe\t_\tDET\tdt\t_\t_\t_\t_\t_\n2\tdog\tdog\tNOUN\tnn\t_\t1\tx\t_\t_\n\n")
    checkpoint = trained / "words" / "checkpoint_last.pt"
    assert parse(tmp_path / "some.txt", tmp_path / "other.conllu.gz", "--checkpoint", checkpoint, "--out",
                 tmp_path / "out") == 0
    printed = capsys.readouterr().out
    assert f"some.conllu: {len(lines)} trees" in printed and "other.conllu: 1 trees" in printed
    found = list(read_conllu(tmp_path / "out" / "some.conllu"))
    assert [" ".join(token.form for token in sentence.tokens) for sentence in found] == lines
    one_by_one = load_dependency_parser(checkpoint)
    assert [list(s.heads) for s in found[1:-1]] == [one_by_one([sentence])[0] for sentence in sentences]
    (kept,) = read_conllu(tmp_path / "out" / "other.conllu")
    columns = [(token.lemma, token.upos, token.xpos) for token in kept.tokens]
    assert columns == [("_", "DET", "dt"), ("dog", "NOUN", "nn")]
    assert sorted(kept.heads) in ([0, 0], [0, 1], [0, 2])


def test_a_model_that_reads_tags_needs_them(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("the dog\n")
    (tmp_path / "a.conllu").write_text("1\tthe\t_\tDET\t_\t_\t_\t_\t_\t_\n\n")
    options = ["--checkpoint", trained / "tags" / "checkpoint_last.pt", "--out", tmp_path / "out"]
    assert parse(tmp_path / "a.txt", *options) == 1
    assert "reads tags, and there are none for: the dog" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert parse(tmp_path / "a.conllu", *options, "--tags", "xpos") == 1
    assert parse(tmp_path / "a.conllu", *options) == 0
    assert parse(tmp_path / "a.conllu", *options) == 1
    assert "exists and is not empty" in capsys.readouterr().err


def test_refused(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(*arguments: object) -> str:
        assert parse(*arguments, "--out", tmp_path / "out") == 1
        assert not (tmp_path / "out").exists()
        return capsys.readouterr().err

    (tmp_path / "a.txt").write_text("the dog\n\n")
    (tmp_path / "a.conllu").write_text("\n")
    checkpoint = ["--checkpoint", trained / "words" / "checkpoint_last.pt"]
    assert "a.txt: line 2: expected a sentence" in refused(tmp_path / "a.txt", *checkpoint)
    assert "a.conllu: expected sentences, found none" in refused(tmp_path / "a.conllu", *checkpoint)
    assert "expected files of different names" in refused(tmp_path / "a.txt", tmp_path / "a.conllu", *checkpoint)
    (tmp_path / "a.txt").write_text("the dog\n")
    torch.save([1], tmp_path / "foreign.pt")
    assert "with a 'model' entry" in refused(tmp_path / "a.txt", "--checkpoint", tmp_path / "foreign.pt")
    classes = train(trained, "classes", "--corpora", "sst")
    assert "expected a joint_parser with a parser of trees" in refused(tmp_path / "a.txt", "--checkpoint", classes)
