"""`seqstruct path`: the folders to give to fairseq, from anywhere.

The package's folder is for `--user-dir`; with --configs, the folder of the YAML files, a folder for each paper, is for
`fairseq-hydra-train --config-dir`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import seqstruct


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "path", help="print the folder for fairseq's --user-dir, or that of the configs",
        description=__doc__.partition(": ")[2], formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--configs", action="store_true", help="print the folder of the YAML files instead")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from seqstruct.harness.paper import shared_folder

    print(shared_folder("configs") if args.configs else Path(seqstruct.__file__).resolve().parent)
