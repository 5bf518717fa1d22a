"""Single sentences with classes of unknown words: what a word becomes, which file goes where, and what is written."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from seqstruct.data import shards
from seqstruct.data.corpora import sentences
from tests.data.scripts import prepared

SCRIPT = Path(__file__).resolve().parents[3] / "data-prep" / "ptb_sentences.sh"
SECTIONS = [*range(2, 22), 22, 23, 24]


@pytest.mark.parametrize(("word", "name"), [
    ("asbestos", "UNK-LC-s"), ("class", "UNK-LC"), ("virus", "UNK-LC"), ("as", "UNK-LC"), ("running", "UNK-LC-ing"),
    ("being", "UNK-LC-ing"), ("king", "UNK-LC"), ("faded", "UNK-LC-ed"), ("quickest", "UNK-LC-est"),
    ("nation", "UNK-LC-ion"), ("city", "UNK-LC"), ("vanity", "UNK-LC-ity"), ("friendly", "UNK-LC-ly"),
    ("funny", "UNK-LC-y"), ("formal", "UNK-LC-al"), ("runner", "UNK-LC-er"), ("Elsevier", "UNK-INITC-er"),
    ("Funny", "UNK-INITC-y"), ("Dog", "UNK-INITC-KNOWNLC"), ("IBM", "UNK-CAPS"), ("McDonalds", "UNK-CAPS-s"),
    ("iPhone", "UNK-LC"), ("'N", "UNK-CAPS"), ("1.5", "UNK-NUM"), ("1980s", "UNK-LC-NUM-s"),
    ("3-year", "UNK-LC-NUM-DASH"), ("once-loved", "UNK-LC-DASH"), ("747-400s", "UNK-LC-NUM-DASH-s"),
    ("A300er", "UNK-INITC-NUM"), ("b2bing", "UNK-LC-NUM-ing"), ("--", "UNK-DASH"), ("%", "UNK"),
])
def test_class_of_a_word(word, name):
    assert sentences.unknown_class(word, {"dog"}) == name


def test_the_empty_word_has_no_class():
    with pytest.raises(ValueError, match="empty"):
        sentences.unknown_class("", set())


def tree(*words):
    return f"( (S {' '.join(f'(X {word})' for word in words)} (NP (-NONE- *)) (. .)) )\n"


def write_treebank(folder, sections=SECTIONS):
    """One file of two trees a section; its number is a word of each, so that one sees where it went."""
    for section in sections:
        path = folder / f"{section:02}" / f"wsj_{section:02}01.mrg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(tree("The", "-LRB-", f"s{section}x") + tree("the", "odd", f"s{section}y"))
    (folder / "README.mrg").write_text("(S (X not) (X wsj))")


def test_sections_of_the_treebank(tmp_path):
    write_treebank(tmp_path)
    found = sentences.read_sentences("ptb", tmp_path, tmp_path)
    assert found["train"][:2] == [["The", "-LRB-", "s2x", "."], ["the", "odd", "s2y", "."]]
    marks = {split: [sentence[2] for sentence in found[split]] for split in found}
    assert marks["train"] == [f"s{section}{end}" for section in range(2, 22) for end in "xy"]
    assert marks["valid"] == ["s24x", "s24y"] and marks["test"] == ["s23x", "s23y"]
    assert sentences.read_sentences("ptb", tmp_path, tmp_path, 22)["valid"][0][2] == "s22x"


def test_a_missing_section_is_named(tmp_path):
    write_treebank(tmp_path, [s for s in SECTIONS if s not in (7, 24)])
    with pytest.raises(ValueError, match=r"no wsj_SSNN.mrg of the sections 07, 24"):
        sentences.read_sentences("ptb", tmp_path, tmp_path)


def test_the_whole_way_from_trees_to_shards(tmp_path, monkeypatch):
    write_treebank(tmp_path / "wsj")
    words = ["--from", tmp_path / "wsj", "--out", tmp_path / "out"]
    with pytest.raises(ValueError, match="ptb: the train set has 40 sentences, expected 39832: .*see --unchecked"):
        prepared("ptb-sentences", *words)
    monkeypatch.setattr(sentences, "VALIDATE_EVERY", 20)
    summary = prepared("ptb-sentences", *words, "--unchecked")
    assert summary == json.loads((tmp_path / "out" / "corpus.json").read_text())
    assert summary["shards"] == 2 and summary["types"] == {"words": 5, "classes": 1}
    text = (tmp_path / "out" / "text" / "train.txt").read_text().splitlines()
    assert text[:2] == ["The -LRB- UNK-LC-NUM .", "the odd UNK-LC-NUM ."] and len(text) == 40
    assert (tmp_path / "out" / "text" / "test.txt").read_text().splitlines()[0] == text[0]
    entries = (tmp_path / "out" / "bin" / "0" / "dict.txt").read_text().splitlines()
    assert {entry.split()[0] for entry in entries} == {"The", "the", "-LRB-", "odd", ".", "UNK-LC-NUM"}
    assert shards.data_path(tmp_path / "out" / "bin") == f"{tmp_path}/out/bin/0:{tmp_path}/out/bin/1"
    assert not (tmp_path / "out" / "bin" / "1" / "valid.bin").exists()

    from fairseq.data import Dictionary, data_utils

    dictionary = Dictionary.load(str(tmp_path / "out" / "bin" / "1" / "dict.txt"))
    dealt = [data_utils.load_indexed_dataset(str(tmp_path / "out" / "bin" / str(k) / "train")) for k in (0, 1)]
    assert [dictionary.string(dealt[i % 2][i // 2]) for i in range(40)] == text


def test_shards_are_counted_and_found(tmp_path):
    assert [shards.shard_count(n, 20_000) for n in (5, 29_000, 39_832, 100_000)] == [1, 1, 2, 5]
    with pytest.raises(ValueError, match=r"expected folders 0, 1"):
        shards.data_path(tmp_path)
    for split in shards.SPLITS:
        (tmp_path / f"{split}.txt").write_text("a b\n")
    with pytest.raises(ValueError, match="expected 1 to 1 shards, got 2"):
        shards.binarise(tmp_path, tmp_path / "out", 2)


def test_a_class_that_training_lacks_is_the_plainest(tmp_path):
    splits = {"train": [["a", "a"], ["Xy"]], "valid": [["b3", "a"]], "test": [["Cd"]]}
    assert sentences.write_text(splits, tmp_path) == {"words": 1, "classes": 1}
    written = [(tmp_path / f"{split}.txt").read_text() for split in shards.SPLITS]
    assert written == ["a a\nUNK-INITC\n", "UNK a\n", "UNK-INITC\n"]
    with pytest.raises(ValueError, match="no sentence in the valid set"):
        sentences.write_text({**splits, "valid": []}, tmp_path)


def test_paragraphs_are_cut_into_sentences():
    assert list(sentences.cut_sentences("He said , no . Why ? \" Now \"")) == [
        ["He", "said", ",", "no", "."], ["Why", "?"], ['"', "Now", '"']]


def test_stand_ins(tmp_path):
    (tmp_path / "wiki.train.raw").write_text(" = A title = \n\n One a . Two b ! \n")
    for split in ("valid", "test"):
        (tmp_path / f"wiki.{split}.raw").write_text(" Three . \n")
    found = sentences.read_sentences("wikitext2", tmp_path, tmp_path)
    assert found["train"] == [["One", "a", "."], ["Two", "b", "!"]] and found["test"] == [["Three", "."]]
    with zipfile.ZipFile(tmp_path / "brown.zip", "w") as archive:
        for number in range(1, 41):
            archive.writestr(f"brown/ca{number:02}", f"\tThe/at w{number}/nn ./.\n\n")
    found = sentences.read_sentences("brown", tmp_path, tmp_path, checked=False)
    assert [len(found[split]) for split in shards.SPLITS] == [36, 2, 2] and found["train"][0] == ["The", "w1", "."]


def test_the_validation_file_in_place_of_training_text(tmp_path):
    articles = [f" = Title {n} = \n = = A part = = \n It is {n} . \n" for n in range(21)]
    (tmp_path / "wiki.valid.raw").write_text(" \n" + "".join(articles))
    (tmp_path / "wiki.test.raw").write_text(" = Other = \n Three . \n")
    found = sentences.read_sentences("wikitext2-part", tmp_path, tmp_path)
    numbers = {split: [int(s[2]) for s in found[split]] for split in ("train", "valid")}
    assert numbers == {"train": [*range(19)], "valid": [19, 20]} and found["test"] == [["Three", "."]]
    with pytest.raises(ValueError, match=r"wiki\.train\.raw: no such file"):
        sentences.read_sentences("wikitext2", tmp_path, tmp_path)


def test_brown_lies_beside_the_treebank(tmp_path):
    (tmp_path / "treebank.zip").write_bytes(b"")
    with zipfile.ZipFile(tmp_path / "brown.zip", "w") as archive:
        for number in range(1, 41):
            archive.writestr(f"brown/ca{number:02}", f"\tThe/at w{number}/nn ./.\n\n")
    given = argparse.Namespace(corpus="brown", source=str(tmp_path), out=tmp_path / "made", train_sentences=7,
                               validation_section=24, unchecked=True)
    sentences.run(given)
    assert (tmp_path / "made/text/train.txt").read_text("utf-8").count("\n") == 7
    given.source, given.out = None, tmp_path / "other"
    with pytest.raises(ValueError, match="--from FOLDER is needed: the one with the files of brown"):
        sentences.run(given)


def test_the_sample_of_nltk(reference):
    found = sentences.read_sentences("treebank-sample", reference / "data" / "nltk" / "treebank.zip", reference)
    assert {split: len(found[split]) for split in found} == {"train": 3396, "valid": 273, "test": 245}
    assert " ".join(found["train"][0]) == (
        "Pierre Vinken , 61 years old , will join the board as a nonexecutive director Nov. 29 ."
    )
    assert not any(word.startswith("*") and len(word) > 1 for split in found.values() for s in split for word in s)


@pytest.mark.parametrize(("arguments", "message"), [
    ([], "nothing is downloaded, --from PATH is needed"), (["--from", "absent"], "absent: no such file"),
    (["--from", "{wsj}", "--corpus", "bnc"], "invalid choice: 'bnc'"),
    (["--from", "{wsj}", "--validation-section", "23"], "invalid choice: 23"),
    (["--from", "{wsj}"], "no wsj_SSNN.mrg of the sections"),
])
def test_the_script_refuses_and_leaves_nothing(tmp_path, arguments, message):
    write_treebank(tmp_path / "wsj", [2])
    words = [word.format(wsj=tmp_path / "wsj") for word in arguments]
    done = subprocess.run(
        ["bash", SCRIPT, "--out", tmp_path / "out", *words], capture_output=True, text=True,
        env={**os.environ, "PYTHON": sys.executable},
    )
    assert done.returncode != 0 and message in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["wsj"]
