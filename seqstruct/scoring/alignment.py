"""Alignment error rate (Och and Ney 2003, sec. 2.3) of word alignments in Pharaoh format.

A line holds one sentence's links `i-j`, source word i with target word j, counted from 0 and separated by spaces.  In
gold alignments a link written `ipj` or `i?j` is possible, `i-j` sure; every sure link is possible too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LINK = re.compile(r"(\d+)([-p?])(\d+)", re.ASCII)


@dataclass(frozen=True)
class GoldAlignment:
    """One sentence's links, each (source word, target word) from 0.  sure is a part of possible."""

    sure: frozenset[tuple[int, int]]
    possible: frozenset[tuple[int, int]]


@dataclass(frozen=True)
class AlignmentScore:
    """Of a corpus.  error_rate, precision and recall: 0 to 1; of these, a small error rate is good.

    links, sure, possible: how many links were proposed, and how many of each kind the gold alignments have.
    """

    error_rate: float
    precision: float
    recall: float
    sentences: int
    links: int
    sure: int
    possible: int


def read_gold(lines: Iterable[str], name: str, one_based: bool = False) -> list[GoldAlignment]:
    """Gold alignments, one a line.  one_based: words are counted from 1.

    name: what to call the lines in an error.  Raises ValueError naming name and line for anything but links.
    """
    offset = int(one_based)
    found = []
    for number, line in enumerate(lines, 1):
        sure, possible = set(), set()
        for field in line.split():
            match = LINK.fullmatch(field)
            pair = (int(match[1]) - offset, int(match[3]) - offset) if match else (-1, -1)
            if min(pair) < 0:
                form = "i-j, ipj or i?j, counted from " + ("1" if one_based else "0")
                raise ValueError(f"{name}: line {number}: expected links {form}, got {field!r}")
            possible.add(pair)
            if match[2] == "-":
                sure.add(pair)
        found.append(GoldAlignment(frozenset(sure), frozenset(possible)))
    return found


def read_alignments(lines: Iterable[str], name: str) -> list[frozenset[tuple[int, int]]]:
    """A system's alignments, one a line, all links `i-j` from 0.  Raises ValueError as `read_gold` does."""
    found = []
    for number, gold in enumerate(read_gold(lines, name), 1):
        if len(gold.sure) != len(gold.possible):
            raise ValueError(f"{name}: line {number}: expected links i-j alone, got a possible one")
        found.append(gold.sure)
    return found


def alignment_error_rate(
    alignments: Sequence[frozenset[tuple[int, int]]], gold: Sequence[GoldAlignment]
) -> AlignmentScore:
    """1 - (|A & S| + |A & P|) / (|A| + |S|) with proposed links A, sure S and possible P, summed over the corpus.

    Precision is |A & P| / |A|, recall |A & S| / |S|; one without a divisor is 1.
    Raises ValueError for unequal counts, or none at all.
    """
    if len(alignments) != len(gold) or not gold:
        raise ValueError(f"{len(alignments)} sentences with alignments, but {len(gold)} with gold alignments")
    links, sure, possible = (sum(map(len, part)) for part in (
        alignments, [g.sure for g in gold], [g.possible for g in gold]))
    pairs = list(zip(alignments, gold, strict=True))
    in_sure = sum(len(a & g.sure) for a, g in pairs)
    in_possible = sum(len(a & g.possible) for a, g in pairs)
    return AlignmentScore(
        error_rate=1 - (in_sure + in_possible) / (links + sure) if links + sure else 0.0,
        precision=in_possible / links if links else 1.0,
        recall=in_sure / sure if sure else 1.0,
        sentences=len(gold), links=links, sure=sure, possible=possible,
    )
