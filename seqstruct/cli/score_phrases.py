"""`seqstruct score-phrases`: a model's score of each phrase pair, as one more column of a Moses phrase table.

Lines that are malformed, or longer than the model allows, are left out and reported with their numbers: a table in
which they had fewer scores than the others could not be read.  With --keep they come out unchanged.  The new table
appears when it is whole; until then it is FILE.part, with which the same command goes on after an interruption.
"""

from __future__ import annotations

import argparse

from seqstruct.command import add_data


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", metavar="TABLE", help="source ||| target ||| scores ||| ..., plain or .gz, or "
                        "the folder of a phrase-table")
    parser.add_argument("--checkpoint", metavar="PT", nargs="+", required=True,
                        help="a translation model of fairseq-train; several are an ensemble")
    parser.add_argument("--out", metavar="FILE", required=True, help="the new table; packed if it ends in .gz")
    parser.add_argument("--score", choices=("log", "probability"), default="log",
                        help="log-probability of the target phrase and its end, in nats, or the probability itself, of "
                        "which Moses takes the logarithm (default %(default)s)")
    add_data(parser)
    parser.add_argument("--subword-model", metavar="FILE",
                        help="codes of subword-nmt or a SentencePiece model that cut the phrases first")
    parser.add_argument("--keep", action="store_true", help="keep lines without a score, unchanged")
    parser.add_argument("--window", type=int, default=20000, metavar="LINES",
                        help="lines in memory, batched by length (default %(default)s)")
    parser.add_argument("--record", metavar="FILE.json", help="write how many got a score, for `seqstruct record`")
    parser.add_argument("--cpu", action="store_true", help="leave a GPU alone")


def run(args: argparse.Namespace) -> None:
    import os

    from seqstruct.harness.progress import Progress
    from seqstruct.scoring.forced import load_scorer
    from seqstruct.scoring.measurement import Measurement, write
    from seqstruct.scoring.phrase_table import find_table, score_table
    from seqstruct.scoring.resumable import fingerprint

    if args.window < 1:
        raise ValueError(f"--window: expected 1 or more, got {args.window}")
    args.table = find_table(args.table)
    os.stat(args.table)  # before the models are loaded
    scorer = load_scorer(args.checkpoint, args.data, args.subword_model, args.cpu)
    with Progress() as bars:
        advance = bars.task(os.path.basename(args.table), 100)

        def progress(done: int, size: int, note: str) -> None:
            advance(100 * done / size, f"% of {size / 1e6:.1f} MB, {note}")

        report = score_table(
            args.table, args.out, scorer, lambda text: bars.say(f"{args.table}: {text}"), progress,
            {"models": [fingerprint(path) for path in (*args.checkpoint, *filter(None, [args.subword_model]))]},
            args.score, args.keep, args.window,
        )
    left = "kept unchanged" if args.keep else "left out"
    if args.record:
        write(args.record, [Measurement("phrase_pairs_scored", report.scored, "phrase pairs")])
    print(f"{report.lines} lines: {report.scored} scored, {report.malformed} malformed and {report.too_long} too long "
          f"for the model, {left}; {report.unknown} words unknown to the model")
