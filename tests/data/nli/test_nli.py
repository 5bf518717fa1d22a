"""Pairs of sentences: SNLI and RTE read, prepared and batched; what is refused."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from seqstruct.data.nli.dataset import PairsDataset
from seqstruct.data.nli.folder import CORPORA, read_corpus, read_meta, read_split, write_pairs
from seqstruct.data.nli.parser_pretraining import read_treebank
from seqstruct.data.nli.read import SentencePair, read_rte, read_snli, words_of
from tests.data.scripts import pack_damaged_zip

ROOT = Path(__file__).resolve().parents[3]
LABELS = ("entailment", "neutral", "contradiction")


def entry(label="neutral", first="( A ( dog runs ) )", second="( It sleeps )"):
    return json.dumps({
        "gold_label": label, "sentence1_binary_parse": first, "sentence2_binary_parse": second, "captionID": "x",
    })


@pytest.fixture
def snli(tmp_path):
    folder = tmp_path / "snli"
    folder.mkdir()
    lines = [entry("entailment"), entry("-"), entry("contradiction", second="( A ( cat naps ) )")]
    for split in ("train", "dev", "test"):
        (folder / f"snli_1.0_{split}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_the_label_of_no_agreement_is_skipped_and_counted(snli):
    pairs, skipped = read_snli(snli / "snli_1.0_train.jsonl")
    assert skipped == 1
    assert [pair.label for pair in pairs] == ["entailment", "contradiction"]
    assert pairs[0] == SentencePair(("A", "dog", "runs"), ("It", "sleeps"), "entailment")


@pytest.mark.parametrize(("line", "message"), [
    (entry("perhaps"), "line 2: expected a label of entailment, neutral, contradiction or -, got 'perhaps'"),
    ("{", "line 2: not a pair of SNLI"),
    ("[1]", "line 2: not a pair of SNLI"),
    (json.dumps({"gold_label": "neutral"}), "line 2: not a pair of SNLI: KeyError"),
    (entry(first="( )"), "line 2: a sentence without words"),
])
def test_snli_is_refused_with_file_and_line(tmp_path, line, message):
    path = tmp_path / "x.jsonl"
    path.write_text(f"{entry()}\n{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="x.jsonl") as caught:
        read_snli(path)
    assert message in str(caught.value)


def test_sample_of_snli(reference):
    pairs, skipped = read_snli(reference / "data" / "samples" / "snli.jsonl")
    assert skipped == 0 and [pair.label for pair in pairs[:3]] == ["neutral", "contradiction", "entailment"]
    assert pairs[2].hypothesis == ("A", "person", "is", "outdoors", ",", "on", "a", "horse", ".")


def write_rte(path, pairs):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("rte/rte1_dev.xml", f"<entailment-corpus>{pairs}</entailment-corpus>")


def test_rte(tmp_path):
    path = tmp_path / "rte.zip"
    write_rte(path, '<pair id="3" value="TRUE"><t>Up 3.5% to $1,200, he didn\'t say.</t><h>Up.</h></pair>'
                    '<pair id="4" entailment="NO"><t>A</t><h>B</h></pair>')
    pairs = read_rte(path, "rte/rte1_dev.xml").pairs
    assert pairs[0].premise == ("Up", "3.5", "%", "to", "$", "1,200", ",", "he", "didn't", "say", ".")
    assert [pair.label for pair in pairs] == ["entailment", "no entailment"]
    assert words_of("") == ()
    with pytest.raises(ValueError, match="rte9.xml: cannot be read"):
        read_rte(path, "rte9.xml")
    write_rte(path, '<pair id="8" value="MAYBE"><t>A</t><h>B</h></pair>')
    with pytest.raises(ValueError, match="pair 8: expected an answer of TRUE, FALSE, YES, NO, got 'MAYBE'"):
        read_rte(path, "rte/rte1_dev.xml")
    write_rte(path, '<pair id="8" value="TRUE"><t>A</t></pair>')
    with pytest.raises(ValueError, match="pair 8: a sentence is missing"):
        read_rte(path, "rte/rte1_dev.xml")
    pack_damaged_zip(path, "rte/rte1_dev.xml")
    with pytest.raises(ValueError, match="rte1_dev.xml: cannot be read"):
        read_rte(path, "rte/rte1_dev.xml")


def made(corpus, source, out, **options):
    return write_pairs(read_corpus(corpus, source), CORPORA[corpus], out, {"corpus": corpus}, **options)


def test_all_of_rte(reference, tmp_path):
    meta = made("rte", reference / "data" / "nltk", tmp_path / "rte")
    assert meta["pairs"] == {"train": 1591, "valid": 176, "test": 2400}


def test_the_folder_has_vectors_for_all_words(snli, tmp_path):
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("dog 3 4\nA 1 0\n", encoding="utf-8")
    meta = made("snli", snli, tmp_path / "out", vectors=vectors)
    assert meta["pairs"] == {"train": 2, "valid": 2, "test": 2} and meta["skipped"]["train"] == 1
    assert (meta["words"], meta["words_with_vector"]) == (7, 2)
    words = (tmp_path / "out" / "vocabulary.txt").read_text().splitlines()
    rows = np.load(tmp_path / "out" / "vectors.npy")
    assert rows.shape == (7, 2)
    np.testing.assert_allclose(rows[words.index("dog")], [0.6, 0.8], rtol=1e-6)
    ids = {word: number for number, word in enumerate(words, 1)}
    pairs = read_split(tmp_path / "out", "train", read_meta(tmp_path / "out")["labels"], ids)
    assert pairs == read_snli(snli / "snli_1.0_train.jsonl").pairs


def conllu(sentences):
    lines = ("\n".join(f"{i}\t{w}\t_\t_\t_\t_\t{h}\t_\t_\t_" for i, (w, h) in enumerate(s, 1)) for s in sentences)
    return "".join(f"{text}\n\n" for text in lines)


def test_heads_come_with_the_pairs(snli, tmp_path):
    heads = tmp_path / "heads"
    heads.mkdir()
    first = [("A", 2), ("dog", 3), ("runs", 0)]
    seconds = [[("It", 2), ("sleeps", 0)], [("A", 2), ("cat", 3), ("naps", 0)]]
    for split in ("train", "valid", "test"):
        (heads / f"{split}.premise.conllu").write_text(conllu([first, first]), encoding="utf-8")
        (heads / f"{split}.hypothesis.conllu").write_text(conllu(seconds), encoding="utf-8")
    made("snli", snli, tmp_path / "out", heads=heads)
    words = (tmp_path / "out" / "vocabulary.txt").read_text().splitlines()
    ids = {word: number for number, word in enumerate(words, 1)}
    pairs = read_split(tmp_path / "out", "valid", LABELS, ids)
    assert pairs[1].heads == ((2, 3, 0), (2, 3, 0))
    batch = PairsDataset(pairs, ids, LABELS, shuffle=False).collater([0, 1])
    assert batch["net_input"]["heads"][1].tolist() == [[2, 0, 0], [2, 3, 0]]
    assert batch["net_input"]["hypothesis"][0].tolist() == [ids["It"], ids["sleeps"], 0]
    assert batch["target"].tolist() == [0, 2]
    (heads / "test.premise.conllu").write_text(conllu([first]), encoding="utf-8")
    with pytest.raises(ValueError, match="test.premise.conllu: expected 2 sentences, found 1"):
        made("snli", snli, tmp_path / "new", heads=heads)
    (heads / "train.premise.conllu").write_text(conllu([first, [("A", 0)]]), encoding="utf-8")
    with pytest.raises(ValueError, match="train.premise.conllu: line 5: expected 'A dog runs'"):
        made("snli", snli, tmp_path / "new", heads=heads)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(("line", "message"), [
    ({"premise": ["A"], "hypothesis": ["B"], "label": "-"}, "line 1: expected a label of entailment"),
    ({"premise": ["A"], "hypothesis": ["C"], "label": "neutral"}, "line 1: the word 'C' is not in the vocabulary"),
    ({"premise": ["A"], "hypothesis": [], "label": "neutral"}, "line 1: a sentence without words"),
    ({"premise": ["A"], "label": "neutral"}, "line 1: not a pair of sentences"),
    ({"premise": ["A"], "hypothesis": ["B"], "label": "neutral", "heads": [[0, 1], [0]]}, "2 heads for 1 words"),
])
def test_a_folder_that_was_altered_is_refused(tmp_path, line, message):
    (tmp_path / "train.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match="train.jsonl") as caught:
        read_split(tmp_path, "train", LABELS, {"A": 1, "B": 2})
    assert message in str(caught.value)


def test_projective_trees_of_a_treebank(tmp_path):
    path = tmp_path / "trees.conllu"
    path.write_text(conllu([[("A", 2), ("zebra", 0)], [("a", 3), ("b", 4), ("c", 0), ("d", 0)]]), encoding="utf-8")
    (only,) = read_treebank(str(path), {"a": 1, "b": 2, "c": 3, "d": 4}, lowercase=True, longest=9)
    assert only.tokens.tolist() == [1, 5] and only.heads.tolist() == [2, 0]
    with pytest.raises(ValueError, match="expected projective trees of at most 1 words"):
        read_treebank(str(path), {}, lowercase=True, longest=1)


@pytest.mark.parametrize(("arguments", "message"), [
    (["--from", "{snli}"], "missing, as files or in archives: glove.840B.300d.txt; "),
    (["--from", "{snli}", "--no-vectors"], "snli: the train set has 3 pairs, expected 550152: truncated or altered"),
    (["--from", "{snli}", "--corpus", "rte"], "missing, as files or in archives: rte.zip"),
    (["--corpus", "rte"], "nothing is downloaded, --from DIR is needed: name a folder with rte.zip"),
    (["--from", "{snli}", "--vectors", "no"], "no is not a file"),
    (["--no-vectors", "--vectors", "v"], "argument --vectors: not allowed with argument --no-vectors"),
])
def test_the_command_refuses_in_one_sentence(snli, tmp_path, refused, arguments, message):
    words = (word.format(snli=snli) for word in arguments)
    assert message in refused("prepare", "snli", "--out", tmp_path / "out", *words)
    assert not (tmp_path / "out").exists()
