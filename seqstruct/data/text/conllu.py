"""Sentences with dependency trees and graphs in CoNLL-U (universaldependencies.org/format.html).

Words count from 1 and 0 is the root.  Lines of multiword tokens (1-2) and of empty nodes (8.1) are left out; an arc of
the enhanced graph that ends at an empty node goes to what that node hangs on, as the words' graph needs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from seqstruct.data.text.aligned import read_lines

FIELDS = 10


@dataclass(frozen=True)
class Token:
    """One word.  head: 0 to n, or None where the column is "_".  deps: pairs (head, relation) of the enhanced graph."""

    form: str
    lemma: str
    upos: str
    xpos: str
    head: int | None
    deps: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class ParsedSentence:
    """tokens: in order.  name: the sent_id comment, or the place in the file.  line: of the first word, from 1."""

    tokens: tuple[Token, ...]
    name: str
    line: int

    @property
    def heads(self) -> tuple[int, ...]:
        """The head of each word.  Raises ValueError, naming the sentence, if a word has none."""
        for number, token in enumerate(self.tokens, 1):
            if token.head is None:
                raise ValueError(f"{self.name}: word {number}, {token.form!r}, has no head")
        return tuple(token.head for token in self.tokens if token.head is not None)


def read_conllu(path: str | os.PathLike) -> Iterator[ParsedSentence]:
    """The sentences of a file, plain or .gz.  Raises ValueError with file and line as `parse_conllu`."""
    yield from parse_conllu(read_lines(path), str(path))


def parse_conllu(lines: Iterable[str], name: str) -> Iterator[ParsedSentence]:
    """The sentences of CoNLL-U lines; name says where they come from in errors.

    Raises ValueError, naming the line, for a line without ten fields, words that are not numbered from 1, a head that
    is not a word of the sentence, or an enhanced head that does not exist.
    """
    label = ""
    for comments, rows in paragraphs(lines):
        for comment in comments:
            key, _, value = comment[1:].partition("=")
            label = value.strip() if key.strip() == "sent_id" else label
        for number, fields in rows:
            if len(fields) != FIELDS:
                raise ValueError(f"{name}, line {number}: expected {FIELDS} fields parted by tabs, got {len(fields)}")
        if rows:
            yield _sentence(rows, name, label)
            label = ""


def paragraphs(lines: Iterable[str]) -> Iterator[tuple[list[str], list[tuple[int, list[str]]]]]:
    """What stands between empty lines: comments, and of each other line its number, from 1, and its fields."""
    comments, rows = [], []
    for number, line in enumerate(chain(lines, [""]), 1):
        line = line.rstrip("\r\n")
        if line.startswith("#"):
            comments.append(line)
        elif line.strip():
            rows.append((number, line.split("\t")))
        elif comments or rows:
            yield comments, rows
            comments, rows = [], []


def format_conllu(tokens: Sequence[Token], heads: Sequence[int]) -> str:
    """Ten columns for each word, with these heads, and the empty line that ends the sentence; relations are "_"."""
    rows = (
        "\t".join((str(number), token.form, token.lemma, token.upos, token.xpos, "_", str(head), "_", "_", "_"))
        for number, (token, head) in enumerate(zip(tokens, heads, strict=True), 1)
    )
    return "".join(f"{row}\n" for row in rows) + "\n"


def _sentence(block: list[tuple[int, list[str]]], name: str, label: str) -> ParsedSentence:
    words = [(number, fields) for number, fields in block if "-" not in fields[0] and "." not in fields[0]]
    empty = {fields[0]: fields[8] for _, fields in block if "." in fields[0]}
    tokens = []
    for position, (number, fields) in enumerate(words, 1):
        where = f"{name}, line {number}"
        if fields[0] != str(position):
            raise ValueError(f"{where}: expected word {position}, got {fields[0]!r}")
        deps = []
        if fields[8] != "_":
            for pair in fields[8].split("|"):
                for head, relation in _resolve(pair, empty, where, ()):
                    deps.append((_head(head, len(words), where), relation))
        head = None if fields[6] == "_" else _head(fields[6], len(words), where)
        if head == position:
            raise ValueError(f"{where}: word {position} is its own head")
        unlooped = (pair for pair in deps if pair[0] != position)
        tokens.append(Token(*fields[1:5], head, tuple(dict.fromkeys(unlooped))))
    first = block[0][0]
    return ParsedSentence(tuple(tokens), label or f"{name}, line {first}", first)


def _head(text: str, length: int, where: str) -> int:
    if not text.isdecimal() or int(text) > length:
        raise ValueError(f"{where}: expected a head from 0 to {length}, got {text!r}")
    return int(text)


def _resolve(pair: str, empty: dict[str, str], where: str, seen: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """(head, relation), with an empty node replaced by its own heads."""
    head, colon, relation = pair.partition(":")
    if not colon:
        raise ValueError(f"{where}: expected HEAD:RELATION, got {pair!r}")
    if "." not in head:
        yield head, relation
    elif head in seen:
        return
    elif head not in empty:
        raise ValueError(f"{where}: there is no empty node {head}")
    elif empty[head] != "_":
        for above in empty[head].split("|"):
            for found, _ in _resolve(above, empty, where, (*seen, head)):
                yield found, relation
