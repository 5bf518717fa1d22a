"""Folders of labelled sentences: the thesis's splits, vectors, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from fairseq.data import Dictionary

from seqstruct.cli import main
from seqstruct.data.files import sha256
from seqstruct.data.text_classification.folder import read_meta, read_raw, read_split
from tests.data.scripts import prepared


def write_sst(folder):
    folder.mkdir(exist_ok=True)
    texts = {"train": ["1 good fine film", "0 bad film", "1 good"], "dev": ["0 bad"], "test": ["1 new"]}
    for split, lines in texts.items():
        (folder / f"stsa.binary.{split}").write_text("".join(line + "\n" for line in lines))
    return folder


def test_folder_and_back(tmp_path):
    words = ["--from", write_sst(tmp_path / "raw"), "--unchecked", "--min-count", 2, "--out", tmp_path / "out"]
    meta = prepared("sst", *words)
    assert read_meta(tmp_path / "out") == meta
    assert meta["sentences"] == {"train": 3, "valid": 1, "test": 1} and meta["labels"] == ["0", "1"]
    assert read_split(tmp_path / "out", "train", meta) == (
        [["good", "fine", "film"], ["bad", "film"], ["good"]], [1, 0, 1],
    )
    dictionary = Dictionary.load(str(tmp_path / "out/dict.txt"))
    assert set(dictionary.symbols[4:]) == {"good", "film"}


def test_vectors_choose_the_words(tmp_path):
    (tmp_path / "vectors").write_text("good 3 4\nbad 0 -2\nnew 1 0\n")
    words = ["--from", write_sst(tmp_path / "raw"), "--unchecked", "--vectors", tmp_path / "vectors"]
    prepared("sst", *words, "--out", tmp_path / "out")
    dictionary = Dictionary.load(str(tmp_path / "out/dict.txt"))
    rows = np.load(tmp_path / "out/vectors.npy")
    assert len(rows) == len(dictionary) == 7
    assert rows[dictionary.index("good")] == pytest.approx([0.6, 0.8])
    assert rows[dictionary.index("new")] == pytest.approx([1.0, 0.0]), "a word of the test set alone has its vector too"
    assert not rows[dictionary.pad()].any()
    assert np.linalg.norm(rows[dictionary.unk()]) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="no word of the corpus has a vector"):
        (tmp_path / "vectors").write_text("x 1 1\n")
        prepared("sst", *words, "--out", tmp_path / "other")


def test_words_that_are_symbols_of_fairseq_have_no_second_entry(tmp_path):
    folder = write_sst(tmp_path / "raw")
    (folder / "stsa.binary.train").write_text("1 <s> good <unk> </s>\n0 bad <pad> <unk>\n")
    (tmp_path / "vectors").write_text("good 3 4\n<unk> 1 1\n")
    for number, more in enumerate(((), ("--vectors", tmp_path / "vectors"))):
        prepared("sst", "--from", folder, "--unchecked", *more, "--out", tmp_path / f"{number}")
        dictionary = Dictionary.load(str(tmp_path / f"{number}" / "dict.txt"))
        assert dictionary.symbols[4:] == (["good"] if more else ["good", "bad"])
    assert len(np.load(tmp_path / "1" / "vectors.npy")) == len(dictionary)


def test_random_splits(tmp_path):
    lines = [f"{i % 2} word{i}\n" for i in range(60)]
    (tmp_path / "subj.all").write_bytes("".join(lines).encode() + b"1 caf\xe9 \x85\n")
    found = [read_raw("subj", tmp_path, seed=seed, checked=False) for seed in (1, 1, 2)]
    assert {split: len(of) for split, of in found[0].items()} == {"train": 49, "valid": 6, "test": 6}
    assert found[0] == found[1] != found[2]
    words = [" ".join(s.words) for split in found[0].values() for s in split]
    assert len(set(words)) == 61 and "café" in words


def test_amazon(tmp_path):
    for name, count in (("elec-25k-train", 5010), ("elec-test", 3)):
        (tmp_path / f"{name}.tok.txt").write_text("".join(f"text {i}\n" for i in range(count)))
        (tmp_path / f"{name}.cat").write_text("".join(f"{1 + i % 2}\n" for i in range(count)))
    splits = read_raw("amazon", tmp_path)
    assert {split: len(of) for split, of in splits.items()} == {"train": 10, "valid": 5000, "test": 3}
    assert all(int(s.words[1]) % 2 == int(s.label) - 1 for of in splits.values() for s in of)
    for name, last in (("tok.txt", ""), ("cat", "1")):  # a text without words is left out, at the end too
        path = tmp_path / f"elec-test.{name}"
        path.write_text(f"{path.read_text()}{last}\n")
    assert read_raw("amazon", tmp_path) == splits
    (tmp_path / "elec-test.cat").write_text("1\n2\n")
    with pytest.raises(ValueError, match="4 lines, .* 2"):
        read_raw("amazon", tmp_path)
    (tmp_path / "elec-test.cat").write_text("1\n\n2\n1\n")
    with pytest.raises(ValueError, match="elec-test.cat, line 2: expected a label"):
        read_raw("amazon", tmp_path)


def test_wrong_input(tmp_path, capsys):
    raw = write_sst(tmp_path / "raw")
    given = ["--from", raw, "--out", tmp_path / "out"]
    with pytest.raises(ValueError, match="stsa.binary.train: SHA-256"):
        prepared("sst", *given)
    with pytest.raises(ValueError, match="min_count: expected 1 or more, got 0"):
        prepared("sst", *given, "--unchecked", "--min-count", "0")
    (raw / "stsa.binary.dev").write_text("0 bad\n\n")
    with pytest.raises(ValueError, match="stsa.binary.dev, line 2: expected a label and a sentence, got ''"):
        prepared("sst", *given, "--unchecked")
    (raw / "stsa.binary.dev").write_text("0\n")
    with pytest.raises(ValueError, match="no sentences in the valid set"):
        prepared("sst", *given, "--unchecked")
    (raw / "stsa.binary.dev").unlink()
    words = ["prepare", "sst", "--from", str(raw), "--out", str(tmp_path / "out")]
    assert main([*words, "--unchecked"]) == 1
    assert "stsa.binary.dev: no such file" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_altered_folders(tmp_path):
    prepared("sst", "--from", write_sst(tmp_path / "raw"), "--unchecked", "--out", tmp_path / "out")
    meta = read_meta(tmp_path / "out")
    with pytest.raises(ValueError, match="no split 'dev'"):
        read_split(tmp_path / "out", "dev", meta)
    path = tmp_path / "out/valid.txt"
    wrong = {"0 \n": "line 1: expected a label and a sentence", "2 bad\n": "line 1: label '2', expected 0 .. 1"}
    for content, message in wrong.items():
        path.write_text(content)
        with pytest.raises(ValueError, match="SHA-256"):
            read_split(tmp_path / "out", "valid", meta)
        with pytest.raises(ValueError, match=message):
            read_split(tmp_path / "out", "valid", {**meta, "sha256": {**meta["sha256"], "valid.txt": sha256(path)}})
    (tmp_path / "out/meta.json").write_text(json.dumps({"corpus": "sst"}))
    with pytest.raises(ValueError, match="truncated or altered"):
        read_meta(tmp_path / "out")
    (tmp_path / "out/meta.json").unlink()
    with pytest.raises(ValueError, match="seqstruct prepare text-classification"):
        read_meta(tmp_path / "out")


def test_real_corpora(reference):
    source = reference / "data/text-classification"
    sizes = {"sst": (6920, 872, 1821), "subj": (8000, 1000, 1000), "cr": (3017, 377, 377)}
    for corpus, expected in sizes.items():
        splits = read_raw(corpus, source)
        assert tuple(len(splits[split]) for split in ("train", "valid", "test")) == expected
        assert {s.label for of in splits.values() for s in of} == {"0", "1"}
