"""`seqstruct prepare CORPUS`: make a corpus ready for training.

Each package of `seqstruct.data` with a module `prepare` is one corpus; the module has DESCRIPTION,
`add_arguments(parser)` and `run(args)`, and imports nothing heavy outside `run`.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules

import seqstruct.data


def add_parser(commands: argparse._SubParsersAction) -> None:
    """Add `prepare`, with one subcommand for each corpus."""
    parser = commands.add_parser("prepare", help="make a corpus ready for training")
    corpora = parser.add_subparsers(dest="corpus", metavar="CORPUS", required=True)
    for package in sorted(iter_modules(seqstruct.data.__path__), key=lambda m: m.name):
        name = f"seqstruct.data.{package.name}.prepare"
        if not package.ispkg or find_spec(name) is None:
            continue
        module = import_module(name)
        corpus = corpora.add_parser(package.name, help=module.DESCRIPTION, description=module.DESCRIPTION)
        module.add_arguments(corpus)
        corpus.set_defaults(run=module.run)
