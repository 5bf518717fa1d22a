"""`seqstruct which`: the mechanisms that do best on tasks like yours, from the records of the chart of abilities.

    seqstruct which --task recall,nesting --cost linear

Tasks are recall, copying and induction (together memory), parity, counting, s3 and a5 (tracking), dyck, undo and
listops (nesting).  A score of 100 is no error, 0 what the best simple rule of the data reaches: the mean over the tasks
of how far a mechanism goes from the one to the other.  Accuracies are percent of what is asked for, mean and deviation
of the seeds: at the lengths of training, then beyond them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

GROWTHS = ("constant", "linear", "quadratic", "cubic")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--task", default="memory,tracking,nesting", metavar="NAME,...",
                        help="tasks or kinds of tasks (default: all)")
    parser.add_argument("--cost", choices=GROWTHS[1:], default="cubic",
                        help="how training may grow with the length of a text, at most (default: cubic)")
    parser.add_argument("--memory", choices=GROWTHS[:3], default="quadratic",
                        help="how what decoding keeps may grow with the text, at most (default: quadratic)")
    parser.add_argument("--beyond", action="store_true", help="score what stands beyond the lengths of training")
    parser.add_argument("--top", type=int, default=5, metavar="N", help="mechanisms to name, 0 for all (default: 5)")
    parser.add_argument("--format", choices=("text", "markdown"), default="text")
    parser.add_argument("--records", metavar="DIR", type=Path, help="default: those of recipes/abilities")


def run(args: argparse.Namespace) -> None:
    """Print the mechanisms, the simple rule beside them, and what has not been run."""
    from seqstruct.command import markdown_table, text_table
    from seqstruct.harness.abilities import TASKS, answer_of, read_chart, tasks_named

    if args.top < 0:
        raise ValueError(f"--top: expected 0 or more, got {args.top}")
    tasks = tasks_named([name.strip() for name in args.task.split(",")])
    answer = answer_of(read_chart(args.records), tasks, cost=args.cost, memory=args.memory, beyond=args.beyond,
                       top=args.top or None)
    header = ["mechanism", "score", *sorted(tasks, key=TASKS.index), "training", "memory"]
    print((markdown_table if args.format == "markdown" else text_table)(header, answer.lines))
    for sentence in answer.sentences:
        print(f"\n{sentence}")
