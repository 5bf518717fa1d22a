"""`seqstruct cell RECIPE.sh ...`: the cells of a recipe: list them, print their commands, or run them.

Recipes call it for whoever runs them: `recipes/peng_thesis/table-4.3.sh --help`.
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from seqstruct.command import GOES_ON, answer
from seqstruct.data.arguments import whole
from seqstruct.harness.records import SCALES

if TYPE_CHECKING:
    from seqstruct.harness.script import Plan, Script


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The recipe's own options are parsed by `run`."""
    parser.add_argument("recipe", metavar="RECIPE.sh")
    parser.add_argument("options", nargs=argparse.REMAINDER)


def run(args: argparse.Namespace) -> int:
    from seqstruct.harness.cells import run_plans, state
    from seqstruct.harness.script import Script

    script = Script(Path(args.recipe))
    chosen = options_parser(args.recipe, script.doc).parse_args(args.options)

    def work() -> None:
        cells = script.cells(chosen.scale, chosen.row, chosen.seeds)
        if chosen.launcher_option and chosen.launcher == "local":
            raise ValueError("--launcher-option: expected --launcher slurm with it")
        plans = [
            script.plan(cell, runs=chosen.runs, source=chosen.source, records=chosen.records,
                        max_minutes=chosen.max_minutes)
            for cell in cells
        ]
        if chosen.table and chosen.scale != "smoke":
            plans = [plan for plan in plans if _is_of(plan, chosen.table)]
            if not plans:
                scales = _scales_of(script, chosen.table, chosen.row)
                raise ValueError(f"table {chosen.table} has none of these rows at scale {chosen.scale}; "
                                 + (f"--scale {' or '.join(scales)} has some" if scales else "no other scale has any"))
        if chosen.list:
            for plan in plans:
                print(f"{plan.table}  {plan.cell}  {plan.cell.scale}  {state(plan)}  {plan.out}")
        elif chosen.estimate:
            _print_estimate(plans, script.licence)
        elif chosen.show:
            print("\n".join(plan.text() for plan in plans), end="")
        elif chosen.launcher == "slurm":
            from seqstruct.harness.submit import submit

            submit(plans, chosen.launcher_option, Path(chosen.runs).resolve() / "launcher")
        else:
            run_plans(plans, jobs=chosen.jobs)

    return answer(Path(args.recipe).name, work, GOES_ON)


def _is_of(plan: Plan, table: str) -> bool:
    return bool({table, f"{table}-stand-in"} & plan.tables)


def _scales_of(script: Script, table: str, rows: list[str] | None) -> list[str]:
    """The scales at which a table has some of the rows (all if None): the smoke scale, which has all tables', apart."""
    found = []
    for scale in SCALES[1:]:
        with suppress(ValueError):  # of a pattern that no row of this scale matches
            if any(_is_of(script.plan(cell), table) for cell in script.cells(scale, rows, [1])):
                found.append(scale)
    return found


def _print_estimate(plans: list, licence: str) -> None:
    from rich.console import Console
    from rich.table import Table

    from seqstruct.harness.cells import state

    table = Table(title=licence, title_justify="left", caption_justify="left")
    for column in ("row", "seed", "minutes", "disk, MiB", "state"):
        table.add_column(column, justify="left" if column in ("row", "state") else "right")
    left = [plan for plan in plans if state(plan) != "finished"]
    for plan in plans:
        table.add_row(plan.cell.row, str(plan.cell.seed), f"{plan.minutes:g}", f"{plan.disk:g}", state(plan))
    table.caption = (
        f"left: {sum(p.minutes for p in left) / 60:.1f} hours of one thread (at scale paper, of one GPU), "
        f"{sum(p.disk for p in left):.0f} MiB on disk, {max((p.download for p in left), default=0):.0f} MiB downloaded"
    )
    Console(soft_wrap=True).print(table)


def options_parser(recipe: str, doc: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=Path(recipe).name, description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", choices=SCALES, default="small", help="smoke: seconds; small: "
                        "a laptop, at most 30 minutes a cell on one thread unless said above; paper: as published "
                        "(default: small)")
    parser.add_argument("--row", "--rows", nargs="+", action="extend", metavar="GLOB",
                        help="only rows that match, as in a shell (* and ?)")
    parser.add_argument("--table", metavar="NAME", help="only rows of this table or its stand-in, where a recipe has "
                        "those of several (at the smoke scale, which proves the commands alone, all)")
    parser.add_argument("--seeds", "--seed", type=whole(1), nargs="+", metavar="N", help="these seeds, from 1 on")
    parser.add_argument("--list", action="store_true", help="list the cells and how far they are; run nothing")
    parser.add_argument("--estimate", action="store_true",
                        help="say what the cells take in time, disk and downloads, and the licence; run nothing")
    parser.add_argument("--print", action="store_true", dest="show",
                        help="print the commands of each cell, to be pasted into a shell; run nothing")
    parser.add_argument("--runs", default="runs", metavar="DIR", help="where runs and data are kept (default: runs)")
    parser.add_argument("--records", metavar="DIR", help="where records go (default: records/ beside the recipe; at "
                        "the smoke scale, records/ among the paper's runs)")
    parser.add_argument("--from", dest="source", metavar="DIR", help="take raw data from this folder; download nothing "
                        "(default: the corpus among data/ of SEQSTRUCT_REFERENCE, where that is set; at the smoke "
                        "scale all are made up)")
    parser.add_argument("--max-minutes", type=minutes, metavar="M", help="wall-clock limit of each training")
    parser.add_argument("--jobs", type=whole(1, 256), default=1, metavar="N",
                        help="cells run at a time on this machine (default: 1)")
    parser.add_argument("--launcher", choices=("local", "slurm"), default="local",
                        help="slurm: one job for each cell, through submitit (default: local)")
    parser.add_argument("--launcher-option", action="append", default=[], metavar="NAME=VALUE",
                        help="a parameter of submitit's executor, such as partition=gpu; may be repeated")
    return parser


def minutes(text: str) -> float:
    """By this name, argparse says what is no number."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected minutes above 0, got {text}")
    return value
