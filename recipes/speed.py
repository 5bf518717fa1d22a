#!/usr/bin/env python3
"""Every benchmark, each run more than once, on a machine that does nothing else; recipes/SPEED.md holds them all."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from pathlib import Path

from seqstruct.data.files import atomic_write
from seqstruct.ops.compiled import VARIABLE

HERE = Path(__file__).resolve().parent
BENCHMARKS = {
    "stack-layers": "bench stack --sections layers steps",
    "stack-decoding": "bench stack --sections decoding",
    "stack-growth": "bench stack --sections growth --repeats 3",
    "inference": "bench inference",
    "rational": "bench rational",
    "parsing": "bench parsing",
    "attention": "bench attention",
    "decode": "bench decode --sections step unconditional --lengths 32 256 2048",
    "encode": "bench encode",
    "translation": "bench translation",
}
COMPILED = ("stack-layers", "stack-decoding", "attention", "decode")  # also with compiled kernels
COMMANDS = BENCHMARKS | {f"{name}-compiled": BENCHMARKS[name] for name in COMPILED}
HEAD = """# Speed

What `python recipes/speed.py` wrote: each command with what it printed, in every run, nothing left out. Ratios within
one table can be compared, times from different machines cannot.
"""


def main() -> int:
    """Run what is asked for and write the file; 1 if a benchmark fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=sorted(COMMANDS), metavar="NAME",
                        help=f"these of {', '.join(COMMANDS)}; the others keep what they have (default: all)")
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="threads of torch (default: 2)")
    parser.add_argument("--times", type=int, default=2, metavar="N", help="runs of each (default: 2)")
    args = parser.parse_args()
    path = HERE / "SPEED.md"
    sections = read_sections(path)
    failed = []
    for name in args.only or COMMANDS:
        arguments = f"{COMMANDS[name]} --threads {args.threads}"
        compiled = name not in BENCHMARKS
        command = f"{f'{VARIABLE}=1 ' if compiled else ''}seqstruct {arguments}"
        print(command, flush=True)
        words = [sys.executable, "-m", "seqstruct", *shlex.split(arguments)]
        environment = os.environ | {VARIABLE: str(int(compiled))}
        runs = [subprocess.run(words, capture_output=True, text=True, env=environment) for _ in range(args.times)]
        wrong = [run.stderr.strip().splitlines()[-1:] for run in runs if run.returncode]
        if wrong:
            failed.append(f"{name}: {wrong[0]}")
            continue
        blocks = "\n".join(f"```\n{run.stdout.strip()}\n```\n" for run in runs)
        sections[name] = f"## {name}\n\n    {command}\n\n{blocks}"
        with atomic_write(path) as stream:
            stream.write("\n".join([HEAD, *(sections[known] for known in COMMANDS if known in sections)]))
    if failed:
        print("failed: " + "; ".join(failed), file=sys.stderr)
    return 1 if failed else 0


def read_sections(path: Path) -> dict[str, str]:
    """What the file holds, by benchmark."""
    if not path.exists():
        return {}
    parts = path.read_text(encoding="utf-8").split("\n## ")[1:]
    return {part.partition("\n")[0]: f"## {part}" for part in parts}


if __name__ == "__main__":
    raise SystemExit(main())
