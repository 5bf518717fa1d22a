"""A few minutes on two cores: a plain Transformer and two with stack attention learn balanced brackets (`make demo`).

Each is trained by fairseq with the plugin on strings of Dyck-2, as recipes/stack_attention/demo.sh says, and compared
with the true distribution of the strings.  The last lines say where the drawings are.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from seqstruct.bridge.quiet import quiet
from seqstruct.command import GOES_ON, answer, module_parser
from seqstruct.harness.cells import run_plans
from seqstruct.harness.paper import paper_folder, read_tables
from seqstruct.harness.records import Record, read_folder
from seqstruct.harness.script import Plan, Script
from seqstruct.ops.compiled import switched_on

SCRIPT = Path(__file__).resolve().parents[2] / "recipes" / "stack_attention" / "demo.sh"
SHOWN = tuple(f"dyck {model}" for model in ("Tf", "Tf+Sup", "Tf+Nd"))
EPOCHS = 8
METRIC = "test_cross_entropy_difference"
STRING = "[ ( ( ) [ ] ) ] ( [ ( ) ] )"
CHOICES = """\
Language: Dyck-2, balanced strings of two kinds of brackets, sampled exactly given their length.
Chosen so that a few minutes show the difference, with the published setting in brackets:
  5,000 training strings [10,000] of length 5 to 20 [40 to 80];
  8 epochs [at most 200, stopped early];
  learning rate 0.004, warmed up, then falling to 0 [drawn for each run, times 0.9 on a plateau];
  one run of each model [the best of 10].
Models, batches of 10 and optimizer are the published ones."""


def table(found: Mapping[str, Record]) -> Table:
    """What the three models reached, with the paper's words beside it."""
    tables = read_tables(paper_folder("stack_attention"))
    said = {p.row: p.statement for t in tables if t.name == "figure-2" for p in t.published}
    grid = Table(title="Cross-entropy above the true distribution, new strings, nats per symbol (0 is optimal)")
    for heading in ("model", "difference", "parameters", "seconds an epoch", "the paper, at lengths 40 to 100"):
        grid.add_column(heading, justify="left" if heading.startswith(("model", "the")) else "right")
    for row in SHOWN:
        record = found[row]
        grid.add_row(row.split()[1], f"{record.value(METRIC):.4f}", f"{record.parameters:,}",
                     f"{record.seconds / EPOCHS:.1f}", said[row])
    return grid


def with_choice_of_length(record: Record) -> Record:
    """The record with its points measured, as its value is, against the whole distribution, the length's draw included.

    Lengths are uniform over the valid ones, each of which is a point; a record gives the length for free, as the paper
    does, which at a few symbols hides everything else.
    """
    points = record.points(METRIC)
    moved = [[length, value - math.log(len(points)) / (length + 1)] for length, value in points]
    return replace(record, metrics={METRIC: {**record.metrics[METRIC], "points": moved}})


def draw(found: Mapping[str, Record], plans: Sequence[Plan], out: Path) -> list[Path]:
    """Difference by string length, stack actions of one string, learning curves; the files' paths."""
    from seqstruct.plots.attention import attention
    from seqstruct.plots.curves import learning_curves, length_curves
    from seqstruct.plots.figures import save
    from seqstruct.plots.views import layer_views

    folders = {row.split()[1]: plan.out for row in SHOWN for plan in plans if plan.cell.row == row}
    drawings = {
        "difference_by_length.png": length_curves(
            [with_choice_of_length(found[row]) for row in SHOWN],
            "Dyck-2, new strings: cross-entropy above the true distribution\n"
            "(below 0 where a model expects a length more often than it comes)",
        ),
        "learning_curves.png": learning_curves(
            {model: folder / "train.log" for model, folder in folders.items()}, "difference"
        ),
    }
    views = []
    for model in ("Tf+Sup", "Tf+Nd"):
        found = layer_views(folders[model] / "checkpoints" / "checkpoint_best.pt", STRING)
        views += [view._replace(title=f"{model}, {view.title}") for view in found if view.actions is not None]
    drawings["stack_actions.png"] = attention(views, "What each stack does with one string")
    paths = [out / name for name in drawings]
    for path, figure in zip(paths, drawings.values(), strict=True):
        save(figure, path)
    return paths


def verdict(found: Mapping[str, Record]) -> str:
    """Which stack models are ahead of the plain Transformer, and by how much."""
    plain, *stacks = ((row.split()[1], found[row].value(METRIC)) for row in SHOWN)
    return "\n".join(
        f"{model} is {plain[1] - value:.4f} nats per symbol ahead of the plain Transformer." if value < plain[1]
        else f"{model} is {value - plain[1]:.4f} nats per symbol behind the plain Transformer, in this run."
        for model, value in stacks
    )


def main() -> int:
    parser = module_parser("seqstruct.plots.demo", __doc__)
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of data and models (default: 1)")
    parser.add_argument("--runs", type=Path, default=Path("runs"), metavar="DIR", help="default: runs")
    parser.add_argument("--jobs", type=int, default=2, choices=(1, 2, 3), help="models trained at a time (default: 2)")
    args = parser.parse_args()
    out, start = args.runs / "demo", time.monotonic()
    kind = "seqstruct's, compiled." if switched_on() else "PyTorch's, slower; `seqstruct doctor` says what is missing."
    print(f"{CHOICES}\n\nOperators: {kind}\n", flush=True)

    def work() -> None:
        script = Script(SCRIPT)
        cells = script.cells("small", seeds=[args.seed])
        plans = [script.plan(cell, runs=args.runs, records=out / "records") for cell in cells]
        run_plans(plans, jobs=args.jobs)
        mine = {plan.configuration for plan in plans}
        read = read_folder(out / "records")
        found = {r.row: r for r in read if r.configuration_hash in mine and r.seed == args.seed}
        lost = next((plan for plan in plans if plan.cell.row not in found), None)
        if lost is not None:  # run by the recipe itself, say, whose records are elsewhere
            raise ValueError(f"{lost.cell}: finished before, but {lost.records} has no record of it; without "
                             f"{lost.out} it is run again")
        Console().print(table(found))
        print(verdict(found))
        with quiet(), quiet("seqstruct", level=logging.ERROR):  # what models say when built stands in their logs
            drawn = draw(found, plans, out)
        print("Drawings: " + ", ".join(map(str, drawn)))
        print(f"{(time.monotonic() - start) / 60:.1f} minutes.")

    return answer("demo", work, GOES_ON)


if __name__ == "__main__":
    raise SystemExit(main())
