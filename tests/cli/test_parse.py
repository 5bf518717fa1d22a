"""`seqstruct parse`: trees and scores, from fixed branching and from checkpoints, and what is refused."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import torch

from seqstruct.cli import main
from tests.models.front_door import EVERYWHERE, binarize, fairseq

TREES = """( (S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (DT A) (NN cat) (NP (-NONE- *)))) (. .)) )
( (S (NP (NN it)) (VP (VBD was) (ADJP (RB very) (JJ old)))) )
( (S (. .)) )
( (S (NP (NN it)) (VP (VBD was) (ADJP (JJ small) (JJ small) (JJ small) (JJ small) (JJ small) (JJ small)))))
"""


@pytest.fixture
def trees(tmp_path) -> Path:
    (tmp_path / "gold.mrg").write_text(TREES)
    return tmp_path / "gold.mrg"


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A folder with bin/ and a PaLM after one epoch; "palm" says that --arch is palm."""
    folder = tmp_path_factory.mktemp("parse")
    for split in ("train", "valid"):
        (folder / split).write_text("the dog saw a cat\nit was very old\n" * 4)
    binarize(folder, folder / "bin", only="")
    train(folder, folder, *PALM)
    return folder


OPTIONS = [
    "--task", "stream_language_modeling", "--decoder-layers", "2", "--decoder-embed-dim", "8", "--hidden-size", "12",
    "--batch-size", "2", "--tokens-per-sample", "9", "--required-batch-size-multiple", "1",
]
PALM = ["--arch", "palm", "--attention-layer", "1", "--span-size", "4"]


def train(folder: Path, out: Path, *options: object) -> None:
    fairseq("train", folder / "bin", *OPTIONS, *options, "--optimizer", "adam", "--lr", "0.01", "--max-epoch", 1,
            "--save-dir", out, "--no-epoch-checkpoints")


def printed(capsys, *arguments) -> str:
    assert main(["parse", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_branching_is_scored(trees, capsys):
    found = json.loads(printed(capsys, trees, "--branching", "right", "--format", "json", "--max-words", "5"))
    # gold 04 01 24 34 and 03 13 23, right branching 04 14 24 34 and 03 13 23
    assert found["sentences"] == 2
    assert found["f1"] == pytest.approx(100 * 6 / 7)
    assert (found["left_splits"], found["right_splits"]) == (0, 100)
    assert "unlabeled f1         100.00" in printed(capsys, trees, "--branching", "gold")
    capitals = trees.with_name("GOLD.MRG")
    capitals.write_bytes(trees.read_bytes())
    assert "unlabeled f1         100.00" in printed(capsys, capitals, "--branching", "gold")
    assert json.loads(printed(capsys, trees, "--branching", "left", "--format", "json"))["sentences"] == 3


def test_sentences_of_two_words_have_no_splits(tmp_path, capsys):
    path = tmp_path / "short.mrg"
    path.write_text("(S (NP (DT the) (NN dog)))\n(S (NN dogs) (VB bark))\n")
    found = json.loads(printed(capsys, path, "--branching", "left", "--format", "json"))
    assert (found["sentences"], found["f1"]) == (2, 100) and "left_splits" not in found
    assert "splits" not in printed(capsys, path, "--branching", "right")


def test_text_is_drawn(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("the dog barks\nyes\n"))
    assert printed(capsys, "-", "--branching", "left").split("\n")[:4] == ["┬─┬─ the", "│ └─ dog", "└─ barks", ""]
    (tmp_path / "text").write_text("the dog barks\nyes\n")
    found = printed(capsys, tmp_path / "text", "--branching", "right", "--format", "brackets")
    assert found == "(the (dog barks))\nyes\n"


GOLD = [{(0, 4), (0, 1), (2, 4), (3, 4)}, {(0, 3), (1, 3), (2, 3)}, {(0, 7), (1, 7), (2, 7)}]


def f1_of(text: str) -> float:
    """Of all sentences together, in percent, of trees in brackets against those of `TREES`."""
    found = []
    for line in text.splitlines():
        opened, made, place = [], set(), 0
        for token in line.replace("(", " ( ").replace(")", " ) ").split():
            if token == "(":
                opened.append(place)
            elif token == ")":
                made.add((opened.pop(), place - 1))
            else:
                place += 1
        found.append(made)
    assert len(found) == len(GOLD)
    hits = sum(len(made & gold) for made, gold in zip(found, GOLD, strict=True))
    return 200 * hits / sum(map(len, [*found, *GOLD]))


@pytest.mark.training
def test_a_checkpoint_parses(trained, trees, capsys):
    options = ["--checkpoint", trained / "checkpoint_best.pt"]
    found = printed(capsys, trees, *options, "--lowercase", "--format", "brackets")
    scores = json.loads(printed(capsys, trees, *options, "--lowercase", "--format", "json"))
    assert scores["f1"] == pytest.approx(f1_of(found))
    moved = trained.rename(trained.parent / "moved")
    try:
        there = ["--checkpoint", moved / "checkpoint_best.pt", "--data", moved / "bin"]
        assert json.loads(printed(capsys, trees, *there, "--lowercase", "--format", "json")) == scores
        left = [printed(capsys, trees, *there, "--left-score", "--format", form) for form in ("json", "brackets")]
        assert json.loads(left[0])["f1"] == pytest.approx(f1_of(left[1]))
        assert "small" in printed(capsys, trees, *there, "--format", "drawn")
    finally:
        moved.rename(trained)


def test_an_untrained_model_needs_an_architecture(trees, refused):
    told = "expected a folder and options of fairseq-train, --arch among them, got ['data']"
    assert told in refused("parse", trees, "--untrained", "data")


@pytest.mark.parametrize(("content", "missing"), [
    ("model: {_name: palm}", "task"), ("task: {_name: language_modeling, data: none}", "model"),
])
def test_an_untrained_model_needs_a_task_and_a_model(trees, refused, content, missing):
    trees.with_name("train.yaml").write_text(f"# @package _global_\n{content}\n")
    config = ["--config-dir", trees.parent, "--config-name", "train"]
    told = refused("parse", trees, *config, "--untrained", "common.seed=1")
    assert f"expected a config with a task and a model, got no {missing}" in told


@pytest.mark.parametrize(("options", "told"), [
    (["--branching", "left", "--left-score"], "--left-score: expected --checkpoint or --untrained with it"),
    (["--branching", "left", "--lowercase"], "--lowercase: expected --checkpoint or --untrained with it"),
    (["--branching", "left", "--data", "bin"], "--data: expected --checkpoint with it"),
    (["--untrained", "bin", "--data", "bin"], "--data: expected --checkpoint with it"),
    (["--checkpoint", "x.pt", "--seed", "2"], "--seed: expected --untrained or --branching with it"),
    (["--branching", "left", "--convention", "sentence"], "--convention: expected trees to score"),
    (["--branching", "left", "--max-words", "10"], "--max-words: expected trees to score"),
    (["--branching", "left", "--out", "x.json"], "--out: expected trees to score"),
    (["gold.mrg", "--branching", "left", "--out", "x.json", "--format", "json"], "--out: expected no --format with it"),
    (["gold.mrg", "--branching", "left", "--convention", "sentence", "--format", "drawn"], "--convention: expected"),
])
def test_options_that_do_nothing_are_refused(trees, refused, monkeypatch, options, told):
    monkeypatch.chdir(trees.parent)
    trees.with_name("text").write_text("a b\n")
    assert told in refused("parse", *(["text"] if options[0].startswith("--") else []), *options)


def test_a_seed_that_torch_does_not_take_is_refused(trees, capsys):
    with pytest.raises(SystemExit):
        main(["parse", str(trees), "--branching", "random", "--seed", str(2**64)])
    assert "expected a whole number, 0 to 9223372036854775807, got '18446744073709551616'" in capsys.readouterr().err
    assert main(["parse", str(trees), "--branching", "random", "--seed", str(2**63 - 1)]) == 0


@pytest.mark.training
def test_untrained_models_differ_by_seed_alone(trained, trees, capsys):
    def found(seed: int) -> str:
        options = " ".join(map(str, [trained / "bin", *EVERYWHERE, *OPTIONS, *PALM]))
        return printed(capsys, trees, "--untrained", options, "--seed", seed, "--format", "brackets")

    before = torch.random.get_rng_state()
    trees_of = [found(seed) for seed in (1, 1, 2, 3, 4, 5)]
    assert trees_of[0] == trees_of[1]
    assert len(set(trees_of)) > 1
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.training
def test_a_model_that_does_not_parse_is_refused(trained, trees, tmp_path, refused):
    train(trained, tmp_path, "--arch", "awd_lstm", "--max-update", 1)
    error = refused("parse", trees, "--checkpoint", tmp_path / "checkpoint_last.pt")
    assert "AWDLSTMLanguageModel is no parser" in error


def test_bad_input_is_refused_in_one_sentence(tmp_path, trees, capsys, refused):
    text = tmp_path / "text"
    text.write_text("a b\n\nc\n")
    assert main(["parse", str(text), "--branching", "left"]) == 1, "after the tree of the first line"
    assert "line 2: expected a sentence, got an empty line" in capsys.readouterr().err
    text.write_text("")
    assert "expected sentences, got nothing" in refused("parse", text, "--branching", "left")
    assert "scores need trees" in refused("parse", text, "--branching", "left", "--format", "json")
    (tmp_path / "bad.mrg").write_text("(S (A a)\n(S (B b))\n")
    assert "bad.mrg: line 1: a bracket opens here" in refused("parse", tmp_path / "bad.mrg", "--branching", "left")
    assert "no sentence of at most 1 words" in refused("parse", trees, "--branching", "left", "--max-words", "1")
    assert "expected 1 or more, got 0" in refused("parse", trees, "--branching", "left", "--max-words", "0")
    assert "absent.mrg" in refused("parse", tmp_path / "absent.mrg", "--branching", "left")
