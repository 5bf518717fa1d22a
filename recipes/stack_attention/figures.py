"""Figures of Stack Attention, drawn from what cfl.py has trained and recorded.

Figure 2: cross-entropy difference by string length, a panel for each language, a curve for each model, the run that is
best by validation.  Figures 3 and 4: the actions of the stack in the third layer of Tf+Sup on a string of marked
reversal and on one of Dyck; beside them the expected actions of Tf+Nd, and the most probable run of its stack.
Cells of Figures 3 and 4 that are not trained yet in the folder of runs are trained first; the smoke scale takes
seconds, and its drawings show nothing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from cfl import ContextFreeLanguages

from seqstruct.harness import plot
from seqstruct.harness.command import interrupt_on_sigterm, records_folder, run_cells
from seqstruct.harness.paper import read_tables
from seqstruct.harness.progress import Progress
from seqstruct.harness.recipe import Cell
from seqstruct.harness.records import SCALES, read_records
from seqstruct.harness.run import Run

STRINGS = {
    "marked-reversal": "0 1 1 0 1 0 0 1 1 1 # 1 1 1 0 0 1 0 1 1 0",
    "dyck": "[ ( ( ) [ ] ) ] ( [ ( ) ] ) [ ( [ ] ) ]",
}
MODELS = ("Tf+Sup", "Tf+Nd")
FIGURE = {"marked-reversal": 3, "dyck": 4}
TEST, VALIDATION = "test_cross_entropy_difference", "validation_cross_entropy_difference"


def figure_2(records: Path, scale: str, out: Path) -> Path | None:
    """Draw the records of a scale; None where there are none."""
    folder = Path(__file__).resolve().parent
    order = [p.row for t in read_tables(folder) if t.name == "figure-2" for p in t.published]
    found = [r for r in read_records(records / "figure-2.jsonl") if r.scale == scale and r.row in order]
    if not found:
        return None
    found.sort(key=lambda r: order.index(r.row))
    plot.save(plot.length_panels(found, f"Figure 2, scale {scale}", VALIDATION, TEST), out / "figure-2.png")
    return out / "figure-2.png"


def figures_3_and_4(recipe: ContextFreeLanguages, scale: str, seed: int, runs: str, out: Path) -> list[Path]:
    """Actions and runs of the trained cells."""
    paths = []
    with Progress() as progress:
        for language, text in STRINGS.items():
            views = []
            for model in MODELS:
                run = Run(recipe, Cell(f"{language} {model}", seed, scale), runs, progress=progress)
                found = plot.layer_views(run.folder / "checkpoints" / "checkpoint_best.pt", text)
                views += [v._replace(title=f"{model}, {v.title}") for v in found if v.actions is not None]
            title = f"Figure {FIGURE[language]}: {language}, scale {scale}"
            drawings = {
                f"figure-{FIGURE[language]}.png": plot.attention(views, title),
                f"run-{language}.png": plot.stack_runs(views, f"Most probable run: {language}, scale {scale}"),
            }
            for name, figure in drawings.items():
                plot.save(figure, out / name)
                paths.append(out / name)
    return paths


def main() -> int:
    """Train what is missing and draw; an error is one sentence on standard error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", choices=SCALES, default="small", help="of the cells (default: small)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of Figures 3 and 4 (default: 1)")
    parser.add_argument("--runs", default="runs", metavar="DIR", help="where runs are kept (default: runs)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: stack_attention/figures among the runs")
    args = parser.parse_args()
    interrupt_on_sigterm()
    recipe = ContextFreeLanguages()
    out = args.out or Path(args.runs) / recipe.paper / "figures"
    records = records_folder(recipe, args.scale, args.runs, None)
    cells = [Cell(f"{language} {model}", args.seed, args.scale) for language in STRINGS for model in MODELS]
    try:
        run_cells(recipe, cells, runs=args.runs, records=str(records))
        paths = [path for path in [figure_2(records, args.scale, out)] if path is not None]
        paths += figures_3_and_4(recipe, args.scale, args.seed, args.runs, out)
    except (ValueError, OSError) as error:
        print(f"figures: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("figures: interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    print("Drawings: " + ", ".join(str(path) for path in paths))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
