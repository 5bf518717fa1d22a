#!/usr/bin/env python3
"""The smoke scale of every recipe, one process each, or of one recipe for each model family."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from seqstruct.harness.launch import load_recipe

HERE = Path(__file__).resolve().parent


def recipe_scripts() -> list[Path]:
    """The scripts under recipes/ that define a recipe."""
    found = sorted(HERE.glob("*/*.py"))
    return [script for script in found if "\nrecipe = " in script.read_text(encoding="utf-8")]


def main() -> int:
    """Run them all, even after one has failed; 1 if any has."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first-of-each-family", action="store_true", help="one recipe for each model family")
    args = parser.parse_args()
    scripts = recipe_scripts()
    if args.first_of_each_family:
        families: dict[str, Path] = {}
        for script in scripts:
            families.setdefault(load_recipe(script).family, script)
        scripts = list(families.values())
    failed = []
    for script in scripts:
        name = script.relative_to(HERE)
        print(f"== {name}", flush=True)
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as runs:  # a finished run would not be run again
            status = subprocess.run([sys.executable, script, "--scale", "smoke", "--runs", runs]).returncode
        print(f"== {name}: {'passed' if status == 0 else 'failed'} in {time.monotonic() - start:.0f} s", flush=True)
        failed += [] if status == 0 else [str(name)]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
