"""`seqstruct path`: the folders to give to fairseq, from anywhere.

The package's folder is for `--user-dir`; with --configs, the folder of the YAML files, a folder for each paper, is for
`fairseq-hydra-train --config-dir`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import seqstruct


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--configs", action="store_true", help="print the folder of the YAML files instead")


def run(args: argparse.Namespace) -> None:
    from seqstruct.harness.paper import shared_folder

    print(shared_folder("configs") if args.configs else Path(seqstruct.__file__).resolve().parent)
