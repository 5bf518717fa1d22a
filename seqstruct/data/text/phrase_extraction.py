"""A phrase table of two aligned files of your own: what Moses makes before it tunes (Koehn, Och and Marcu 2003).

PREFIX.SRC and PREFIX.TRG have words that spaces separate.  The package systran-align, fast_align (Dyer et al. 2013) for
Python, aligns the words in both directions and joins these; a phrase pair is two spans of words of which none is linked
to a word outside, and some are to one another.  OUT/phrase-table has a line for each:

    source ||| target ||| p(s | t) lex(s | t) p(t | s) lex(t | s) ||| links ||| counts of target, source, both

p is a relative frequency, lex the product over words of the mean probability given those that they are linked to, NULL
if to none (secs. 3.1 and 4.4); all are in probability space.  The links are those seen most often with the pair.  All
pairs are held in memory, 0.7 GB for the 864,304 of Multi30k.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from seqstruct.data.arguments import add_numbers, at_least
from seqstruct.data.files import atomic_write, new_folder
from seqstruct.data.text.aligned import find_text, read_pairs

Pair = tuple[Sequence[str], Sequence[str]]
Link = tuple[int, int]  # word of the source, word of the target, from 0
SEPARATOR = "|||"
NULL = ""  # what a word without a link is linked to


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument("prefix", metavar="PREFIX", help="of the two files, plain or .gz, such as data/text/train")
    parser.add_argument("--src", required=True, metavar="LANGUAGE", help="source language")
    parser.add_argument("--trg", required=True, metavar="LANGUAGE", help="target language")
    add_numbers(parser, {"--longest": (7, "words of a phrase at most")})


def align(pairs: Sequence[Pair]) -> list[frozenset[Link]]:
    """The links of each pair's words, by systran-align: fast_align's five iterations with its recommended options.

    The same pairs have the same links.  Raises ValueError if the package is missing.
    """
    try:
        import systran_align
    except ImportError:
        needed = "phrase-table needs systran-align (Python up to 3.11): pip install 'seqstruct[align]'"
        raise ValueError(needed) from None
    with TemporaryDirectory() as scratch:
        text, forward, backward = (str(Path(scratch, name)) for name in ("text", "forward", "backward"))
        with open(text, "w", encoding="utf-8") as stream:
            stream.writelines(f"{' '.join(source)} {SEPARATOR} {' '.join(target)}\n" for source, target in pairs)
        systran_align.generate_alignment_probabilities(
            text, forward, backward, favor_diagonal=True, optimize_tension=True, variational_bayes=True
        )
        sides = ([list(pair[side]) for pair in pairs] for side in (0, 1))
        found = systran_align.Aligner(forward, backward).align_batch(*sides)
    return [frozenset((int(i), int(j)) for i, j in one["alignments"]) for one in found]


def phrase_spans(
    lengths: tuple[int, int], links: Collection[Link], longest: int
) -> Iterator[tuple[int, int, int, int]]:
    """The spans of source and target that make a phrase pair: begin and end of both, ends excluded.

    lengths: in words.  No word in either span is linked to one outside of the other, one link at least is inside, and
    both have `longest` words at most.  O(source length * longest^3).
    """
    of_source: dict[int, list[int]] = defaultdict(list)
    of_target: dict[int, list[int]] = defaultdict(list)
    for i, j in links:
        of_source[i].append(j)
        of_target[j].append(i)
    for begin in range(lengths[0]):
        linked: list[int] = []
        for end in range(begin + 1, min(begin + longest, lengths[0]) + 1):
            linked += of_source.get(end - 1, [])
            if not linked:
                continue
            low, high = min(linked), max(linked) + 1
            if high - low > longest:
                break
            if all(begin <= i < end for j in range(low, high) for i in of_target.get(j, ())):
                yield from ((begin, end, *span) for span in _widened(low, high, lengths[1], of_target, longest))


def _widened(low: int, high: int, length: int, linked: Collection[int], longest: int) -> Iterator[tuple[int, int]]:
    """A span of the target, and with it those that have more words without a link on either side."""
    first = low
    while first >= 0 and (first == low or first not in linked):
        last = high
        while last <= length and last - first <= longest and (last == high or last - 1 not in linked):
            yield first, last
            last += 1
        first -= 1


class Lexicon:
    """Probabilities of words given the words that they are linked to, as often as links of a text have it."""

    def __init__(self, linked: Iterable[tuple[str, str]]):
        """linked: a word, and the other, or NULL, for each link."""
        self.both = Counter(linked)
        self.given: Counter[str] = Counter()
        for (_, other), count in self.both.items():
            self.given[other] += count

    def weight(self, words: Sequence[str], others: Sequence[str], links: Mapping[int, Sequence[int]]) -> float:
        """The product over words of the mean probability given the others that they are linked to."""
        found = ([others[at] for at in links.get(n, ())] or [NULL] for n in range(len(words)))
        means = (
            sum(self.both[word, other] / self.given[other] for other in linked) / len(linked)
            for word, linked in zip(words, found, strict=True)
        )
        return math.prod(means)


def linked_words(pairs: Sequence[Pair], alignments: Sequence[Collection[Link]], side: int) -> Iterator[tuple[str, str]]:
    """Each word of a side (0: source) with each that it is linked to, or NULL."""
    for pair, links in zip(pairs, alignments, strict=True):
        of_word = _by_word(links, side)
        for n, word in enumerate(pair[side]):
            yield from ((word, pair[1 - side][at]) for at in of_word.get(n, ()))
            if n not in of_word:
                yield word, NULL


def _by_word(links: Iterable[Link], side: int) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for link in sorted(links):
        found.setdefault(link[side], []).append(link[1 - side])
    return found


def table_lines(pairs: Sequence[Pair], alignments: Sequence[Collection[Link]], longest: int) -> Iterator[str]:
    """The lines of the phrase table, sorted by source, then target."""
    seen: dict[tuple[str, str], Counter[str]] = {}
    for (source, target), links in zip(pairs, alignments, strict=True):
        for i0, i1, j0, j1 in phrase_spans((len(source), len(target)), links, longest):
            inside = " ".join(f"{i - i0}-{j - j0}" for i, j in sorted(links) if i0 <= i < i1 and j0 <= j < j1)
            seen.setdefault((" ".join(source[i0:i1]), " ".join(target[j0:j1])), Counter())[inside] += 1
    totals: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for phrases, alike in seen.items():
        for phrase, total in zip(phrases, totals, strict=True):
            total[phrase] += alike.total()
    lexicons = [Lexicon(linked_words(pairs, alignments, side)) for side in (0, 1)]
    for phrases in sorted(seen):
        words, count = [phrase.split() for phrase in phrases], seen[phrases].total()
        inside = max(sorted(seen[phrases]), key=seen[phrases].__getitem__)
        links = [(int(i), int(j)) for i, j in (link.split("-") for link in inside.split())]
        scores = []
        for side in (0, 1):
            lexical = lexicons[side].weight(words[side], words[1 - side], _by_word(links, side))
            scores += [count / totals[1 - side][phrases[1 - side]], lexical]
        fields = (*phrases, " ".join(f"{score:.6g}" for score in scores), inside,
                  f"{totals[1][phrases[1]]} {totals[0][phrases[0]]} {count}")
        yield f" {SEPARATOR} ".join(fields)


def run(args: argparse.Namespace) -> None:
    at_least(args, command=True, longest=1)
    files = [find_text(args.prefix, language) for language in (args.src, args.trg)]
    pairs = [(source.split(), target.split()) for source, target in read_pairs(*files)]
    for number, pair in enumerate(pairs, 1):
        if any(SEPARATOR in word for words in pair for word in words):
            raise ValueError(f"{args.prefix}: line {number}: expected no {SEPARATOR!r}, which parts fields")
    alignments = align(pairs)
    with new_folder(args.out) as folder:
        count = 0
        with atomic_write(folder / "phrase-table") as stream:
            for line in table_lines(pairs, alignments, args.longest):
                stream.write(f"{line}\n")
                count += 1
    print(f"{len(pairs)} sentence pairs: {count} phrase pairs")
