"""`seqstruct record CELL METRIC[UNIT]=FILE:KEY ... FILE.json ...`: append a finished cell's numbers to the records.

FILE is in CELL, the cell's folder: a log of fairseq (KEY its last value there, KEY@best that of the checkpoint which
validation chose, "parameters" the model's), or a list of measurements that a command of seqstruct wrote.
"""

from __future__ import annotations

import argparse

from seqstruct.harness.records import SCALES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cell", metavar="CELL", help="the folder of the cell")
    parser.add_argument("requests", metavar="METRIC[UNIT]=FILE:KEY", nargs="+", help="what is recorded")
    parser.add_argument("--require", action="append", default=[], metavar="FILE:KEY<NUMBER",
                        help="record nothing, and fail, unless this holds of a statistic")
    parser.add_argument("--paper", required=True, help="one of the papers")
    parser.add_argument("--table", required=True, help="as paper.json names it")
    parser.add_argument("--row", required=True, help="as paper.json names it")
    parser.add_argument("--seed", required=True, type=int)
    parser.add_argument("--scale", required=True, choices=SCALES)
    parser.add_argument("--dataset", required=True, help="one line: which data, and what departs from the published")
    parser.add_argument("--data", metavar="FOLDER", help="the prepared data, whose files are checksummed")
    parser.add_argument("--configuration", required=True, metavar="HASH", help="of all settings, the seed apart")
    parser.add_argument("--command", required=True, dest="command_line", help="the recipe's command for the cell")
    parser.add_argument("--records", required=True, metavar="FOLDER", help="where TABLE.jsonl is, or will be")


def run(args: argparse.Namespace) -> None:
    """Append the records, print the numbers, and leave them in CELL/measurements.json."""
    from pathlib import Path

    from seqstruct.data.files import read_json
    from seqstruct.harness.cells import STEPS
    from seqstruct.harness.measurements import read, require
    from seqstruct.harness.recording import make_records
    from seqstruct.harness.records import append_records, format_value
    from seqstruct.scoring.measurement import write

    cell = Path(args.cell)
    require(cell, args.require)
    found = read(cell, args.requests)
    steps = read_json(cell / STEPS).values() if (cell / STEPS).exists() else []
    append_records(args.records, make_records(
        found, paper=args.paper, table=args.table, row=args.row, seed=args.seed, scale=args.scale,
        dataset=args.dataset, configuration=args.configuration, command=args.command_line,
        data=None if args.data is None else Path(args.data), cell=cell, steps=list(steps),
    ))
    write(cell / "measurements.json", found)
    for m in found:
        print(f"{m.metric}\t{format_value(m.value)}\t{m.unit}")
