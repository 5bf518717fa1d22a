"""Words without meaning as raw files for the preparations of one's own data, of models that read no plain text.

    texts    SPLIT.tsv, a label and a text a line: `seqstruct prepare text-classification`
    pairs    SPLIT.tsv, a label and two texts a line: `seqstruct prepare sentence-pairs`
    graphs   SPLIT.sdp and SPLIT.conllu, graphs and projective trees: `seqstruct prepare parsing`, as --classes also
             texts; here of the same sentences, with two labels
    trees    SPLIT.mrg, binary constituents in brackets: `seqstruct prepare ptb-trees --corpus parses`

Labels of texts are equally frequent, those of arcs drawn as words are; three in four words of a graph depend on their
head in a tree.  Where a constituent is cut, all places are as likely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from seqstruct.data.files import atomic_write, write_text
from seqstruct.data.text.sdp import Graph, format_sdp

Sentences = list[list[str]]
Draw = Callable[[int, int, np.random.Generator], np.ndarray]  # so many ranks from 0, below a number
ATTACHED, TAGS = 0.75, 45


def texts(prefix: Path, sides: Sequence[Sentences], labels: np.ndarray) -> None:
    """PREFIX.tsv of one side, or of two."""
    rows = zip(labels, *sides, strict=True)
    write_text(prefix.with_suffix(".tsv"), ("\t".join([f"label{label}", *map(" ".join, row)]) for label, *row in rows))


def graphs(prefix: Path, sentences: Sentences, labels: int, draw: Draw, generator: np.random.Generator) -> None:
    """PREFIX.sdp and PREFIX.conllu of the same sentences, each with a tree; the graph has arcs of another one."""
    with atomic_write(prefix.with_suffix(".conllu")) as stream:
        for words in sentences:
            for number, (word, head) in enumerate(zip(words, projective_heads(len(words), generator), strict=True), 1):
                columns = [number, word, word, "X", _tag(word), "_", head, "dep", "_", "_"]
                stream.write("\t".join(map(str, columns)) + "\n")
            stream.write("\n")
    found = (_graph(words, number, labels, draw, generator) for number, words in enumerate(sentences))
    write_text(prefix.with_suffix(".sdp"), format_sdp(found))


def _graph(words: list[str], number: int, labels: int, draw: Draw, generator: np.random.Generator) -> Graph:
    heads = projective_heads(len(words), generator)
    named = draw(len(words), labels, generator)
    arcs = sorted((head, word, f"L{named[word - 1]}") for word, head in enumerate(heads, 1)
                  if head and generator.random() < ATTACHED)
    return Graph(tuple(words), tuple(words), tuple(map(_tag, words)), (heads.index(0) + 1,), tuple(arcs), str(number))


def _tag(word: str) -> str:
    return f"T{int(word[1:]) % TAGS}"


def trees(prefix: Path, sentences: Sentences, generator: np.random.Generator) -> None:
    """PREFIX.mrg, a tree of each sentence."""
    write_text(prefix.with_suffix(".mrg"), (_brackets(words, generator) for words in sentences))


def _brackets(words: list[str], generator: np.random.Generator) -> str:
    if len(words) == 1:
        return f"(X {words[0]})"
    cut = int(generator.integers(1, len(words)))
    return f"(X {_brackets(words[:cut], generator)} {_brackets(words[cut:], generator)})"


def projective_heads(length: int, generator: np.random.Generator) -> list[int]:
    """The head of each word of a random projective tree, from 1, that of the root 0.

    Any word of a span may be its head, and what is left and right of it are spans again.
    """
    heads = [0] * length
    spans = [(0, length, 0)]
    while spans:
        begin, end, above = spans.pop()
        if begin < end:
            top = int(generator.integers(begin, end))
            heads[top] = above
            spans += [(begin, top, top + 1), (top + 1, end, top + 1)]
    return heads


def vectors(path: Path, types: int, size: int, generator: np.random.Generator) -> None:
    """A line of normal numbers for each word, as GloVe has them."""
    write_text(path, _vectors(types, size, generator))


def _vectors(types: int, size: int, generator: np.random.Generator) -> Iterator[str]:
    for rank in range(types):
        yield " ".join([f"w{rank + 1}", *(f"{value:.3f}" for value in generator.standard_normal(size))])
