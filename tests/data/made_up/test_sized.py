"""Made-up text of any size: what is drawn, what fairseq reads of it, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from seqstruct.cli import main
from seqstruct.data.corpora.parsed_text import read_bits
from seqstruct.data.documents.dataset import read_documents
from seqstruct.data.made_up.raw import projective_heads
from seqstruct.data.made_up.sized import HELD_OUT, lengths, ranks
from seqstruct.data.parsing.sentence import crossing_arc
from seqstruct.data.text.sdp import read_sdp


def prepare(out, *words):
    return main(["prepare", "made-up", *map(str, words), "--out", str(out)])


def read(folder, split, language=""):
    from fairseq.data import Dictionary, data_utils

    pair = ".en-de." + language if language else ""
    dictionary = Dictionary.load(str(folder / "bin" / (f"dict.{language}.txt" if language else "dict.txt")))
    return dictionary, data_utils.load_indexed_dataset(str(folder / "bin" / (split + pair)), dictionary)


def test_ranks_are_drawn_by_their_inverse():
    found = np.bincount(ranks(200_000, 7, np.random.default_rng(1)), minlength=7) / 200_000
    expected = 1 / np.arange(1, 8)
    np.testing.assert_allclose(found, expected / expected.sum(), atol=0.005)


@pytest.mark.parametrize("means", [(25,), (13, 26)])
def test_lengths_have_their_means_and_limits(means):
    found = lengths(50_000, means, 1_000, np.random.default_rng(1))
    np.testing.assert_allclose(found.mean(0), means, rtol=0.02)
    assert found.shape == (50_000, len(means)) and found.min() >= 1
    assert lengths(500, means, 5, np.random.default_rng(1)).max() == 5


def test_text(tmp_path, capsys):
    assert prepare(tmp_path / "out", "--types", 13, "--length", 5, "--sentences", 30, "--longest", 7) == 0
    dictionary, train = read(tmp_path / "out", "train")
    words = sum(len(sentence) - 1 for sentence in train)
    assert f"30 sentences, {words:,} words, of 13 types" in capsys.readouterr().out
    assert len(dictionary) - dictionary.nspecial == 13 and len(train) == 30
    for sentence in train:
        assert sentence[-1] == dictionary.eos() and 2 <= len(sentence) <= 8
        assert ((sentence[:-1] >= dictionary.nspecial) & (sentence[:-1] < len(dictionary))).all()
    assert [len(read(tmp_path / "out", split)[1]) for split in ("valid", "test")] == [HELD_OUT] * 2


@pytest.mark.parametrize(("types", "shared"), [((7, 5), False), ((7,), True)])
def test_pairs(tmp_path, types, shared):
    options = ["--types", *types, "--languages", "en", "de", "--length", 4, 8, "--sentences", 200]
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert prepare(tmp_path / name, *options, "--seed", seed) == 0
    (english, source), (german, target) = (read(tmp_path / "a", "train", language) for language in ("en", "de"))
    assert (len(english), len(german)) == (7 + english.nspecial, types[-1] + german.nspecial)
    assert (english.symbols == german.symbols) == shared
    assert 1.6 < sum(map(len, target)) / sum(map(len, source)) < 2.0
    drawn = [[s.tolist() for s in read(tmp_path / name, "train", "en")[1]] for name in "abc"]
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--types", 7, 5], "--types takes one number for each language"),
        (["--types", 0], "--types takes one number for each language, from 1"),
        (["--types", 7, "--length", 5, 5], "--length takes one number for each language"),
        (["--types", 7, "--sentences", 0], "sentences is at least 1"),
        (["--types", 7, "--longest", 0], "longest is at least 1"),
        (["--types", 10**8], "at most 10,000,000"),
        (["--types", 7, "--languages", "en", "en"], "--languages are two"),
        (["--types", 7, 5, "--raw", "pairs"], "--types takes one number"),
        (["--types", 7, "--raw", "texts", "--languages", "en", "de"], "--raw has neither --languages nor"),
        (["--types", 7, "--documents", 3], "--documents needs --languages"),
        (["--types", 7, "--vectors", 3], "--vectors needs --raw"),
        (["--types", 7, "--raw", "texts", "--labels", 1], "labels is at least 2"),
    ],
)
def test_refused(tmp_path, capsys, options, told):
    assert prepare(tmp_path / "out", *options) == 1
    assert told in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_documents_end_where_the_text_does(tmp_path):
    assert prepare(tmp_path / "out", "--types", 7, "--languages", "en", "de", "--sentences", 13, "--documents", 5) == 0
    assert (tmp_path / "out" / "text" / "train.docs").read_text().split() == ["5", "5", "3"]
    assert len(read_documents(tmp_path / "out" / "text" / "valid.docs", HELD_OUT).document) == HELD_OUT


@pytest.mark.parametrize("kind", ["texts", "pairs"])
def test_raw_rows_are_read_as_ones_own(tmp_path, kind):
    options = ["--types", 30, "--length", *([5, 9] if kind == "pairs" else [5]), "--sentences", 40, "--labels", 3]
    assert prepare(tmp_path / "raw", "--raw", kind, "--vectors", 4, *options) == 0
    rows = [line.split("\t") for line in (tmp_path / "raw" / "train.tsv").read_text().splitlines()]
    assert len(rows) == 40 and {row[0] for row in rows} == {"label0", "label1", "label2"}
    assert {len(row) for row in rows} == {3 if kind == "pairs" else 2}
    name = {"texts": "text-classification", "pairs": "sentence-pairs"}[kind]
    words = ["--train", tmp_path / "raw" / "train.tsv", "--vectors", tmp_path / "raw" / "vectors.txt"]
    assert main(["prepare", name, *map(str, words), "--out", str(tmp_path / "out")]) == 0


def test_raw_graphs_and_trees_are_read_as_ones_own(tmp_path, capsys):
    options = ["--types", 30, "--length", 9, "--sentences", 40, "--labels", 5]
    assert prepare(tmp_path / "raw", "--raw", "graphs", *options) == 0
    raw = f"train={tmp_path}/raw/train"
    words = ["--graphs", "dm", f"{raw}.sdp", "--trees", f"{raw}.conllu", "--classes", f"{raw}.tsv"]
    assert main(["prepare", "parsing", *words, "--out", str(tmp_path / "out")]) == 0
    told = capsys.readouterr().out
    assert "trees (trees): train 32" in told, "none is left out as crossing"
    assert "classes (classes): train 32" in told
    graphs = list(read_sdp(tmp_path / "raw" / "train.sdp"))
    words, arcs = sum(len(graph.forms) for graph in graphs), sum(len(graph.arcs) for graph in graphs)
    assert 0.5 < arcs / words < 0.8 and {label for g in graphs for *_, label in g.arcs} <= {f"L{i}" for i in range(5)}


def test_raw_constituents_are_read_as_parses(tmp_path):
    assert prepare(tmp_path / "raw", "--raw", "trees", "--types", 5, "--length", 7, "--sentences", 40) == 0
    words = ["--corpus", "parses", "--from", tmp_path / "raw", "--out", tmp_path / "out"]
    assert main(["prepare", "ptb-trees", *map(str, words)]) == 0
    bits = read_bits(tmp_path / "out" / "bin", "train", sum(map(len, read(tmp_path / "out", "train")[1])))
    lengths = [len(sentence) - 1 for sentence in read(tmp_path / "out", "train")[1]]
    found = sum(bin(word).count("1") for word in bits.tolist())
    assert found == sum(max(length - 2, 0) for length in lengths), "a binary tree of n words has n - 2 spans within"


def test_heads_make_a_projective_tree():
    generator = np.random.default_rng(1)
    for length in (0, 1, 2, 13):
        heads = projective_heads(length, generator)
        assert heads.count(0) == min(length, 1) and crossing_arc(heads) is None
        assert all(above != word for word, above in enumerate(heads, 1))
