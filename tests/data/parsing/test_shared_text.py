"""Lemmas that trees take of graphs of the same text, and trees that graphs take to be evaluated."""

from dataclasses import replace
from pathlib import Path

from seqstruct.cli import main
from seqstruct.data.parsing.folder import Annotated, read_meta, read_split
from seqstruct.data.parsing.sentence import TOP, AnnotatedSentence
from seqstruct.data.parsing.shared_text import lend, plain
from tests.data.parsing.corpora import corpus

TREE = AnnotatedSentence(("dogs", "run", "(", "x"), ("_",) * 4, ("NNS", "VBP", "(", "NN"), heads=(2, 0, 2, 2))
GRAPH = AnnotatedSentence(("dogs", "run", "-LRB-", "x"), ("dog", "run", "_", "x"), ("NNS", "VBP", "(", "XX"),
                          arcs=((0, 2, TOP), (2, 1, "ARG1")))


def test_trees_take_the_lemma_that_a_word_has_most_often_with_its_tag():
    other = replace(GRAPH, lemmas=("hound", "run", "_", "x"))
    unseen = replace(GRAPH, lemmas=("whelp",) * 4)
    found = lend({"trees": Annotated("trees", {"train": [TREE], "valid": [TREE]}),
                  "dm": Annotated("graphs", {"train": [GRAPH, GRAPH, other], "valid": [unseen]})})
    for split in ("train", "valid"):
        assert [s.lemmas for s in found["trees"].splits[split]] == [("dog", "run", "_", "_")]
    own = {"trees": corpus("trees"), "dm": corpus("graphs", 2)}
    assert lend(own) == own, "what is there stays"


def test_graphs_to_validate_take_the_tree_of_the_same_words():
    strange = replace(GRAPH, words=("cats", *GRAPH.words[1:]))
    trees = {"train": [TREE], "valid": [TREE], "test": [replace(TREE, heads=(0, 1, 1, 1))]}
    graphs = {"train": [GRAPH], "valid": [GRAPH, strange], "test": [GRAPH], "ood": [GRAPH]}
    found = lend({"trees": Annotated("trees", trees), "dm": Annotated("graphs", graphs)})["dm"].splits
    heads = {split: [sentence.heads for sentence in sentences] for split, sentences in found.items()}
    assert heads == {"train": [None], "valid": [(2, 0, 2, 2), None], "test": [(0, 1, 1, 1)], "ood": [None]}
    assert plain(("1\\/2", "-LRB-", "\u201c", "a")) == ("1/2", "(", "``", "a")


def test_the_folder_of_table_2_1_has_both(tmp_path: Path):
    """Made-up corpora in the form of the licensed ones: trees without lemmas, graphs without trees."""
    raw = tmp_path / "raw"
    assert main(["prepare", "sdp2015", "--made-up", "--out", str(raw)]) == 0
    for split in ("train", "dev"):
        path = raw / f"ptb.{split}.conllu"
        rows = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
        path.write_text("".join("\t".join([*row[:2], "_", *row[3:]] if row[1:] else row) + "\n" for row in rows))
    words = ["--tags", "xpos", "--graphs", "dm", f"train={raw}/dm.train.sdp", f"valid={raw}/dm.dev.sdp", "--trees",
             f"train={raw}/ptb.train.conllu", f"valid={raw}/ptb.dev.conllu"]
    assert main(["prepare", "parsing", *words, "--out", str(tmp_path / "data")]) == 0
    meta = read_meta(tmp_path / "data")
    trees, valid = (read_split(tmp_path / "data", name, split, meta)
                    for name, split in (("trees", "train"), ("dm", "valid")))
    assert {sentence.lemmas == sentence.words for sentence in trees} == {True}
    assert any(sentence.heads for sentence in valid)
