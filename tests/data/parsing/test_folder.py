"""Folders of annotated corpora, and the batches read from them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary

from seqstruct.cli import main
from seqstruct.data.parsing.dataset import CorporaUnion, Dictionaries
from seqstruct.data.parsing.folder import Annotated, ParsingOptions, read_meta, read_split, write_folder
from seqstruct.data.parsing.sentence import TOP, AnnotatedSentence
from seqstruct.data.text.binarise import RESERVED
from tests.data.parsing.corpora import corpus

CROSSING = AnnotatedSentence(("a", "b", "c", "d"), heads=(3, 4, 0, 3))


def written(tmp_path, corpora, **options):
    meta = write_folder(corpora, tmp_path / "data", ParsingOptions(**options))
    assert read_meta(tmp_path / "data") == meta
    return meta


@pytest.mark.parametrize("content", [b"", b"[]", b"caf\xe9", b'{"version": 1}'])
def test_a_damaged_description_is_named(tmp_path, content):
    (tmp_path / "corpora.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"corpora.json(:| is) (truncated or altered|expected an object)"):
        read_meta(tmp_path)


def test_a_dictionary_that_is_gone_or_cut_is_named(tmp_path):
    written(tmp_path, {"trees": corpus("trees")})
    path = tmp_path / "data" / "dict.lemmas.txt"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(ValueError, match=r"dict.lemmas.txt: SHA-256 .* truncated or altered"):
        read_meta(tmp_path / "data")
    path.unlink()
    with pytest.raises(ValueError, match="dict.lemmas.txt: no such file"):
        read_meta(tmp_path / "data")


def union(folder, meta, split="train", **options):
    dictionaries = Dictionaries(*(Dictionary.load(str(folder / f"dict.{f}.txt")) for f in ("words", "lemmas", "tags")))
    corpora = {name: read_split(folder, name, split, meta) for name in meta["corpora"]}
    labels = {name: entry["labels"] for name, entry in meta["corpora"].items() if "labels" in entry}
    return CorporaUnion(corpora, dictionaries, labels, **options)


def test_sentences_come_back(tmp_path):
    corpora = {"trees": corpus("trees"), "dm": corpus("graphs", 2), "sst": corpus("classes", 3)}
    meta = written(tmp_path, corpora)
    for name, given in corpora.items():
        for split, sentences in given.splits.items():
            assert read_split(tmp_path / "data", name, split, meta) == sentences
    described = meta["corpora"]["dm"]
    assert described["labels"] == [TOP, "ARG1", "ARG2", "BV"]
    assert described["deterministic"] == [TOP, "ARG1", "ARG2", "BV"]
    assert meta["corpora"]["sst"]["labels"] == ["no", "yes"]
    with pytest.raises(ValueError, match="dm has no split 'dev'; splits: train, valid, test"):
        read_split(tmp_path / "data", "dm", "dev", meta)
    (tmp_path / "data" / "dm" / "test.jsonl").write_text("")
    with pytest.raises(ValueError, match="truncated or altered"):
        read_split(tmp_path / "data", "dm", "test", meta)


def test_a_graph_without_arcs_is_one(tmp_path):
    given = [AnnotatedSentence(("Yes", "."), arcs=()), AnnotatedSentence(("a", "b"), arcs=((0, 2, TOP), (2, 1, "X")))]
    meta = written(tmp_path, {"dm": Annotated("graphs", {"train": given})})
    assert read_split(tmp_path / "data", "dm", "train", meta) == given
    data = union(tmp_path / "data", meta)
    arcs = data.collater([data[0], data[1]])["net_input"]["batches"]["dm"]["arcs"]
    assert arcs.tolist() == [[[-1] * 3] * 3, [[-1, -1, 0], [-1] * 3, [-1, 1, -1]]]


def test_words_that_are_symbols_of_fairseq_have_no_second_entry(tmp_path):
    given = AnnotatedSentence(("<unk>", "a"), ("<s>", "a"), ("<pad>", "D"), heads=(2, 0))
    meta = written(tmp_path, {"trees": Annotated("trees", {"train": [given]})})
    assert union(tmp_path / "data", meta).dictionaries.words.symbols[4:] == ["a"]


@pytest.mark.parametrize("how, heads", [("drop", []), ("lift", [(3, 3, 0, 3)]), ("keep", [(3, 4, 0, 3)])])
def test_trees_with_crossing_arcs(tmp_path, how, heads):
    plain = AnnotatedSentence(("a",), heads=(0,))
    given = Annotated("trees", {"train": [CROSSING, plain, AnnotatedSentence((), heads=())], "valid": [CROSSING]})
    meta = written(tmp_path, {"trees": given}, non_projective=how)
    found = [s.heads for s in read_split(tmp_path / "data", "trees", "train", meta)]
    assert found == [*heads, (0,)]
    assert meta["corpora"]["trees"]["left_out"] == {f"not projective: {how}": 1, "empty": 1}
    assert read_split(tmp_path / "data", "trees", "valid", meta) == [CROSSING]


def test_long_sentences_are_left_out_of_training_alone(tmp_path):
    meta = written(tmp_path, {"trees": corpus("trees")}, max_length=5)
    counts = {split: entry["sentences"] for split, entry in meta["corpora"]["trees"]["files"].items()}
    assert counts["train"] == 40 - meta["corpora"]["trees"]["left_out"]["too long"] < 40
    assert counts["valid"] == 7


@pytest.mark.parametrize(
    "corpora, options, message",
    [
        ({}, {}, "expected one corpus or more, got none"),
        ({"x": Annotated("trees", {"valid": [CROSSING]})}, {}, "x: expected training sentences"),
        ({"x": Annotated("graphs", {"train": [CROSSING]})}, {}, "x, train: sentence 1 has none of the graphs"),
        ({"x": Annotated("trees", {"train": [CROSSING], "dev": []})}, {}, "expected a split of train, valid, test"),
        ({"x": Annotated("trees", {"train": [CROSSING]})}, {}, "no training sentence is left of 1"),
        ({"x": Annotated("trees", {"train": [CROSSING]})}, {"max_length": 0}, "max_length: expected 1 or more"),
    ],
)
def test_refused_and_nothing_is_left(tmp_path, corpora, options, message):
    with pytest.raises(ValueError, match=message):
        write_folder(corpora, tmp_path / "data", ParsingOptions(**options))
    assert not (tmp_path / "data").exists()


def test_batches_are_sorted_by_corpus(tmp_path):
    meta = written(tmp_path, {"trees": corpus("trees"), "dm": corpus("graphs", 2), "sst": corpus("classes", 3)})
    data = union(tmp_path / "data", meta)
    sample = data.collater([data[i] for i in (0, 41, 1, 90)])
    trees, graphs, classes = (sample["net_input"]["batches"][name] for name in ("trees", "dm", "sst"))
    assert sample["id"].tolist() == [0, 1, 41, 90] and sample["ntokens"] == sum(data.sizes[[0, 1, 41, 90]] - 1)
    for b, index in enumerate((0, 1)):
        sentence = data.entries[index][1]
        n = len(sentence.words)
        assert trees["heads"][b].tolist() == [*sentence.heads, *[-1] * (trees["heads"].size(1) - n)]
        assert trees["padding_mask"][b].tolist() == [False] * (n + 1) + [True] * (trees["heads"].size(1) - n)
        words = [data.dictionaries.words[i] for i in trees["tokens"][b, 0, 1 : n + 1].tolist()]
        assert tuple(words) == sentence.words
    labels, found = meta["corpora"]["dm"]["labels"], graphs["arcs"][0]
    arcs = [(h, m, labels[found[h, m]]) for h, m in (found >= 0).nonzero().tolist()]
    assert tuple(arcs) == data.entries[41][1].arcs
    assert "heads" in graphs and "arcs" not in trees
    assert meta["corpora"]["sst"]["labels"][classes["classes"][0]] == data.entries[90][1].label


def test_word_dropout_is_drawn_from_seed_epoch_and_sentence(tmp_path):
    meta = written(tmp_path, {"trees": corpus("trees")})
    data = union(tmp_path / "data", meta, word_dropout=30.0)
    before = [data[i].dropped for i in range(40)]
    assert all(torch.equal(data[i].dropped, before[i]) for i in reversed(range(40)))
    assert 0.3 < np.mean([dropped[1:].double().mean().item() for dropped in before]) < 0.9
    assert not any(dropped[0] for dropped in before)
    data.set_epoch(2)
    assert any(not torch.equal(data[i].dropped, before[i]) for i in range(40))


def test_a_share_of_the_others_is_drawn(tmp_path):
    meta = written(tmp_path, {"trees": corpus("trees"), "sst": corpus("classes", 3)})
    data = union(tmp_path / "data", meta, share_of_others=0.2)
    drawn = data.ordered_indices()
    assert (drawn >= 40).sum() == 40 and 1 <= (drawn < 40).sum() <= 20
    data.set_epoch(2)
    assert set(data.ordered_indices()) != set(drawn)


def test_words_that_are_written_as_special_symbols_are_unknown(tmp_path):
    """The first of them stands for the root, the second for padding."""
    given = [AnnotatedSentence(("a", *RESERVED), ("a", *RESERVED), ("X", *RESERVED), label="yes")]
    meta = written(tmp_path, {"sst": Annotated("classes", {"train": given})})
    data = union(tmp_path / "data", meta)
    assert data[0].tokens.tolist() == [[0, 4, 3, 3, 3, 3]] * 3


def test_an_unknown_class_and_an_arc_beyond_the_sentence_are_refused(tmp_path):
    meta = written(tmp_path, {"sst": corpus("classes"), "dm": corpus("graphs")})
    data = union(tmp_path / "data", meta)
    strange = replace(data.entries[0][1], label="perhaps")
    with pytest.raises(ValueError, match="sst: expected a class of no, yes, got 'perhaps' for: the"):
        CorporaUnion({"sst": [strange]}, data.dictionaries, {"sst": ["no", "yes"]})
    beyond = AnnotatedSentence(("a",), arcs=((2, 1, "ARG1"),))
    with pytest.raises(ValueError, match="dm: arc 2 -> 1 in a sentence of 1 words"):
        CorporaUnion({"dm": [beyond]}, data.dictionaries, {"dm": [TOP]})


def test_the_command(tmp_path, capsys, refused, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.conllu").write_text(
        "1\tdogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t2:nsubj:x\t_\n2\tbark\tbark\tVERB\tVBP\t_\t0\troot\t0:root\t_\n\n"
    )
    (tmp_path / "b.sdp").write_text(
        "#SDP 2015\n#1\n1\tdogs\tdog\tNNS\t_\t_\t-\t-\t_\tARG1\n2\tbark\tbark\tV\t_\t_\t+\t+\t_\t_\n"
    )
    (tmp_path / "d.conllu").write_text("1\tdogs\tdog\tNOUN\t_\t_\t0\t_\t_\t_\n")
    (tmp_path / "c.txt").write_text("1 good cliché\n0 bad film\n", "utf-8")
    options = ["--trees", "train=a.conllu", "valid=a.conllu", "--graphs", "ud", "train=a.conllu", "valid=a.conllu",
               "--graphs", "dm", "train=b.sdp", "valid=b.sdp", "--classes", "train=c.txt", "valid=c.txt",
               "--coarse-labels", "--out", "data"]
    assert main(["prepare", "parsing", *options]) == 0
    meta = read_meta("data")
    assert meta["corpora"]["ud"]["labels"] == [TOP, "nsubj"] and meta["corpora"]["dm"]["labels"] == [TOP, "ARG1"]
    assert "data: classes (classes): train 2" in capsys.readouterr().out
    assert [x.words for x in read_split("data", "classes", "train", meta)] == [("good", "cliché"), ("bad", "film")]
    (tmp_path / "latin.txt").write_bytes("1 good\n0 cliché\n".encode("latin-1"))
    (tmp_path / "blank.txt").write_text("1 good\n\n")
    for wrong, message in [
        (["--trees", "a.conllu", "--out", "x"], "--trees: expected SPLIT=FILE, got 'a.conllu'"),
        (["--graphs", "train=b.sdp", "--out", "x"], "--graphs: expected a name of its own before the files"),
        (["--trees", "train=c.txt", "--out", "x"], "c.txt, line 1: expected 10 fields parted by tabs, got 1"),
        (["--graphs", "dm", "train=no.sdp", "--out", "x"], "no.sdp: No such file"),
        (["--graphs", "u", "train=d.conllu", "valid=d.conllu", "--out", "x"], "u, train: sentence 1 has none of"),
        (["--classes", "train=latin.txt", "--out", "x"], "latin.txt: not UTF-8 after line"),
        (["--classes", "train=blank.txt", "--out", "x"], "blank.txt, line 2: expected a class and words, got ''"),
    ]:
        assert message in refused("prepare", "parsing", *wrong)
        assert not (tmp_path / "x").exists()
