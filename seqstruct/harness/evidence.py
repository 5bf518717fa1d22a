"""`make evidence`: cells of recipes in order of worth, some at a time; what has a record is not run again.

A list has one line for a command of a recipe, from the root of the repository: `SCRIPT --scale small --row GLOB ...
--seeds N ...`, with SEQSTRUCT_COMPILED=1 or 0 in front where it has to be with compiled kernels or without; `#` starts
a comment.  A cell counts as done where the paper's records have its row, seed, scale and configuration, and name the
machine, without which nobody can tell whether the number comes again.  So the queue goes on in any checkout, whatever
ended it.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NoReturn

from seqstruct.command import GOES_ON, answer
from seqstruct.data.arguments import whole
from seqstruct.data.files import locked
from seqstruct.harness.cells import run_plan, side_by_side
from seqstruct.harness.progress import Progress
from seqstruct.harness.records import SCALES, read_folder
from seqstruct.harness.script import VARIABLE, Plan, Script

LIST = Path("recipes/evidence.txt")


def name_of(plan: Plan) -> str:
    return f"{plan.script.paper} {plan.table}  {plan.cell}  {plan.cell.scale}"


def recorded(folder: Path) -> set[tuple[str, int, str, str]]:
    """Row, seed, scale and configuration of the records in a folder that name their machine."""
    return {(r.row, r.seed, r.scale, r.configuration_hash) for r in read_folder(folder) if r.machine}


def key_of(plan: Plan) -> tuple[str, int, str, str]:
    """What a record of the cell has."""
    return plan.cell.row, plan.cell.seed, plan.cell.scale, plan.configuration


class _Line(argparse.ArgumentParser):
    """Raises ValueError where argparse would end the process in spite of exit_on_error."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def read_list(path: Path, runs: str = "runs") -> list[Plan]:
    """The cells of a list, in its order, once each.

    Recipes' paths are taken from the folder that holds recipes/.
    Raises ValueError naming file and line for what is no recipe, row or option.
    """
    root = path.resolve().parent.parent
    plans: dict[str, Plan] = {}
    parser = _Line(exit_on_error=False, add_help=False)
    parser.add_argument("script")
    parser.add_argument("--scale", choices=SCALES, default="small")
    parser.add_argument("--row", nargs="+")
    parser.add_argument("--seeds", nargs="+", type=whole(1))
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            words = shlex.split(line, comments=True)
            compiled = {f"{VARIABLE}=0": False, f"{VARIABLE}=1": True}.get(words[0]) if words else None
            words = words[compiled is not None :]
            if not words:
                continue
            args, unknown = parser.parse_known_args(words)
            if unknown:
                raise ValueError(f"expected --scale, --row and --seeds alone, got {shlex.join(unknown)}")
            script = Script(root / args.script)
            for cell in script.cells(args.scale, args.row, args.seeds):
                plan = script.plan(cell, runs=runs, compiled=compiled)
                plans.setdefault(name_of(plan), plan)
        except (argparse.ArgumentError, ValueError, OSError) as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
    return list(plans.values())


def _held(plan: Plan) -> AbstractContextManager[bool]:
    """A lock of the cell's that is held, or, by False, is another process's."""
    path = plan.out.parent / f".{plan.out.name}.evidence"
    path.parent.mkdir(parents=True, exist_ok=True)
    return locked(path, wait=False)


def status(plans: Sequence[Plan]) -> str:
    """A line for each cell: done, running or left with its minutes; then how many of each, and the minutes left."""
    lines, minutes = [], 0.0
    known = {folder: recorded(folder) for folder in {plan.records for plan in plans}}
    count = {"done": 0, "running": 0, "left": 0}
    for plan in plans:
        state = "done"
        if key_of(plan) not in known[plan.records]:
            with _held(plan) as free:
                state = "left" if free else "running"
            minutes += plan.minutes
        count[state] += 1
        lines.append(f"{state:8}{name_of(plan)}" + ("" if state == "done" else f"  {plan.minutes:.0f} min"))
    counted = ", ".join(f"{number} {state}" for state, number in count.items())
    return "\n".join([*lines, f"{counted}; about {minutes:.0f} minutes of one thread are left"])


def run_all(plans: Sequence[Plan], *, jobs: int, commit: bool) -> list[str]:
    """Run what has no record, `jobs` cells at a time, in order; the names of the cells that failed come back.

    commit: commit the paper's records after each cell.
    """
    failed: list[str] = []
    turn = threading.Lock()  # git refuses a second commit while one is made

    def work(plan: Plan, progress: Progress, stop: threading.Event) -> None:
        with _held(plan) as free:
            if stop.is_set() or not free or key_of(plan) in recorded(plan.records):
                return
            progress.say(f"begun   {name_of(plan)}")
            try:
                run_plan(plan, progress, stop)
            except (ValueError, OSError) as error:
                if not stop.is_set():
                    failed.append(name_of(plan))
                    progress.say(f"failed  {name_of(plan)}: {error}")
                return
            if key_of(plan) not in recorded(plan.records):
                if not stop.is_set():  # finished before, into other records or into some that are gone
                    failed.append(name_of(plan))
                    progress.say(f"failed  {name_of(plan)}: finished before, but {plan.records} has no record of it; "
                                 f"without {plan.out} it is run again")
                return
            progress.say(f"done    {name_of(plan)}")
            if commit:
                with turn:
                    _commit(plan)

    side_by_side(work, plans, jobs)
    return failed


def _commit(plan: Plan) -> None:
    message = f"Records: {plan.script.paper} {plan.table}, {plan.cell}"
    for words in (["add"], ["commit", "--quiet", "-m", message, "--"]):
        subprocess.run(["git", *words, str(plan.records)], cwd=plan.script.root, check=False)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="evidence", description=__doc__.split("\n")[0])
    parser.add_argument("list", type=Path, nargs="?", default=LIST, help=f"default: {LIST}")
    parser.add_argument("--status", action="store_true", help="say what is done, runs and is left; run nothing")
    parser.add_argument("--jobs", type=whole(1, 256), default=2, metavar="N",
                        help="cells at a time (default: 2)")
    parser.add_argument("--runs", default="runs", help="where runs are kept (default: runs)")
    parser.add_argument("--commit", action="store_true", help="commit the records of each cell when it is done")
    args = parser.parse_args(argv)

    def work() -> int:
        plans = read_list(args.list, args.runs)
        if args.status:
            print(status(plans))
            return 0
        return 1 if run_all(plans, jobs=args.jobs, commit=args.commit) else 0

    return answer("evidence", work, GOES_ON)


if __name__ == "__main__":
    raise SystemExit(main())
