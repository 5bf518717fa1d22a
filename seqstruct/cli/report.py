"""`seqstruct report PAPER [TABLE]`: a paper's tables, ours beside the paper's."""

from __future__ import annotations

import argparse
from pathlib import Path

from seqstruct.harness.records import SCALES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paper", metavar="PAPER", help="a folder under recipes/, by name or path")
    parser.add_argument("table", metavar="TABLE", nargs="?", help="one table, as the source numbers it (default: all)")
    parser.add_argument("--format", choices=("text", "markdown", "csv", "html"), default="text",
                        help="default: text; html is one page, sorted by clicks, with each run's command")
    parser.add_argument("--scale", nargs="+", choices=SCALES, default=["small", "paper"],
                        help="records of these scales (default: small paper)")
    parser.add_argument("--all", action="store_true", dest="everything",
                        help="also metrics that only chose settings or runs, and rows without a run")
    parser.add_argument("--seeds", action="store_true", help="show the value of every seed")
    parser.add_argument("--records", metavar="DIR", type=Path,
                        help="where records are (default: records/ of the paper)")


def run(args: argparse.Namespace) -> None:
    from seqstruct.harness.paper import paper_folder
    from seqstruct.harness.report import report

    folder = paper_folder(args.paper)
    records = args.records or folder / "records"
    if args.records and not records.is_dir():
        raise ValueError(f"{records}: expected a folder of records, found none")
    print(report(folder, records, table=args.table, scales=args.scale, everything=args.everything,
                 seeds=args.seeds, output=args.format), end="")
