"""What published trainings take by the trials at their sizes: hours of the GPU that these were on.

    python -m seqstruct.harness.trials > trials.md

A training has a line where its configs say how many updates it has, and `published_sizes/trial.sh` has a record of it
at scale paper.  Hours are updates times the seconds of one, so without validation, and beside them what its own recipe
says of the whole cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seqstruct.command import markdown_table, module_parser, run_module
from seqstruct.harness.configs import read_config, said_last
from seqstruct.harness.records import Record, read_folder
from seqstruct.harness.script import Cell, Script

RECIPES = Path("recipes")
HEADINGS = ("training", "GPU", "GiB", "seconds of an update", "updates", "hours", "hours its recipe says")


def updates(script: Script, row: str) -> int:
    """How many the configs of a row's training at scale paper allow, 0 where they leave that to epochs."""
    steps = script.plan(Cell(row, 1, "paper")).steps
    trainings = [step for step in steps if "fairseq-hydra-train" in step.words]
    own = [step for step in trainings if step.kind == "train"] or trainings
    return said_last(read_config(script.root, own[-1].words), "optimization", "max_update") or 0


def line(record: Record, recipes: Path) -> tuple[str, ...] | None:
    """Of one trial, or None where the configs name no number of updates."""
    name, _, row = record.row.partition(", ")
    script = Script(recipes / f"{name}.sh")
    if not (count := updates(script, row)):
        return None
    speed = record.metrics["training_tokens_per_second"]["value"]
    seconds, stated = record.metrics["tokens_per_update"]["value"] / speed, script.estimate(Cell(row, 1, "paper"))[1]
    return (
        record.row, record.machine["gpu"].removeprefix("NVIDIA "), f"{record.metrics['gpu_memory']['value']:.1f}",
        f"{seconds:.3f}", f"{count:,}", f"{count * seconds / 3600:.1f}", f"{stated / 60:.0f}",
    )


def report(recipes: Path) -> str:
    """All lines, in Markdown.  Raises ValueError where there is no such record."""
    found = read_folder(recipes / "published_sizes" / "records")
    records = {r.row: r for r in found if r.scale == "paper"}  # the last of those that were made again
    lines = [said for record in records.values() if (said := line(record, recipes)) is not None]
    if not lines:
        raise ValueError(f"{recipes}: expected records of published_sizes at scale paper, found none")
    return markdown_table(HEADINGS, lines)


def main(argv: Sequence[str] | None = None) -> int:
    parser = module_parser("seqstruct.harness.trials", __doc__)
    parser.add_argument("recipes", type=Path, nargs="?", default=RECIPES, help="the folder (default: recipes)")
    return run_module(parser, argv, lambda args: print(report(args.recipes)))


if __name__ == "__main__":
    raise SystemExit(main())
