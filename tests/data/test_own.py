"""Data of one's own, as a newcomer brings it: each kind by one line, what is drawn, a sentence for each mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seqstruct.data.own import SPLITS, about
from tests.data.scripts import prepare, read

STORY = "1 Mary took the milk.\n2 Mary went to the {0}.\n3 Where is the milk?\t{0}\t1 2\n"
TREE = (
    "1\tw{0}\tw\tPROPN\t_\t_\t2\tnsubj\t2:nsubj\t_\n"
    "2\tslept\tsleep\tVERB\t_\t_\t0\troot\t0:root\t_\n\n"
)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Small files of every kind, in the folder where the commands run."""
    monkeypatch.chdir(tmp_path)
    rows = [(("pos", "neg")[i % 3 == 0], f"w{i} good soup") for i in range(30)]
    texts = {
        "t.tsv": "".join(f"{label}\t{text}\n" for label, text in rows),
        "t.labels": "".join(f"{label}\n" for label, _ in rows), "t.txt": "".join(f"{text}\n" for _, text in rows),
        "p.tsv": "".join(f"{label}\tAnn saw {i}.\tBob {text}\n" for i, (label, text) in enumerate(rows)),
        "s.txt": "".join(STORY.format(("garden", "kitchen")[i % 2]) for i in range(20)),
        "t.conllu": "".join(TREE.format(i) for i in range(20)),
        "q.de": "".join(f"Der Hund {i} .\n" for i in range(40)), "q.en": "".join(f"The dog {i} .\n" for i in range(40)),
        "space.tsv": "pos good\n", "one.tsv": "pos\tgood\n" * 9, "empty": "", "short": "a\n" * 7,
        "blank.tsv": "pos\tgood\nneg\t \n", "odd.tsv": "odd\tgood\n", "two.tsv": "pos\ta\nneg\tb\n", "r.en": "a\nb\n",
        "r.de": "a\n", "facts": "hello\n", "holes": "neg\n\n" * 15,
        "bell.tsv": "pos\tgood\t\a\nneg\tbad\tbad\n" * 9,
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "latin.tsv").write_bytes("pos\tgut\nneg\tübel\n".encode("latin-1"))
    return tmp_path


ABOUT = ("--name", "mine", "--licence", "CC0")
KINDS = {
    "text-classification": ("--train", "t.tsv"), "sentence-pairs": ("--train", "p.tsv"),
    "question-answering": ("--train", "s.txt"), "language-model": ("--train", "t.txt"),
    "parallel": ("--train", "q", "--src", "de", "--trg", "en", "--vocabulary", 30),
    "word-pairs": ("--train", "q", "--src", "de", "--trg", "en"), "parsing": ("--trees", "train=t.conllu"),
}
SIZES = {"text-classification": 30, "sentence-pairs": 30, "question-answering": 20, "language-model": 30,
         "parallel": 40, "word-pairs": 40, "parsing": 20}


def examples(kind: str, folder: Path) -> dict[str, list[str]]:
    """The examples of each split, one string each."""
    if kind == "question-answering":
        texts = {split: (folder / f"{split}.txt").read_text() for split in SPLITS}
        return {split: text.split("1 Mary took")[1:] for split, text in texts.items()}
    name = {"text-classification": "{}.txt", "sentence-pairs": "{}.jsonl", "language-model": "text/{}.txt",
            "parallel": "text/{}.en", "word-pairs": "text/{}.en", "parsing": "trees/{}.jsonl"}[kind]
    return {split: read(folder / name.format(split)) for split in SPLITS}


@pytest.mark.parametrize("kind", KINDS)
def test_one_line_a_kind_and_what_is_missing_is_drawn_once(kind, files, capsys):
    for out in ("one", "two"):
        assert prepare(kind, *KINDS[kind], *ABOUT, "--valid-share", 0.2, "--out", out) == 0, capsys.readouterr().err
    meta = json.loads((files / "one" / ("nli.json" if kind == "sentence-pairs" else "meta.json")).read_text())
    assert (meta["corpus"], meta["licence"]) == ("mine", "CC0")
    assert meta["drawn"] == {"seed": 1, "valid": 0.2, "test": 0.1} and meta["input_sha256"]
    one, two = (examples(kind, files / out) for out in ("one", "two"))
    assert one == two
    size = SIZES[kind]
    assert [len(one[split]) for split in SPLITS] == [size - size * 3 // 10, size // 5, size // 10]
    if kind != "question-answering":
        assert len({example for found in one.values() for example in found}) == size, "nothing twice, nothing lost"


def test_name_and_licence_go_to_the_records(files):
    from seqstruct.harness.recording import make_records
    from seqstruct.scoring.measurement import Measurement

    for kind in ("text-classification", "sentence-pairs"):
        assert prepare(kind, *KINDS[kind], *ABOUT, "--out", kind) == 0
        (record,) = make_records(
            [Measurement("accuracy", 50.0, "%")], data=files / kind, cell=files, steps=[], paper="peng_thesis",
            table="1", row="r", seed=1, scale="small", dataset="30 texts", configuration="0", command="c",
        )
        assert record.dataset == "30 texts; mine (licence: CC0)"
    (files / "other").mkdir()
    assert about(files / "other") == ""
    (files / "other" / "meta.json").write_bytes(b"[]")
    with pytest.raises(ValueError, match="meta.json: expected an object"):
        about(files / "other")


def test_splits_that_are_given_stay(files):
    given = ("--train", "t.labels", "t.txt", "--valid", "t.tsv", "--test", "t.tsv")
    assert prepare("text-classification", *given, "--min-count", 2, "--out", "out") == 0
    meta = json.loads((files / "out" / "meta.json").read_text())
    assert (meta["corpus"], meta["licence"], meta["drawn"]) == ("out", "not stated", None)
    assert read(files / "out" / "train.txt") == read(files / "out" / "test.txt")
    assert [line.split()[0] for line in read(files / "out" / "dict.txt")] == ["good", "soup"]
    (files / "t2.txt").write_text("".join(f"tea {i}\n" for i in range(30)))
    for out, given in (("both", ["p.tsv"]), ("apart", ["t.labels", "t.txt", "t2.txt"])):
        assert prepare("text-classification", "--pairs", "--train", *given, "--valid", *given, "--out", out) == 0
    assert json.loads((files / "both" / "meta.json").read_text())["pairs"]
    assert read(files / "both" / "valid.txt")[3] == "0 Ann saw 3." and read(files / "both" / "valid.second.txt")[3] == (
        "Bob w3 good soup")
    assert read(files / "apart" / "valid.second.txt")[3] == "tea 3" and (
        {"good", "tea"} <= {line.split()[0] for line in read(files / "apart" / "dict.txt")})
    assert prepare("sentence-pairs", "--train", "t.labels", "t.txt", "t.txt", "--language", "en", "--out", "pairs") == 0
    assert json.loads(read(files / "pairs" / "train.jsonl")[0])["premise"][1:] == ["good", "soup"]


def test_files_of_one_name_in_two_folders_keep_a_checksum_each(files):
    for split in ("one", "two"):
        (files / split).mkdir()
        for name in ("t.tsv", "q.de", "q.en"):
            (files / split / name).write_text((files / name).read_text())
    given = ("--train", "one/t.tsv", "--valid", "two/t.tsv", "--test", "t.labels", "t.txt")
    assert prepare("text-classification", *given, "--out", "out") == 0
    found = json.loads((files / "out" / "meta.json").read_text())["input_sha256"]
    assert list(found) == ["one/t.tsv", "two/t.tsv", "t.labels", "t.txt"]
    pairs = ("--train", "one/q", "--valid", "two/q", "--test", "q", "--src", "de", "--trg", "en")
    assert prepare("word-pairs", *pairs, "--out", "pairs") == 0
    found = json.loads((files / "pairs" / "corpus.json").read_text())["sha256"]
    assert list(found) == [f"{split}/q.{language}" for split in SPLITS for language in ("de", "en")]


def test_trees_and_graphs_of_one_file_are_drawn_alike(files):
    graphs = ("--graphs", "mine", "train=t.conllu")
    assert prepare("parsing", *KINDS["parsing"], *graphs, "--out", "out") == 0
    trees, mine = (read(files / "out" / kind / "test.jsonl") for kind in ("trees", "mine"))
    assert [json.loads(line)["words"] for line in trees] == [json.loads(line)["words"] for line in mine]
    assert prepare("parsing", "--trees", "train=t.conllu", "valid=t.conllu", "--out", "given") == 0
    assert sorted(path.name for path in (files / "given" / "trees").iterdir()) == ["train.jsonl", "valid.jsonl"]


@pytest.mark.parametrize(("words", "message"), [
    ("text-classification --train space.tsv", "space.tsv, line 1: expected a label, a tab and a text, got 'pos good'"),
    ("text-classification --train blank.tsv", "blank.tsv, line 2: expected a label, a tab and a text"),
    ("text-classification --train t.labels holes", "holes, line 2: expected a text, got an empty line"),
    ("text-classification --train holes t.txt", "holes, line 2: expected a label, got an empty line"),
    ("text-classification --pairs --train t.tsv", "t.tsv, line 1: expected a label, a tab and two texts with a tab"),
    ("text-classification --train p.tsv", "p.tsv, line 1: expected a label, a tab and a text, got"),
    ("text-classification --train one.tsv", "expected two labels or more to train on, got 'pos' alone"),
    ("text-classification --train empty", "empty: the file is empty"),
    ("text-classification --train short t.txt", "as many lines as each other, got short: 7, t.txt: 30"),
    ("text-classification --train latin.tsv", "latin.tsv: not UTF-8 after line"),
    ("text-classification --train t.tsv --test odd.tsv", "test: the label 'odd' is not one of training: neg, pos"),
    ("text-classification --train two.tsv", "--train has 2 examples, too few to draw valid and test"),
    ("text-classification --train absent", "absent: no such file"),
    ("text-classification --train t.tsv --valid-share 1.5", "shares: expected more than 0 each and less than 1"),
    ("sentence-pairs --train bell.tsv --language en", "bell.tsv, line 1: expected a label, a tab and two sentences"),
    ("sentence-pairs --train t.tsv", "t.tsv, line 1: expected a label, a tab and two sentences"),
    ("sentence-pairs --train t.txt t.labels", "expected one file with tabs, or 3 files, got 2"),
    ("language-model --train empty", "empty: the file is empty"),
    ("parallel --train r --valid q --test q --src de --trg en", "r.en: line 2 has no counterpart"),
    ("parallel --train q --src de --trg fr", "q.fr: no such file"),
    ("parsing --trees train=t.tsv", "t.tsv, line 1: expected 10 fields parted by tabs, got 2"),
    ("parsing --trees train=latin.tsv", "latin.tsv: not UTF-8"),
    ("parsing --trees train=t.conllu --valid-share -3", "shares: expected more than 0 each and less than 1 together"),
    ("parsing --trees train=empty", "trees: expected training sentences, got none"),
])
def test_a_mistake_is_one_sentence_and_leaves_nothing(words, message, files, refused):
    before = sorted(files.iterdir())
    assert message in refused("prepare", *words.split(), "--out", "out")
    assert sorted(files.iterdir()) == before


def test_a_language_that_is_none(files, capsys):
    with pytest.raises(SystemExit):
        prepare("sentence-pairs", "--train", "t.tsv", "--language", "xx", "--out", "out")
    assert "--language: expected the two letters of a language, such as de, got 'xx'" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "message"), [
    ("word-pairs", "gap.de: line 2 is empty"),
    ("word-pairs --valid gap --test gap", "gap.de: line 2 is empty"),
    ("word-pairs --valid less --test gap", "gap.de: line 2 is empty"),
    ("parallel", "gap.de: 1 line empty (2); --drop-empty leaves out such pairs"),
    ("parallel --drop-empty", "gap.en: 1 line with escapes of Moses such as &apos; (3); --deescape undoes them"),
])
def test_a_line_that_cannot_be_taken_is_named_as_it_was_given(words, message, files, capsys):
    """Not as it stands in a copy, with what is left to train on, in a folder that is gone."""
    for name in ("gap", "less"):
        (files / f"{name}.de").write_text("eins\n" + "\n" * (name == "gap") + "zwei\ndrei\n")
        (files / f"{name}.en").write_text("one\n" + "-\n" * (name == "gap") + "two &apos;\nthree\n")
    assert prepare(*words.split(), "--train", "gap", "--src", "de", "--trg", "en", "--out", "out") == 1
    assert capsys.readouterr().err == f"seqstruct prepare: {message}\n"
