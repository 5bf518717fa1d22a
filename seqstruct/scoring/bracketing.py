"""Unlabeled constituency parsing: F1 of brackets, and how often trees branch to the left and to the right.

Punctuation and traces are removed beforehand (`seqstruct.data.corpora.parsed_text.gold_tree`), unary chains count once,
and brackets around single words never.  Two conventions are in use:

    corpus     hits, gold and predicted brackets are summed over all sentences, the one around the whole sentence among
               them (Klein and Manning 2002); with it right branching has the 40.7 on WSJ-40 that Peng (2022, Table 3.3)
               quotes
    sentence   F1 is taken of each sentence, without the bracket around it, and averaged; a sentence without gold
               brackets has a recall of 1, one without predicted ones a precision of 1 (Shen et al. 2018a, 2018b)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from seqstruct.data.text.trees import Span, Tree, collapse_unary, fold

CONVENTIONS = ("corpus", "sentence")


class Bracketing(NamedTuple):
    """Percentages; in the convention "sentence" f1 is not the harmonic mean of the other two, which are means too."""

    f1: float
    precision: float
    recall: float


class SplitShares(NamedTuple):
    """Percentages of splits, those of two words into two left out."""

    left: float
    right: float


def score_brackets(
    gold: Sequence[set[Span]], predicted: Sequence[set[Span]], lengths: Sequence[int], convention: str = "corpus"
) -> Bracketing:
    """Compare the spans of two words or more of each sentence, the whole one among them on either side.

    lengths: in words.  Raises ValueError if there is no sentence, the numbers of sentences differ, or the convention is
    unknown.
    """
    if convention not in CONVENTIONS:
        raise ValueError(f"expected a convention of {' or '.join(CONVENTIONS)}, got {convention!r}")
    if not len(gold) == len(predicted) == len(lengths) or not gold:
        raise ValueError(
            f"expected as many gold as predicted sentences, and one at least, got {len(gold)} and {len(predicted)}"
        )
    if convention == "corpus":
        counts = [(len(g & p), len(p), len(g)) for g, p in zip(gold, predicted, strict=True)]
        hits, made, there = (sum(column) for column in zip(*counts, strict=True))
        return Bracketing(*(100 * figure for figure in _figures(hits, made, there)))
    rows = []
    for g, p, length in zip(gold, predicted, lengths, strict=True):
        whole = {(0, length - 1)}
        rows.append(_figures(len((g & p) - whole), len(p - whole), len(g - whole)))
    return Bracketing(*(100 * (sum(column) / len(rows)) for column in zip(*rows, strict=True)))


def _figures(hits: int, made: int, there: int) -> tuple[float, float, float]:
    precision, recall = hits / made if made else 1.0, hits / there if there else 1.0
    return 2 * precision * recall / (precision + recall) if hits or not (made or there) else 0.0, precision, recall


def branching(trees: Iterable[Tree]) -> SplitShares:
    """Of the constituents of three words or more, how many are all but the last word and it, or the first and the rest.

    A constituent of three parts or more is neither (Peng 2022, section 3.3 and note 14).  Unary chains count once.
    Raises ValueError if no tree has such a constituent.
    """
    splits = left = right = 0

    def of_children(node: Tree, children: list[int]) -> int:
        nonlocal splits, left, right
        length = sum(children)
        if length > 2 and len(children) > 1:
            splits += 1
            left += len(children) == 2 and children[1] == 1
            right += len(children) == 2 and children[0] == 1
        return length

    for tree in trees:
        fold(collapse_unary(tree), lambda leaf: 1, of_children)
    if not splits:
        raise ValueError("no constituent has three words or more")
    return SplitShares(100 * left / splits, 100 * right / splits)
