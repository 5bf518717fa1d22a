"""The smoke scale of recipes: all of them, or a part that changes with every commit.

`.ci/smoke.py --part N` takes every N-th recipe, beginning with the number of commits modulo N.  Of each family of
models one recipe's commands are also printed and pasted into a shell of their own, which must give the same numbers.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from seqstruct.harness.records import read_folder
from seqstruct.harness.script import Script, scripts

ROOT = Path(__file__).resolve().parents[1]


def part_of(found: Sequence[Script], parts: int) -> list[Script]:
    """Every `parts`-th script, from another one on with every commit."""
    done = subprocess.run(["git", "rev-list", "--count", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    first = int(done.stdout) % parts if done.returncode == 0 else 0
    return list(found[first::parts])


def first_of_each_family(found: Sequence[Script]) -> set[Path]:
    """The path of the first script of each family."""
    families: dict[str, Path] = {}
    for script in found:
        families.setdefault(script.family, script.path)
    return set(families.values())


# what two runs have in common; times, memory and what is made of them differ
EXACT = {
    "%", "BLEU", "bits", "chrF2", "nats", "nats per symbol", "perplexity", "parameters", "tokens", "types", "words",
    "sentences", "rate", "squared kernel",
}
UNSEEDED = {"validation_perplexity_before"}  # fairseq-eval-lm draws what a checkpoint lacks without a seed


def numbers(folder: Path) -> dict[tuple, dict]:
    """The metrics of the records below a folder, as far as the same commands give the same again."""
    found = [r for records in folder.rglob("records") for r in read_folder(records)]
    return {
        (r.paper, r.table, r.row, r.seed): {
            name: metric for name, metric in r.metrics.items() if metric["unit"] in EXACT and name not in UNSEEDED
        }
        for r in found
    }


def run(script: Script, paste: bool) -> str:
    """Run the smoke scale; what went wrong comes back, an empty text if nothing did."""
    words = [str(script.path), "--scale", "smoke"]
    with tempfile.TemporaryDirectory() as runs:  # a finished run would not be run again
        done = subprocess.run([*words, "--runs", f"{runs}/a"], capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr[-3000:]
        if not paste:
            return ""
        text = subprocess.run([*words, "--runs", f"{runs}/b", "--print"], capture_output=True, text=True, check=False)
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        for cell in text.stdout.split("\n\n"):
            pasted = subprocess.run(["bash", "-e"], input=cell, capture_output=True, text=True, check=False,
                                    env={**os.environ, "PATH": path})
            if pasted.returncode:
                return f"pasted: {pasted.stdout[-1500:]}{pasted.stderr[-1500:]}"
        ours, theirs = numbers(Path(runs, "a")), numbers(Path(runs, "b"))
        return "" if ours and ours == theirs else f"pasted, the commands give other numbers:\n{ours}\n{theirs}"


def main() -> int:
    """Run them, even after one has failed; 1 if any has."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--part", type=int, default=1, metavar="N", help="every N-th recipe (default: all)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="recipes at a time (default: 2)")
    args = parser.parse_args()
    every = [script for script in scripts(ROOT / "recipes") if script.table != "demo"]  # `make demo` runs those cells
    first = first_of_each_family(every)
    failed = []

    def work(script: Script) -> None:
        start = time.monotonic()
        wrong = run(script, script.path in first)
        name = script.path.relative_to(ROOT / "recipes")
        print(f"{name}: {'failed' if wrong else 'passed'} in {time.monotonic() - start:.0f} s\n{wrong}".rstrip())
        sys.stdout.flush()
        failed.extend([str(name)] if wrong else [])

    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(work, part_of(every, args.part)))
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
