"""Constituency trees in the bracketed format of the Penn Treebank (Marcus et al. 1993).

A tree is read from `( (S (NP (DT the) (NN dog)) (VP (VBZ barks))))`; the nameless outer bracket is dropped where it
holds one tree.  Words stay as written: `-LRB-`, `\\/` and `\\*` are not unescaped.  Positions count from 0, and a
span is (first, last), both inclusive.

Nothing here recurses, so that a tree may be as deep as a sentence is long.  The treebank's files of the Wall Street
Journal, wsj_SSNN.mrg, are read by section or, of nltk's sample, by number.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeVar

from seqstruct.data.checked import SPLITS
from seqstruct.data.downloads import DAMAGE

EMPTY = "-NONE-"
PUNCTUATION = frozenset({",", ".", ":", "``", "''", "-LRB-", "-RRB-"})
SAMPLE = "treebank.zip"
SAMPLE_ENDS = {"train": 159, "valid": 179, "test": 199}  # the last file of each split

Span = tuple[int, int]
T = TypeVar("T")
_MRG = re.compile(r".+\.mrg", re.IGNORECASE)
_WSJ = re.compile(r"wsj_(\d\d)(\d\d)\.mrg", re.IGNORECASE)
_TOKEN = re.compile(r"[()]|[^\s()]+")


class Tree(NamedTuple):
    """label: of a constituent, or the part of speech of a word.  A word is a tree without children; others have one
    child or more, and `word` None.
    """

    label: str
    children: tuple[Tree, ...] = ()
    word: str | None = None


def parse_trees(lines: Iterable[str], name: str = "text") -> Iterator[Tree]:
    """The trees in lines of text, in order, however they are broken into lines.

    Raises ValueError with name and line (from 1) on brackets that are not balanced, a constituent without children,
    or a word outside a bracket, beside a constituent, or beside a second word.
    """
    open_brackets: list[tuple[int, list[str], list[Tree]]] = []  # line, words at its start, children so far
    number = 0
    for number, line in enumerate(lines, 1):
        for token in _TOKEN.findall(line):
            if token == "(":
                open_brackets.append((number, [], []))
            elif not open_brackets:
                what = "a closing bracket that nothing opens" if token == ")" else f"{token!r} outside any bracket"
                raise ValueError(f"{name}: line {number}: {what}")
            elif token == ")":
                opened, words, children = open_brackets.pop()
                tree = _close(words, children, f"{name}: line {opened}")
                if open_brackets:
                    open_brackets[-1][2].append(tree)
                else:
                    yield tree.children[0] if not tree.label and len(tree.children) == 1 else tree
            else:
                _, words, children = open_brackets[-1]
                if children or len(words) == 2:
                    raise ValueError(f"{name}: line {number}: expected a bracket, got the word {token!r}")
                words.append(token)
    if open_brackets:
        raise ValueError(
            f"{name}: line {open_brackets[0][0]}: a bracket opens here that nothing closes before line {number} ends"
        )


def _close(words: list[str], children: list[Tree], where: str) -> Tree:
    if len(words) == 2 and not children:
        return Tree(words[0], (), words[1])
    if len(words) == 2 or not children:
        raise ValueError(f"{where}: expected (LABEL word) or (LABEL (...) ...), got {' '.join(words) or '()'}")
    return Tree(words[0] if words else "", tuple(children))


def trees_of(source: str | os.PathLike | None) -> Path:
    """The folder or archive named by --from, or the archive of nltk's sample in that folder.

    Raises ValueError that says how to get the treebank if there is none.
    """
    if source is None:
        raise ValueError(
            "nothing is downloaded, --from PATH is needed: the treebank is licensed by the Linguistic Data Consortium "
            "(LDC99T42); name the folder parsed/mrg/wsj or combined/wsj of your copy, or nltk's sample, treebank.zip"
        )
    path = Path(source)
    if not path.exists():
        raise ValueError(f"{path}: no such file or folder")
    return path / SAMPLE if (path / SAMPLE).is_file() else path


def read_tree_files(path: str | os.PathLike) -> Iterator[tuple[str, list[Tree]]]:
    """The name and the trees of each file, in the order of the names.

    path: one file of trees; a folder with .mrg files, at any depth; or a .zip archive that holds such files, as NLTK's
    treebank.zip does, which is read without unpacking it.  Names are relative to the folder or archive.
    Raises ValueError if there are no trees in it, on a damaged archive, and what `parse_trees` raises; OSError if the
    file is not there.
    """
    files = 0
    for name, trees in _read_files(Path(path), _MRG):
        files += bool(trees)
        yield name, trees
    if not files:
        raise ValueError(f"{path}: expected trees in brackets, found none")


def _read_files(path: Path, wanted: re.Pattern[str]) -> Iterator[tuple[str, list[Tree]]]:
    """wanted: of names without their folders, in a folder or archive."""
    alone = path.is_file() and path.suffix.lower() != ".zip"
    for name, lines in _texts(path, wanted):
        yield name, list(parse_trees(lines, name if alone else f"{path}: {name}"))


def _texts(path: Path, wanted: re.Pattern[str]) -> Iterator[tuple[str, list[str]]]:
    if path.is_dir():
        for file in sorted(file for file in path.rglob("*") if wanted.fullmatch(file.name)):
            yield str(file.relative_to(path)), _lines(file.read_bytes(), file)
    elif path.suffix.lower() == ".zip":
        try:
            with zipfile.ZipFile(path) as archive:
                for name in sorted(n for n in archive.namelist() if wanted.fullmatch(PurePosixPath(n).name)):
                    yield name, _lines(archive.read(name), f"{path}: {name}")
        except DAMAGE as error:
            raise ValueError(f"{path}: the archive is truncated or altered: {error}") from None
    else:
        yield str(path), _lines(path.read_bytes(), path)


def _lines(data: bytes, where: object) -> list[str]:
    try:
        return data.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{where}: not UTF-8 in line {data[: error.start].count(10) + 1}") from None


def read_trees(path: str | os.PathLike) -> Iterator[Tree]:
    for _, trees in read_tree_files(path):
        yield from trees


def read_wsj(source: str | os.PathLike) -> Iterator[tuple[int, int, list[Tree]]]:
    """Section, number and trees of each file wsj_SSNN.mrg, capitals or not; files of other names are not looked at.

    source: as of `read_tree_files`.  Raises ValueError if a file is there twice, and what `read_tree_files` raises.
    """
    seen: dict[tuple[int, int], str] = {}
    for name, trees in _read_files(Path(source), _WSJ):
        if match := _WSJ.fullmatch(Path(name).name):
            place = int(match[1]), int(match[2])
            if place in seen:
                raise ValueError(f"{source}: expected each file once, found {seen[place]} and {name}")
            seen[place] = name
            yield *place, trees


def read_sections(source: str | os.PathLike, split_of: Mapping[int, str]) -> dict[str, list[Tree]]:
    """The trees of each split, by the split of each section.  source: as of `read_tree_files`, at any depth.

    Raises ValueError if a section is missing, and as `read_wsj`.
    """
    found, sections = _read_wsj(source, lambda section, _: split_of.get(section))
    missing = sorted(split_of.keys() - sections)
    if missing:
        raise ValueError(f"{source}: no wsj_SSNN.mrg of the sections {', '.join(f'{s:02}' for s in missing)}")
    return found


def read_sample(source: str | os.PathLike) -> dict[str, list[Tree]]:
    """The trees of nltk's sample by split: 199 files of the sections 00 and 01."""
    def split_of(section: int, number: int) -> str | None:
        return next((split for split, end in SAMPLE_ENDS.items() if section * 100 + number <= end), None)

    return _read_wsj(source, split_of)[0]


def _read_wsj(
    source: str | os.PathLike, split_of: Callable[[int, int], str | None]
) -> tuple[dict[str, list[Tree]], set[int]]:
    """Trees by split, and the sections seen."""
    found: dict[str, list[Tree]] = {split: [] for split in SPLITS}
    sections = set()
    for section, number, trees in read_wsj(source):
        split = split_of(section, number)
        if split is not None:
            sections.add(section)
            found[split] += trees
    return found, sections


def fold(tree: Tree, of_word: Callable[[Tree], T], of_children: Callable[[Tree, list[T]], T]) -> T:
    """Reduce a tree from its words upward: of_word(leaf), then of_children(constituent, results of its children)."""
    pending: list[tuple[Tree, bool]] = [(tree, False)]
    done: list[T] = []
    while pending:
        node, seen = pending.pop()
        if not node.children:
            done.append(of_word(node))
        elif not seen:
            pending.append((node, True))
            pending.extend((child, False) for child in reversed(node.children))
        else:
            start = len(done) - len(node.children)
            done[start:] = [of_children(node, done[start:])]
    return done[0]


def leaves(tree: Tree) -> list[Tree]:
    """The words from left to right, as trees: `label` is the part of speech, `word` the word."""
    found: list[Tree] = []
    fold(tree, found.append, lambda *_: None)
    return found


def words(tree: Tree) -> list[str]:
    return [leaf.word or "" for leaf in leaves(tree)]


def spans(tree: Tree) -> set[Span]:
    """The spans of all constituents of two words or more, the whole sentence's among them; of equal ones one stays."""
    found: set[Span] = set()
    position = count()

    def of_word(_: Tree) -> Span:
        here = next(position)
        return here, here

    def of_children(_: Tree, children: list[Span]) -> Span:
        found.add((children[0][0], children[-1][1]))
        return children[0][0], children[-1][1]

    fold(tree, of_word, of_children)
    return {span for span in found if span[0] < span[1]}


def keep_leaves(tree: Tree, keep: Callable[[Tree], bool]) -> Tree | None:
    """The tree without the words that `keep` refuses, and without constituents left empty; None if nothing is left."""

    def of_children(node: Tree, children: list[Tree | None]) -> Tree | None:
        left = tuple(child for child in children if child is not None)
        return node._replace(children=left) if left else None

    return fold(tree, lambda leaf: leaf if keep(leaf) else None, of_children)


def remove_empty(tree: Tree) -> Tree | None:
    """The tree without traces (-NONE-); None if it has nothing else."""
    return keep_leaves(tree, lambda leaf: leaf.label != EMPTY)


def remove_punctuation(tree: Tree) -> Tree | None:
    """The tree without punctuation; None if it has nothing else.  Currency signs count as words."""
    return keep_leaves(tree, lambda leaf: leaf.label not in PUNCTUATION)


def collapse_unary(tree: Tree) -> Tree:
    """The tree without constituents that have one child, where that child is a constituent: the upper one stays."""

    def of_children(node: Tree, children: list[Tree]) -> Tree:
        only = children[0] if len(children) == 1 else None
        return Tree(node.label, only.children if only is not None and only.children else tuple(children))

    return fold(tree, lambda leaf: leaf, of_children)


def bracketed(tree: Tree) -> str:
    """The tree in one line: (S (NP (DT the) (NN dog)) (VP (VBZ barks))); without labels ((the dog) barks)."""
    return fold(
        tree,
        lambda leaf: f"({leaf.label} {leaf.word})" if leaf.label else leaf.word or "",
        lambda node, children: f"({node.label}{' ' if node.label else ''}{' '.join(children)})",
    )


def drawn(tree: Tree) -> str:
    """The tree as lines of text, one word a line, the root on the left, labels where there are any."""

    def of_children(node: Tree, children: list[list[str]]) -> list[str]:
        name = f"{node.label}\u2500" if node.label else ""
        lines = []
        for k, child in enumerate(children):
            only, final = len(children) == 1, k == len(children) - 1
            first = "\u2500" if only else "\u252c" if k == 0 else "\u2514" if final else "\u251c"
            rest = " " if final else "\u2502"
            head = name if k == 0 else " " * len(name)
            lines.append(f"{head}{first}\u2500{child[0]}")
            lines += [f"{' ' * len(name)}{rest} {line}" for line in child[1:]]
        return lines

    def of_word(leaf: Tree) -> list[str]:
        return [f" {leaf.label} {leaf.word}" if leaf.label else f" {leaf.word}"]

    return "\n".join(fold(tree, of_word, of_children))


def binary_tree(sentence: Sequence[str], splits: Iterable[tuple[int, int, int]]) -> Tree:
    """The tree without labels that splits (first, middle, last) make: [first, middle - 1] and [middle, last].

    Raises ValueError on an empty sentence, and where a span of two words or more has no split.
    """
    if not sentence:
        raise ValueError("expected a sentence of one word or more, got an empty one")
    middles = {(first, last): middle for first, middle, last in splits}
    made: dict[Span, Tree] = {}
    pending = [(0, len(sentence) - 1)]
    while pending:
        first, last = pending[-1]
        if first == last:
            made[pending.pop()] = Tree("", (), sentence[first])
            continue
        if (first, last) not in middles:
            raise ValueError(f"the span [{first}, {last}] has no split")
        parts = (first, middles[first, last] - 1), (middles[first, last], last)
        missing = [part for part in parts if part not in made]
        if missing:
            pending += missing
        else:
            made[pending.pop()] = Tree("", tuple(made[part] for part in parts))
    return made[0, len(sentence) - 1]
