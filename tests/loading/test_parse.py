"""Trees, graphs and classes of sentences, against the model on the prepared data."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
import torch

import seqstruct
from seqstruct.data.parsing.folder import read_meta, read_split
from seqstruct.data.parsing.sentence import AnnotatedSentence
from seqstruct.scoring.parsers import load_dependency_parser

pytestmark = pytest.mark.training  # all use a trained model


@pytest.fixture(scope="module")
def loaded(parser):
    return seqstruct.load(parser.checkpoint)


def sentences(parser, name):
    return read_split(parser.data, name, "test", read_meta(parser.data))


def test_heads_are_those_of_the_parser_of_trees(parser, loaded):
    annotated = sentences(parser, "trees")
    found = loaded.parse(annotated)
    assert [list(parse.heads) for parse in found] == load_dependency_parser(parser.checkpoint)(annotated)
    right = [head == gold for parse, sentence in zip(found, annotated, strict=True)
             for head, gold in zip(parse.heads, sentence.heads, strict=True)]
    assert sum(right) > 0.8 * len(right)
    assert loaded.parse(annotated, batch_size=1) == found and loaded.parse(annotated[0]) == found[0]


def test_graphs_are_those_that_validation_counts(parser, loaded):
    annotated = sentences(parser, "dm")
    found = loaded.parse(annotated)
    loaded.task.load_dataset("test_dm")
    dataset = loaded.task.datasets["test_dm"]
    batch = dataset.collater([dataset[i] for i in range(len(dataset))])["net_input"]["batches"]["dm"]
    with torch.no_grad():
        best = loaded.model.best("dm", loaded.model({"dm": batch})["dm"], batch["padding_mask"])
    labels = loaded.task.labels["dm"]
    for row, parse in zip(best, found, strict=True):
        arcs = [(head, word, labels[int(row[head, word])]) for head, word in row.ge(0).nonzero().tolist()]
        assert parse.graphs == {"dm": arcs} and arcs


def test_words_alone_are_tagged_as_training_was(parser, loaded):
    annotated = sentences(parser, "trees")
    texts = [" ".join(sentence.words) for sentence in annotated]
    found = loaded.parse(texts)
    assert [parse.tags for parse in found] == [sentence.tags for sentence in annotated]
    assert found == loaded.parse(annotated) == loaded.parse([list(sentence.words) for sentence in annotated])
    strange = loaded.parse("The snowman zooms")
    assert strange.words == ("The", "snowman", "zooms") and len(strange.heads) == len(strange.tags) == 3
    assert strange.heads.count(0) == 1


def test_classes(parser, loaded):
    annotated = sentences(parser, "sst")
    loaded.task.load_dataset("test_sst")
    dataset = loaded.task.datasets["test_sst"]
    batch = dataset.collater([dataset[i] for i in range(len(dataset))])["net_input"]["batches"]["sst"]
    with torch.no_grad():
        best = loaded.model({"sst": batch})["sst"].logits.argmax(1)
    assert loaded.classify(annotated) == [loaded.task.labels["sst"][i] for i in best]
    assert loaded.classify(" ".join(annotated[0].words)) == loaded.classify(annotated)[0]


def test_what_is_wrong_is_said(parser, loaded, tmp_path):
    with pytest.raises(ValueError, match="a parser does not translate: ask parse or classify"):
        loaded.translate("the dog")
    with pytest.raises(ValueError, match="sentence 2 is empty"):
        loaded.parse(["the dog", " "])
    with pytest.raises(ValueError, match="sentence 1: .* reads tags, expected one for each word"):
        loaded.parse(replace(sentences(parser, "trees")[0], tags=("DET",)))
    with pytest.raises(ValueError, match="text 1: expected a string, got int"):
        loaded.parse([4])
    with pytest.raises(ValueError, match="sentence 1: expected words, got"):
        loaded.parse([["the", ""]])
    assert loaded.parse([]) == []
    for name in ("corpora.json", *(f"dict.{field}.txt" for field in ("words", "lemmas", "tags"))):
        shutil.copy(parser.data / name, tmp_path)
    alone = seqstruct.load(parser.checkpoint, tmp_path)
    with pytest.raises(ValueError, match="reads lemmas and tags, learnt from the training sentences, and there are"):
        alone.parse("the dog")
    given = AnnotatedSentence(("the", "dog"), ("the", "dog"), ("DET", "NOUN"))
    assert alone.parse(given) == loaded.parse(given)
