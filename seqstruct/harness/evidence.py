"""`make evidence`: cells of recipes in order of worth, some at a time; what has a record is not run again.

A list has one line for a command of a recipe, from the root of the repository: `SCRIPT --scale small --row PATTERN ...
--seeds N ...`, with NAME=VALUE in front for its environment; `#` starts a comment.  A cell counts as done where the
paper's records have its row, seed, scale and configuration, so the queue goes on in any checkout, whatever ended it.
"""

from __future__ import annotations

import argparse
import fcntl
import shlex
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, Mapping, Sequence

from seqstruct.harness.command import interrupt_on_sigterm, select
from seqstruct.harness.launch import load_recipe
from seqstruct.harness.process import CommandFailed, run_command, terminate_all
from seqstruct.harness.recipe import Cell, Recipe
from seqstruct.harness.records import SCALES, read_folder
from seqstruct.harness.run import slug

LIST = Path("recipes/evidence.txt")


@dataclass(frozen=True)
class Owed:
    """One cell of a list.  environment: what stands in front of its command."""

    script: Path
    recipe: Recipe
    cell: Cell
    environment: Mapping[str, str]

    @property
    def name(self) -> str:
        """Paper, table, row, seed and scale."""
        return f"{self.recipe.paper} {self.recipe.table}  {self.cell}  {self.cell.scale}"

    @property
    def done(self) -> bool:
        """Whether the records beside the script have it."""
        key = (self.cell.row, self.cell.seed, self.cell.scale, self.recipe.configuration_hash(self.cell))
        found = read_folder(self.script.parent / "records")
        return any((r.row, r.seed, r.scale, r.configuration_hash) == key for r in found)

    def lock(self, runs: Path) -> Path:
        """The file that is locked while it runs."""
        return runs / "evidence" / f"{slug(self.name)}-{self.recipe.configuration_hash(self.cell)[:8]}.lock"

    def command(self, runs: Path) -> list[str]:
        """What runs it."""
        environment = [f"{name}={value}" for name, value in self.environment.items()]
        chosen = ["--scale", self.cell.scale, "--row", self.cell.row, "--seed", str(self.cell.seed)]
        return ["env", *environment, sys.executable, str(self.script), *chosen, "--runs", str(runs)]


def read_list(path: Path) -> list[Owed]:
    """The cells of a list, in its order.  Raises ValueError naming file and line for what is no recipe, row or option.

    Recipes' paths are taken from the folder that holds recipes/.
    """
    parser = argparse.ArgumentParser(prog="", add_help=False, exit_on_error=False)
    parser.add_argument("script")
    parser.add_argument("--scale", choices=SCALES, default="small")
    parser.add_argument("--row", nargs="+", action="extend")
    parser.add_argument("--seeds", type=int, nargs="+")
    root = path.resolve().parent.parent
    owed: dict[str, Owed] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = shlex.split(line, comments=True)
        environment = {}
        while words and "=" in words[0] and not words[0].startswith("-"):
            name, _, value = words.pop(0).partition("=")
            environment[name] = value
        if not words:
            continue
        try:
            args, unknown = parser.parse_known_args(words)
            if unknown:
                raise ValueError(f"unknown words: {' '.join(unknown)}")
            recipe = load_recipe(root / args.script)
            cells = select(recipe, args.scale, rows=args.row, seeds=args.seeds)
        except (argparse.ArgumentError, ValueError, OSError) as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
        for cell in cells:
            one = Owed(root / args.script, recipe, cell, environment)
            owed.setdefault(one.name, one)
    return list(owed.values())


@contextmanager
def _held(path: Path) -> Iterator[bool]:
    """Hold a lock, or say by False that another process does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def status(owed: Sequence[Owed], runs: Path) -> str:
    """A line for each cell: done, running or left with its minutes; then how many of each, and the minutes left."""
    lines, minutes = [], 0.0
    count = {"done": 0, "running": 0, "left": 0}
    for one in owed:
        state = "done"
        if not one.done:
            with _held(one.lock(runs)) as free:
                state = "left" if free else "running"
            minutes += one.recipe.estimate(one.cell).minutes
        count[state] += 1
        each = "" if state == "done" else f"  {one.recipe.estimate(one.cell).minutes:.0f} min"
        lines.append(f"{state:8}{one.name}{each}")
    counted = ", ".join(f"{number} {state}" for state, number in count.items())
    return "\n".join([*lines, f"{counted}; about {minutes:.0f} minutes of one thread are left"])


def run_all(owed: Sequence[Owed], runs: Path, *, jobs: int, commit: bool) -> list[str]:
    """Run what has no record, `jobs` cells at a time, in order; the names of the cells that failed come back.

    commit: commit the paper's records after each cell.
    """
    failed = []

    def work(one: Owed) -> None:
        with _held(one.lock(runs)) as free:
            if not free or one.done:
                return
            print(f"begun   {one.name}", flush=True)
            log = one.lock(runs).with_suffix(".log")
            try:
                run_command(one.command(runs), log)
            except CommandFailed:
                failed.append(one.name)
                print(f"failed  {one.name}: {log}", flush=True)
                return
            print(f"done    {one.name}", flush=True)
            if commit:
                _commit(one)

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        try:
            list(pool.map(work, owed))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            terminate_all()
            raise
    return failed


def _commit(one: Owed) -> None:
    records = str(one.script.parent / "records")
    message = f"Records: {one.recipe.paper} {one.recipe.table}, {one.cell}"
    subprocess.run(["git", "add", records], cwd=one.script.parent, check=False)
    subprocess.run(["git", "commit", "--quiet", "-m", message, "--", records], cwd=one.script.parent, check=False)


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; 1 if a cell failed or the list is not readable."""
    parser = argparse.ArgumentParser(prog="evidence", description=__doc__.split("\n")[0])
    parser.add_argument("list", type=Path, nargs="?", default=LIST, help=f"default: {LIST}")
    parser.add_argument("--status", action="store_true", help="say what is done, runs and is left; run nothing")
    parser.add_argument("--jobs", type=int, choices=range(1, 257), default=2, metavar="N",
                        help="cells at a time (default: 2)")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where runs are kept (default: runs)")
    parser.add_argument("--commit", action="store_true", help="commit the records of each cell when it is done")
    args = parser.parse_args(argv)
    interrupt_on_sigterm()
    try:
        owed = read_list(args.list)
        if args.status:
            print(status(owed, args.runs))
            return 0
        failed = run_all(owed, args.runs, jobs=args.jobs, commit=args.commit)
    except (ValueError, OSError) as error:
        print(f"evidence: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("evidence: interrupted; the same command goes on from here", file=sys.stderr)
        return 128 + signal.SIGINT
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
