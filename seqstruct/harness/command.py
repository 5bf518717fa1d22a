"""The command line that every recipe script has: `raise SystemExit(main(recipe))`."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path
from typing import Sequence

from rich.console import Console
from rich.table import Table

from seqstruct.harness.process import terminate_all
from seqstruct.harness.progress import Progress
from seqstruct.harness.recipe import Cell, Measurement, Recipe
from seqstruct.harness.records import SCALES, format_value
from seqstruct.harness.run import Run, recipe_script

BASELINE_MINUTES = 0.2


def main(recipe: Recipe, argv: Sequence[str] | None = None) -> int:
    """Run what the options ask for; the exit status comes back, and an error is one sentence on standard error."""
    args = _parser(recipe).parse_args(argv)
    interrupt_on_sigterm()
    try:
        cells = select(recipe, args.scale, rows=args.row, seeds=args.seed)
        if args.list:
            _print_list(recipe, cells, args.runs)
        elif args.estimate:
            _print_estimate(recipe, cells, args.runs)
        elif args.draws:
            _print_draws(recipe, cells)
        elif args.launcher == "slurm":
            return _launch(recipe, cells, args)
        else:
            run_cells(
                recipe, cells, runs=args.runs, records=args.records, source=args.source,
                max_minutes=args.max_minutes, jobs=args.jobs,
            )
    except (ValueError, OSError) as error:
        print(f"{recipe_script(recipe).name}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{recipe_script(recipe).name}: interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


def _parser(recipe: Recipe) -> argparse.ArgumentParser:
    doc = (sys.modules[type(recipe).__module__].__doc__ or "").strip()
    parser = argparse.ArgumentParser(
        prog=recipe_script(recipe).name, description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", choices=SCALES, default="small", help="smoke: seconds; small: a laptop, at most 30 "
                        "minutes a cell on one thread; paper: the published setting (default: small)")
    parser.add_argument("--row", action="append", metavar="PATTERN",
                        help="only rows that match, as in a shell (* and ?); may be repeated")
    parser.add_argument("--seed", "--seeds", type=int, nargs="+", metavar="N", help="these seeds, from 1 on")
    parser.add_argument("--list", action="store_true", help="list the cells and whether they are finished; run nothing")
    parser.add_argument("--estimate", action="store_true",
                        help="say what the cells take in time, disk and downloads, and the licence; run nothing")
    parser.add_argument("--draws", action="store_true",
                        help="print what each cell draws at random, one JSON object a line; run nothing")
    parser.add_argument("--runs", default="runs", metavar="DIR", help="where runs are kept (default: runs)")
    parser.add_argument("--records", metavar="DIR", help="where records go (default: records/ beside this script; at "
                        "the smoke scale, records/ among the paper's runs)")
    parser.add_argument("--from", dest="source", metavar="DIR", help="take raw data from this folder; download nothing "
                        "(default: the corpus among data/ of SEQSTRUCT_REFERENCE, where that is set)")
    parser.add_argument("--max-minutes", type=_positive, metavar="M", help="wall-clock limit of training one cell")
    parser.add_argument("--jobs", type=int, choices=range(1, 257), default=1, metavar="N",
                        help="cells trained at a time (default: 1)")
    parser.add_argument("--launcher", choices=("local", "slurm"), default="local",
                        help="slurm: one job for each cell, through hydra's submitit launcher (default: local)")
    parser.add_argument("--launcher-option", action="append", default=[], metavar="NAME=VALUE",
                        help="a field of hydra.launcher, such as partition=gpu; may be repeated")
    return parser


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected minutes above 0, got {text}")
    return value


def interrupt_on_sigterm() -> None:
    """Let SIGTERM (a cluster's notice) end this process as Ctrl-C does, so that its children are ended with it."""
    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def select(
    recipe: Recipe, scale: str, *, rows: Sequence[str] | None = None, seeds: Sequence[int] | None = None
) -> list[Cell]:
    """The cells of a scale whose rows match one of the patterns (all if None), baselines among them.

    Rows named outright are found at the smoke scale too where it would leave them out.  A baseline has one seed unless
    some are given with its row.
    Raises ValueError if a pattern matches no row.
    """
    baselines = recipe.baselines(scale)
    if not rows:
        return recipe.cells(scale, seeds) + [Cell(row, 1, scale) for row in baselines]
    known, chosen = (*recipe.rows, *baselines), []
    for pattern in rows:
        matching = [row for row in known if fnmatchcase(row, pattern) or row == pattern]
        if not matching:
            raise ValueError(f"no row matches {pattern!r}; rows: {', '.join(known)}")
        chosen += [row for row in matching if row not in chosen]
    return [
        Cell(row, seed, scale) for row in chosen
        for seed in seeds or range(1, 2 if row in baselines else recipe.seeds[scale] + 1)
    ]


def records_folder(recipe: Recipe, scale: str, runs: str, records: str | None) -> Path:
    """Where a scale's records go: what was asked for, else beside the script; a smoke run's are no results."""
    if records is not None:
        return Path(records)
    return Path(runs) / recipe.paper / "records" if scale == "smoke" else recipe_script(recipe).parent / "records"


def run_cells(
    recipe: Recipe,
    cells: Sequence[Cell],
    *,
    runs: str = "runs",
    records: str | None = None,
    source: str | None = None,
    max_minutes: float | None = None,
    jobs: int = 1,
) -> dict[Cell, list[Measurement]]:
    """Run the cells, `jobs` at a time; the measurements of each come back.  The first failure ends all."""
    results: dict[Cell, list[Measurement]] = {}
    with Progress() as progress:
        def work(cell: Cell) -> None:
            run = Run(recipe, cell, runs, progress=progress, source=source, max_minutes=max_minutes)
            before = run.done
            found = run.finish(records_folder(recipe, cell.scale, runs, records))
            results[cell] = found
            progress.say(f"{cell}{' (finished before)' if before else ''}: " + ", ".join(
                f"{m.metric.replace('_', ' ')} {format_value(m.value)} {m.unit}" for m in found
            ))

        with ThreadPoolExecutor(max_workers=jobs) as pool:
            futures = [pool.submit(work, cell) for cell in cells]
            try:
                finished, _ = wait(futures, return_when=FIRST_EXCEPTION)
                for future in finished:
                    future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                terminate_all()
                raise
    return results


def _print_list(recipe: Recipe, cells: Sequence[Cell], runs: str) -> None:
    with Progress() as progress:
        for cell in cells:
            run = Run(recipe, cell, runs, progress=progress)
            state = "finished" if run.done else "begun" if run.folder.exists() else "not yet run"
            print(f"{recipe.table}  {cell}  {cell.scale}  {state}  {run.folder}")


def _print_draws(recipe: Recipe, cells: Sequence[Cell]) -> None:
    for cell in cells:
        if recipe.data_cell(cell) != cell:
            continue
        drawn = {"table": recipe.table, "row": cell.row, "seed": cell.seed, "scale": cell.scale, **recipe.draws(cell)}
        print(json.dumps(drawn))


def _print_estimate(recipe: Recipe, cells: Sequence[Cell], runs: str) -> None:
    table = Table(title=f"{recipe.paper}, {recipe.table}", title_justify="left")
    for heading in ("row", "seeds", "minutes each", "disk each, MiB"):
        table.add_column(heading, justify="left" if heading == "row" else "right")
    with Progress() as progress:
        open_cells = [cell for cell in cells if not Run(recipe, cell, runs, progress=progress).done]
    minutes = disk = download = 0.0
    for row in dict.fromkeys(cell.row for cell in open_cells):
        of_row = [cell for cell in open_cells if cell.row == row]
        data = recipe.data_cell(of_row[0])
        each = recipe.estimate(data)
        if data != of_row[0]:
            each = each._replace(minutes=min(each.minutes, BASELINE_MINUTES))
        minutes += each.minutes * len(of_row)
        disk += each.disk * len(of_row)
        download = max(download, each.download)
        table.add_row(row, str(len(of_row)), f"{each.minutes:.1f}", f"{each.disk:.0f}")
    Console(soft_wrap=True).print(table)
    print(f"{len(cells) - len(open_cells)} of {len(cells)} cells are finished; the rest, one after another:")
    print(f"time: {minutes:.0f} minutes; disk: {disk:.0f} MiB; download: {download:.0f} MiB; licence: {recipe.licence}")


def _launch(recipe: Recipe, cells: Sequence[Cell], args: argparse.Namespace) -> int:
    """Hand one job for each cell to hydra's submitit launcher, and wait for them."""
    if find_spec("hydra_plugins") is None or find_spec("hydra_plugins.hydra_submitit_launcher") is None:
        raise ValueError("--launcher slurm needs one more package: pip install hydra-submitit-launcher")
    if shutil.which("srun") is None:
        raise ValueError("--launcher slurm needs SLURM, and there is no srun here; --jobs N shares this machine")
    from seqstruct.harness.launch import hydra_command

    command = hydra_command(
        recipe_script(recipe), cells, runs=Path(args.runs).resolve(), source=args.source, max_minutes=args.max_minutes,
        records=records_folder(recipe, args.scale, args.runs, args.records).resolve(),
        launcher="submitit_slurm", options=args.launcher_option,
    )
    return subprocess.run(command).returncode
