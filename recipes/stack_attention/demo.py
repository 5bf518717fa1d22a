"""A few minutes on two cores: a plain Transformer and two with stack attention learn balanced brackets.

Each is trained by `fairseq-train --user-dir seqstruct` on strings of Dyck-2 and compared with the true distribution of
the strings.  The last lines say where the drawings are.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cfl import ContextFreeLanguages, Setting
from rich.console import Console
from rich.table import Table

from seqstruct.harness.command import interrupt_on_sigterm, run_cells
from seqstruct.harness.paper import read_tables
from seqstruct.harness.progress import Progress
from seqstruct.harness.recipe import Cell, Estimate
from seqstruct.harness.records import Record, read_folder
from seqstruct.harness.run import Run

LANGUAGE = "dyck"
SETTING = Setting(5000, 500, 100, (5, 20), (5, 20), 8, (0.004, 0.004))
SHOWN = tuple(f"{LANGUAGE} {model}" for model in ("Tf", "Tf+Sup", "Tf+Nd"))
METRIC = "test_cross_entropy_difference"
STRING = "[ ( ( ) [ ] ) ] ( [ ( ) ] )"
CHOICES = f"""\
Language: Dyck-2, balanced strings of two kinds of brackets, sampled exactly given their length.
Chosen so that a few minutes show the difference, with the published setting in brackets:
  {SETTING.train:,} training strings [10,000] of length {SETTING.lengths[0]} to {SETTING.lengths[1]} [40 to 80];
  {SETTING.epochs} epochs [at most 200, stopped early];
  learning rate {SETTING.learning_rate[0]}, warmed up, then falling to 0 [drawn for each run, times 0.9 on a plateau];
  one run of each model [the best of 10].
Models, batches of 10 and optimizer are the published ones."""


class Demo(ContextFreeLanguages):
    """Three cells of the context-free language recipe, with shorter strings and a falling learning rate."""

    table = "demo"
    rows = (SHOWN[0], SHOWN[2], SHOWN[1])  # the longest of the stacks does not start last

    def setting(self, cell: Cell) -> Setting:
        return SETTING

    def schedule(self, cell: Cell) -> Sequence[str]:
        updates = SETTING.epochs * SETTING.train // 10
        return ("--lr-scheduler", "polynomial_decay", "--warmup-updates", "200", "--total-num-update", str(updates))

    def estimate(self, cell: Cell) -> Estimate:
        return Estimate(minutes=2.0, disk=5.0)


def table(cells: Sequence[Cell], records: Sequence[Record]) -> Table:
    """What the three models reached, with the paper's words beside it."""
    folder = Path(__file__).resolve().parent
    said = {p.row: p.statement for t in read_tables(folder) if t.name == "figure-2" for p in t.published}
    found = {r.row: r for r in records if METRIC in r.metrics}
    grid = Table(title="Cross-entropy above the true distribution, new strings, nats per symbol (0 is optimal)")
    for heading in ("model", "difference", "parameters", "seconds an epoch", "the paper, at lengths 40 to 100"):
        grid.add_column(heading, justify="left" if heading.startswith(("model", "the")) else "right")
    for cell in cells:
        record = found[cell.row]
        grid.add_row(
            cell.row.split()[1], f"{record.value(METRIC):.4f}", f"{record.parameters:,}",
            f"{record.seconds / SETTING.epochs:.1f}", said[cell.row],
        )  # fmt: skip
    return grid


def with_choice_of_length(record: Record) -> Record:
    """The record with its points measured, as its value is, against the whole distribution, the length's draw included.

    Lengths are uniform over the valid ones, each of which is a point; a record gives the length for free, as the paper
    does, which at a few symbols hides everything else.
    """
    points = record.points(METRIC)
    moved = [[length, value - math.log(len(points)) / (length + 1)] for length, value in points]
    return replace(record, metrics={METRIC: {**record.metrics[METRIC], "points": moved}})


def draw(
    demo: Demo, cells: Sequence[Cell], records: Sequence[Record], runs: Path, progress: Progress
) -> list[Path]:
    """Difference by string length, stack actions of one string, learning curves; the files' paths."""
    from seqstruct.harness import plot

    folders = {cell.row.split()[1]: Run(demo, cell, runs, progress=progress).folder for cell in cells}
    drawings = {
        "difference_by_length.png": plot.length_curves(
            [with_choice_of_length(r) for r in records if METRIC in r.metrics],
            "Dyck-2, new strings: cross-entropy above the true distribution\n"
            "(below 0 where a model expects a length more often than it comes)",
        ),
        "learning_curves.png": plot.learning_curves(
            {model: folder / "train.log" for model, folder in folders.items()}, "difference"
        ),
    }
    views = []
    for model in ("Tf+Sup", "Tf+Nd"):
        found = plot.layer_views(folders[model] / "checkpoints" / "checkpoint_best.pt", STRING)
        views += [view._replace(title=f"{model}, {view.title}") for view in found if view.actions is not None]
    drawings["stack_actions.png"] = plot.attention(views, "What each stack does with one string")
    paths = [runs / "demo" / name for name in drawings]
    for path, figure in zip(paths, drawings.values(), strict=True):
        plot.save(figure, path)
    return paths


def verdict(cells: Sequence[Cell], records: Sequence[Record]) -> str:
    """Which stack models are ahead of the plain Transformer, and by how much."""
    found = {r.row: r.metrics[METRIC]["value"] for r in records if METRIC in r.metrics}
    plain, *stacks = ((cell.row.split()[1], found[cell.row]) for cell in cells)
    return "\n".join(
        f"{model} is {plain[1] - value:.4f} nats per symbol ahead of the plain Transformer." if value < plain[1]
        else f"{model} is {value - plain[1]:.4f} nats per symbol behind the plain Transformer, in this run."
        for model, value in stacks
    )


def main() -> int:
    """Run the demo; an error is one sentence on standard error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of data and models (default: 1)")
    parser.add_argument("--runs", type=Path, default=Path("runs"), metavar="DIR", help="default: runs")
    parser.add_argument("--jobs", type=int, default=2, choices=(1, 2, 3), help="models trained at a time (default: 2)")
    args = parser.parse_args()
    interrupt_on_sigterm()
    demo, folder, start = Demo(), args.runs / "demo" / "records", time.monotonic()
    cells = demo.cells("small", [args.seed])
    print(f"{CHOICES}\n", flush=True)
    try:
        run_cells(demo, cells, runs=str(args.runs), records=str(folder), jobs=args.jobs)
        with Progress() as progress:
            hashes = {Run(demo, cell, args.runs, progress=progress).configuration_hash for cell in cells}
            records = [r for r in read_folder(folder) if r.configuration_hash in hashes and r.seed == args.seed]
            shown = [Cell(row, args.seed, "small") for row in SHOWN]
            Console().print(table(shown, records))
            print(verdict(shown, records))
            paths = draw(demo, shown, records, args.runs, progress)
    except (ValueError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo: interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    print("Drawings: " + ", ".join(str(path) for path in paths))
    print(f"{(time.monotonic() - start) / 60:.1f} minutes.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
