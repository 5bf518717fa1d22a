"""What is owed at the published sizes: for each table the cells without a record, and what their recipe says they take.

    python -m seqstruct.harness.estimates > estimates.md
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from seqstruct.command import markdown_table, module_parser, run_module
from seqstruct.harness.records import read_folder
from seqstruct.harness.script import Script, scripts

RECIPES = Path("recipes")
HEADINGS = ("recipe", "table", "cells", "hours", "disk (GiB)")
LEAST = 1.0  # hours, below which a table needs no plan


def owed(script: Script) -> Iterator[tuple[str, str, int, float, float]]:
    """For each table of a recipe: its name, the table's, cells of scale paper without a record, their hours and GiB.

    Hours are of one GPU (of one thread where that is all that the recipe asks for), as it says them of a row's first
    seed.  Nothing comes of a recipe that has no scale paper.
    """
    recorded = {(r.table, r.row, r.seed) for r in read_folder(script.path.parent / "records") if r.scale == "paper"}
    cells, left = script.cells("paper"), defaultdict(list)
    try:
        said = {cell.row: script.estimate(cell) for cell in cells if cell.seed == 1}
    except ValueError as error:
        if "its scales are smoke and small" not in str(error):
            raise
        return
    for cell in cells:
        table, minutes, disk = said[cell.row]
        if (table, cell.row, cell.seed) not in recorded:
            left[table].append((minutes / 60, disk / 1024))
    for table, of_table in left.items():
        hours, disk = map(sum, zip(*of_table, strict=True))
        yield f"`{script.path.parent.name}/{script.path.name}`", table, len(of_table), hours, disk


def report(recipes: Path) -> str:
    """All that is owed by tables of an hour or more, in Markdown, with its sum.  Raises ValueError without recipes."""
    lines = [line for script in scripts(recipes) for line in owed(script) if line[3] >= LEAST]
    if not lines:
        raise ValueError(f"{recipes}: expected a folder of recipes that owe an hour or more, found none")
    lines.append(("all", "", *(sum(column) for column in list(zip(*lines, strict=True))[2:])))
    shown = [(name, table, f"{cells:,}", f"{hours:,.0f}", f"{disk:,.1f}") for name, table, cells, hours, disk in lines]
    return markdown_table(HEADINGS, shown)


def main(argv: Sequence[str] | None = None) -> int:
    parser = module_parser("seqstruct.harness.estimates", __doc__)
    parser.add_argument("recipes", type=Path, nargs="?", default=RECIPES, help="the folder (default: recipes)")
    return run_module(parser, argv, lambda args: print(report(args.recipes)))


if __name__ == "__main__":
    raise SystemExit(main())
