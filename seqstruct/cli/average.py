"""`seqstruct average CHECKPOINT ... --out FILE`: one checkpoint with the mean of the parameters of several of one run.

fairseq-generate and the others take it with --path.  What is no parameter is the last one's.
"""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoints", metavar="CHECKPOINT", nargs="+", help=".pt files; with --last, a run's folder")
    parser.add_argument("--out", required=True, metavar="FILE", help="the checkpoint to write")
    parser.add_argument("--last", type=int, metavar="N",
                        help="average the last N checkpoints of a folder: of epochs, or, without any, of updates")
    parser.add_argument("--running", action="store_true",
                        help="take the running averages that training with --store-ema keeps in each checkpoint")


def run(args: argparse.Namespace) -> None:
    from seqstruct.bridge.averaging import average_checkpoints, last_checkpoints

    paths = [Path(path) for path in args.checkpoints]
    if args.last is not None:
        if len(paths) != 1:
            raise ValueError(f"--last takes one folder, got {len(paths)} paths")
        paths = last_checkpoints(paths[0], args.last)
    average_checkpoints(paths, args.out, running=args.running)
    print(f"{args.out}: the mean of {', '.join(path.name for path in paths)}")
