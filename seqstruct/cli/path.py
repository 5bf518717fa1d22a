"""`seqstruct path`: the folder to give to fairseq as `--user-dir`, from anywhere."""

from __future__ import annotations

import argparse
from pathlib import Path

import seqstruct


def add_parser(commands: argparse._SubParsersAction) -> None:
    """Add `path` to the subcommands."""
    parser = commands.add_parser(
        "path", help="print the folder for fairseq's --user-dir", description=__doc__.partition(": ")[2]
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Print the package's folder."""
    print(Path(seqstruct.__file__).resolve().parent)
