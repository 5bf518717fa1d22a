"""Text for language modeling from constituency trees, with the constituents that end at each word, and gold trees.

    ptb              .mrg trees of the Penn Treebank: sections 00-20, 21-22, 23-24, as in Mikolov et al. (2010)
    treebank-sample  the part of them that nltk distributes (treebank.zip): files 1-159, 160-179, 180-199
    parses           train.mrg, valid.mrg and test.mrg, of whatever text and parser; words and punctuation stay

Of the treebank, traces and punctuation are removed, words lowercased, numbers become N and 10,000 types stay, as in
Mikolov's text, which differs in details; currency signs are words.

The result holds text/ and bin/ (for the task span_language_modeling), bin/SPLIT.spans.npy, trees/SPLIT.mrg (one tree a
line, of the same words as written) and corpus.json.  A word's constituents are the bits of an integer: bit l is set
where the span of l + 1 words that ends at it is one, single words and whole sentences apart (Peng 2022, appendix D.1).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from seqstruct.data.checked import SPLITS, check_counts
from seqstruct.data.corpora import language_modeling as corpora
from seqstruct.data.files import atomic_write, existing, new_folder, sha256, undamaged, write_json, write_text
from seqstruct.data.text.trees import (
    Span,
    Tree,
    bracketed,
    read_sample,
    read_sections,
    read_trees,
    remove_empty,
    remove_punctuation,
    spans,
    trees_of,
    words,
)

CORPORA = ("ptb", "treebank-sample", "parses")
SECTIONS = {section: "train" if section < 21 else "valid" if section < 23 else "test" for section in range(25)}
MOST_WORDS = 63  # of a span, as bits of a signed 64-bit integer
SPANS = "{}.spans.npy"


def span_bits(constituents: Iterable[Span], length: int, longest: int = MOST_WORDS) -> np.ndarray:
    """For each of `length` words the constituents that end at it, int64: bit l for the span of l + 1 words.

    Single words and the whole sentence are left out.  Raises ValueError on a span outside the sentence, of more than
    `longest` words, or if longest is not within 1 .. 63.
    """
    if not 1 <= longest <= MOST_WORDS:
        raise ValueError(f"expected a maximum span length of 1 to {MOST_WORDS}, got {longest}")
    bits = np.zeros(length, dtype=np.int64)
    for first, last in constituents:
        if not 0 <= first <= last < length:
            raise ValueError(f"the span [{first}, {last}] is not within a sentence of {length} words")
        if first == last or (first, last) == (0, length - 1):
            continue
        if last - first >= longest:
            raise ValueError(
                f"the span [{first}, {last}] has {last - first + 1} words, more than the maximum of {longest}"
            )
        bits[last] |= np.int64(1) << np.int64(last - first)
    return bits


def gold_tree(tree: Tree) -> Tree | None:
    """The tree without traces and punctuation; None if nothing is left."""
    full = remove_empty(tree)
    return None if full is None else remove_punctuation(full)


def read_splits(corpus: str, source: str | os.PathLike) -> dict[str, list[Tree]]:
    """The trees of each split, as the module's docstring says; sentences left empty are dropped.

    source: of ptb and treebank-sample a folder with wsj_SSNN.mrg at any depth, or a .zip archive of them; of parses a
    folder.  Raises ValueError on a split without trees, and as `trees.read_sections`.
    """
    files, clean = "wsj_NNNN.mrg", gold_tree
    if corpus == "parses":
        files, clean = "SPLIT.mrg", remove_empty
        found = {split: read_trees(Path(source) / f"{split}.mrg") for split in SPLITS}
    else:
        found = read_sample(source) if corpus == "treebank-sample" else read_sections(source, SECTIONS)
    kept = {split: [tree for tree in map(clean, trees) if tree is not None] for split, trees in found.items()}
    for split, trees in kept.items():
        if not trees:
            raise ValueError(f"{source}: no file {files} with trees for {split}")
    return kept


def normalise(sentence: Sequence[str], options: corpora.TextOptions) -> list[str]:
    """The words as the language model reads them, one for each."""
    return next(iter(corpora.clean([" ".join(sentence)], options))).split()


def split_bits(trees: Sequence[Tree], longest: int, leave_out_longer: bool, name: str) -> tuple[np.ndarray, int]:
    """`span_bits` of all sentences, with a 0 for the EOS after each, and how many spans are left out.

    Raises ValueError that names the tree (from 1) on a span of more than `longest` words, unless they are left out.
    """
    rows, left_out = [], 0
    for number, tree in enumerate(trees, 1):
        found = spans(tree)
        length = len(words(tree))
        if leave_out_longer:
            kept = {(a, b) for a, b in found if b - a < longest or (a, b) == (0, length - 1)}
            left_out += len(found) - len(kept)
            found = kept
        try:
            rows.append(span_bits(found, length, longest))
        except ValueError as error:
            raise ValueError(f"{name}: tree {number}: {error}") from None
        rows.append(np.zeros(1, dtype=np.int64))
    return np.concatenate(rows), left_out


def read_bits(folder: str | os.PathLike, split: str, tokens: int) -> np.ndarray:
    """The spans of a split of a bin folder, int64, one integer for each token, EOS among them.

    Raises ValueError if the file is missing, damaged, or of another number of tokens.
    """
    path = existing(Path(folder) / SPANS.format(split), "; data-prep/ptb_trees.sh makes it beside the text")
    with undamaged(path, ValueError, EOFError, OSError):
        bits = np.load(path, allow_pickle=False)
    if bits.dtype != np.int64 or bits.shape != (tokens,):
        raise ValueError(f"{path}: expected {tokens} integers, one a token, got {bits.dtype} {bits.shape}")
    return bits


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument("--corpus", choices=CORPORA, default="ptb", help="which trees (default %(default)s)")
    parser.add_argument("--vocabulary", type=int, metavar="N", help="most frequent types kept, special symbols counted "
                        "(default 10000; of parses those that training has three times)")
    parser.add_argument("--max-span", type=int, default=MOST_WORDS, metavar="N",
                        help="words of the longest gold span (default %(default)s, which is the most)")
    parser.add_argument("--leave-out-longer", action="store_true",
                        help="leave out gold spans that are longer, which otherwise are an error")


def run(args: argparse.Namespace) -> None:
    source = trees_of(args.source)
    treebank = corpora.TextOptions(vocabulary=10_000 if args.vocabulary is None else args.vocabulary, lowercase=True)
    parses = corpora.TextOptions(vocabulary=args.vocabulary or 0, min_count=3)
    options = parses if args.corpus == "parses" else treebank
    with new_folder(args.out) as folder:
        counts, splits = {}, read_splits(args.corpus, source)
        if args.corpus == "ptb" and not args.unchecked:
            published = {split: lines for split, (lines, _) in corpora.COUNTS["ptb"].items()}
            check_counts("ptb", {split: len(trees) for split, trees in splits.items()}, published, "sentences", 0.001)
        for split, trees in splits.items():
            bits, left_out = split_bits(trees, args.max_span, args.leave_out_longer, f"{source}: {split}")
            text = [normalise(words(tree), options) for tree in trees]
            write_text(folder / "text" / f"{split}.txt", (" ".join(line) for line in text))
            write_text(folder / "trees" / f"{split}.mrg", map(bracketed, trees))
            with atomic_write(folder / "bin" / SPANS.format(split), "wb") as stream:
                np.save(stream, bits)
            counts[split] = {"sentences": len(trees), "words": sum(map(len, text)), "spans_left_out": left_out}
        corpora.binarise(folder, options)
        summary = {"corpus": args.corpus, "options": {**asdict(options), "longest": args.max_span}, "counts": counts}
        summary["sha256"] = {f"{split}.mrg": sha256(folder / "trees" / f"{split}.mrg") for split in SPLITS}
        write_json(folder / "corpus.json", summary)
    for split, found in counts.items():
        left_out = f", {found['spans_left_out']} long spans left out" if found["spans_left_out"] else ""
        print(f"{split}: {found['sentences']} sentences, {found['words']} words{left_out}")
