"""One task of bAbI v1.2 (Weston et al. 2015), English, 1,000 questions to train and 1,000 to test.

Whole stories with a tenth of the training questions are held out for validation.
"""

from __future__ import annotations

import argparse
from tempfile import TemporaryDirectory

from seqstruct.data.babi.stories import TASKS
from seqstruct.data.downloads import Remote, collect, raw_folder

ARCHIVE = Remote("https://dl.fbaipublicfiles.com/babi/tasks_1-20_v1-2.tar.gz", name="babi.tar.gz")
MANUAL = "the archive is tasks_1-20_v1-2.tar.gz; name its folder, or that of its files, by --from"


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument("--task", type=int, required=True, metavar="N", help="1 to 20")
    parser.add_argument("--split-seed", type=int, default=1, metavar="N", help="draws validation stories (default: 1)")


def run(args: argparse.Namespace) -> None:
    from seqstruct.data.babi.folder import write_folder

    if args.task not in TASKS:
        raise ValueError(f"expected a task from 1 to {len(TASKS)}, got {args.task}")
    raw = raw_folder(args, [ARCHIVE], MANUAL)
    names = [f"qa{args.task}_{TASKS[args.task]}_{split}.txt" for split in ("train", "test")]
    with TemporaryDirectory() as scratch:
        if not all((raw / name).is_file() for name in names):
            # the archive has four versions of each file, "en" being the English one of 1,000 questions
            raw = collect(raw, {name: [f"en/{name}"] for name in names}, scratch, MANUAL)[names[0]].parent
        counts = write_folder(raw, args.task, args.out, split_seed=args.split_seed, checked=not args.unchecked)
    print(f"task {args.task}: " + ", ".join(f"{count} {split} questions" for split, count in counts.items()))
