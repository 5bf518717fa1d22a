"""Which target phrase a score prefers: how often it is one that was seen most often with the source phrase.

    python -m seqstruct.scoring.phrase_choice scored.gz --by last --out choice.json

TABLE is a phrase table of Moses with the scores p(s | t), lex(s | t), p(t | s), lex(t | s), and perhaps others behind
them, plain or .gz, sorted by its source phrases, or the folder of a phrase-table. Source phrases whose targets, of
which there may be one, were all seen equally often do not count, nor do those of which a target has fewer scores than
others of the table, as `seqstruct score-phrases --keep` leaves what it cannot score.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from seqstruct.command import module_parser, run_module
from seqstruct.data.text.aligned import read_lines
from seqstruct.scoring.measurement import Measurement, write
from seqstruct.scoring.phrase_table import find_table

DIRECT = 2  # the column of p(t | s)
COLUMNS = {"lexical": 3, "last": -1}


def read_scores(table: str | Path) -> Iterator[tuple[str, list[float]]]:
    """The source phrase and the scores of each line that has them; other lines are left out."""
    for line in read_lines(table):
        fields = line.split("|||")
        try:
            scores = [float(score) for score in fields[2].split()]
        except (IndexError, ValueError):
            continue
        if len(scores) > max(DIRECT, *COLUMNS.values()):
            yield fields[0].strip(), scores


def agreement(lines: Iterable[tuple[str, Sequence[float]]], column: int | None, width: int) -> tuple[float, int]:
    """The share, 0 to 1, of source phrases of which the best target by a column is one seen most often; how many count.

    lines: sorted by source.  column: of the scores, None for any target at random.  width: scores that a line has, as
    all targets of a source phrase must for it to count.  Of targets that are equal by the
    column, one at random.  Raises ValueError if no source phrase counts.
    """
    hits, sources = 0.0, 0
    for _, group in groupby(lines, key=lambda line: line[0]):
        scores = [line[1] for line in group]
        most, least = max(one[DIRECT] for one in scores), min(one[DIRECT] for one in scores)
        if most == least or any(len(one) < width for one in scores):
            continue
        best = None if column is None else max(one[column] for one in scores)
        chosen = [one for one in scores if best is None or one[column] == best]
        hits += sum(one[DIRECT] == most for one in chosen) / len(chosen)
        sources += 1
    if not sources:
        raise ValueError("expected phrases with targets that were seen unequally often, and four scores; found none")
    return hits / sources, sources


def main(argv: Sequence[str] | None = None) -> int:
    parser = module_parser("seqstruct.scoring.phrase_choice", __doc__)
    parser.add_argument("table", metavar="TABLE")
    parser.add_argument("--by", choices=("random", *COLUMNS), default="last", help="the target at random, by "
                        "lex(t | s), or by the last score (default: %(default)s)")
    parser.add_argument("--out", required=True, metavar="FILE.json", help="for `seqstruct record`")

    def work(args) -> None:
        table = find_table(args.table)
        width = max((len(scores) for _, scores in read_scores(table)), default=0)
        share, sources = agreement(read_scores(table), COLUMNS.get(args.by), width)
        write(args.out, [Measurement("most_frequent_chosen", 100 * share, "%"),
                         Measurement("source_phrases", sources, "phrases")])
        print(f"{100 * share:.2f} % of {sources} source phrases")

    return run_module(parser, argv, work)


if __name__ == "__main__":
    raise SystemExit(main())
