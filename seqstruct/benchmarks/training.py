"""What updates of a training cost: examples a second, minutes an epoch, memory (Table 6 of DuSell and Chiang 2024).

    python -m seqstruct.benchmarks.training --updates N --epoch EXAMPLES --out FILE -- OPTIONS OF fairseq-hydra-train

The training runs with one learning rate, without validation, and saves nothing; train.log beside FILE is what it says.
The first 25 updates, which warm up, do not count.  Memory is the GPU's where one is used, from what fairseq logs to be
left of it, else the greatest that the process had resident.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from seqstruct.bridge.logs import gpu_memory, parse_lines
from seqstruct.command import module_parser, run_module
from seqstruct.harness.process import run_command
from seqstruct.scoring.measurement import Measurement, write

EVERY = 25  # updates to a line of the log
LIMITS = (
    "optimization.lr=[0.0001]", "checkpoint.no_save=true", "dataset.disable_validation=true",
    f"common.log_interval={EVERY}",
)


def cost(lines: Sequence[str], epoch: int, peak_memory: int) -> list[Measurement]:
    """From the log of a training.  epoch: examples that it has.  peak_memory: bytes that the process had resident.

    Raises ValueError if the log has fewer than two lines of statistics, or its updates are too slow for it.
    """
    inner = [entry.statistics for entry in parse_lines(lines) if entry.tag == "train_inner"][1:]
    if not inner:
        raise ValueError(f"expected statistics of {2 * EVERY} updates or more")
    if not all(found["ups"] for found in inner):  # fairseq rounds them to 0.01
        raise ValueError("expected updates of less than 200 seconds, got some that the log rounds to 0 a second")
    speed = sum(found["bsz"] for found in inner) / sum(1 / found["ups"] for found in inner)
    return [
        Measurement("examples_per_second", speed, "1/s"),
        Measurement("minutes_per_epoch", epoch / speed / 60, "min"),
        Measurement("resident_memory", peak_memory / 1e6, "MB")
        if (used := gpu_memory(lines)) is None
        else Measurement("gpu_memory", used * 2**30 / 1e6, "MB"),
    ]


def _run(args: argparse.Namespace) -> None:
    log = args.out.parent / "train.log"
    limits = [*LIMITS, f"optimization.max_update={args.updates}", f"checkpoint.save_dir={args.out.parent}"]
    limits += ["common.cpu=true", "dataset.num_workers=0"] if args.cpu else []
    log.unlink(missing_ok=True)
    usage = run_command([sys.executable, "-m", "fairseq_cli.hydra_train", *args.options, *limits], log)
    write(args.out, cost(log.read_text(encoding="utf-8").splitlines(), args.epoch, usage.peak_memory))


def main(argv: Sequence[str] | None = None) -> int:
    parser = module_parser("seqstruct.benchmarks.training", __doc__)
    parser.add_argument("--updates", type=int, required=True, metavar="N", help=f"{2 * EVERY} or more")
    parser.add_argument("--epoch", type=int, required=True, metavar="EXAMPLES", help="training examples of an epoch")
    parser.add_argument("--cpu", action="store_true", help="train on the CPU, and load data in the same process")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    parser.add_argument("options", nargs="+", metavar="OPTION", help="--config-dir DIR --config-name NAME ...")
    return run_module(parser, argv, _run)


if __name__ == "__main__":
    raise SystemExit(main())
