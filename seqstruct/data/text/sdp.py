"""Semantic dependency graphs in the format of SDP 2015 (Oepen et al. 2015, SemEval task 18).

A line has a word: number, form, lemma, tag, top (+ or -), predicate (+ or -), frame, and one argument column for each
predicate of the sentence, in order; the 2014 files lack the frame.  Head and relation of a syntactic tree, which some
have merged in behind the tag, are passed over.  Words count from 1.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from seqstruct.data.text.aligned import read_lines
from seqstruct.data.text.conllu import paragraphs

HEADER = "#SDP 2015"
TAG = 3  # its column


@dataclass(frozen=True)
class Graph:
    """One sentence.  tops: numbers of the top words.  arcs: (predicate, argument, label), sorted."""

    forms: tuple[str, ...]
    lemmas: tuple[str, ...]
    tags: tuple[str, ...]
    tops: tuple[int, ...]
    arcs: tuple[tuple[int, int, str], ...]
    name: str


def read_sdp(path: str | os.PathLike) -> Iterator[Graph]:
    """The graphs of a file, plain or .gz.  Raises ValueError with file and line as `parse_sdp`."""
    yield from parse_sdp(read_lines(path), str(path))


def parse_sdp(lines: Iterable[str], name: str) -> Iterator[Graph]:
    """The graphs of SDP lines; name says where they come from in errors.

    Raises ValueError, naming the line, for words that are not numbered from 1, a top or predicate that is neither + nor
    -, or as many argument columns as the sentence does not have predicates.
    """
    frame, label = False, ""  # whether there is a column of frames
    for comments, rows in paragraphs(lines):
        for comment in comments:
            if comment.startswith("#SDP"):
                frame = comment.strip() == HEADER
            else:
                label = comment[1:].strip()
        if rows:
            yield _graph(rows, frame, name, label)
            label = ""


def _graph(block: list[tuple[int, list[str]]], frame: bool, name: str, label: str) -> Graph:
    first = block[0][1]
    tree = len(first) > TAG + 1 and (first[TAG + 1].isdecimal() or first[TAG + 1] == "_")
    top = TAG + (3 if tree else 1)
    columns = top + (3 if frame else 2)  # before the arguments
    for position, (number, fields) in enumerate(block, 1):
        if len(fields) < columns or fields[0] != str(position):
            raise ValueError(
                f"{name}, line {number}: expected word {position} and {columns} fields or more, got {fields[0]!r} and "
                f"{len(fields)}"
            )
        if not {fields[top], fields[top + 1]} <= {"+", "-"}:
            raise ValueError(
                f"{name}, line {number}: expected + or - for top and predicate, got {fields[top]!r}, "
                f"{fields[top + 1]!r}"
            )
    predicates = [position for position, (_, fields) in enumerate(block, 1) if fields[top + 1] == "+"]
    arcs = []
    for position, (number, fields) in enumerate(block, 1):
        arguments = fields[columns:]
        if len(arguments) != len(predicates):
            raise ValueError(
                f"{name}, line {number}: expected {len(predicates)} arguments, one for each predicate, got "
                f"{len(arguments)}"
            )
        pairs = zip(predicates, arguments, strict=True)
        arcs += [(predicate, position, relation) for predicate, relation in pairs if relation != "_"]
    forms, lemmas, tags = (tuple(fields[i] for _, fields in block) for i in (1, 2, 3))
    tops = tuple(position for position, (_, fields) in enumerate(block, 1) if fields[top] == "+")
    return Graph(forms, lemmas, tags, tops, tuple(sorted(arcs)), label or f"{name}, line {block[0][0]}")


def format_sdp(graphs: Iterable[Graph]) -> Iterator[str]:
    """Lines of the 2015 format, without frames; `parse_sdp` reads the same graphs."""
    yield HEADER
    for graph in graphs:
        yield f"#{graph.name}"
        predicates = sorted({predicate for predicate, _, _ in graph.arcs})
        labels = {(predicate, argument): label for predicate, argument, label in graph.arcs}
        for position, word in enumerate(zip(graph.forms, graph.lemmas, graph.tags, strict=True), 1):
            marks = ("+" if position in marked else "-" for marked in (graph.tops, predicates))
            arguments = (labels.get((predicate, position), "_") for predicate in predicates)
            yield "\t".join([str(position), *word, *marks, "_", *arguments])
        yield ""
