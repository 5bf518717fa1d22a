"""The `seqstruct` command.  Each module here is one subcommand.

Its docstring is the help, `add_arguments(parser)` adds what it takes, `run(args) -> int | None` does the work; heavy
imports stay inside `run`.  `args.given` are the names of what is not at its default.  A ValueError or OSError that
leaves `run` becomes one sentence and exit status 1.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pkgutil import iter_modules
from typing import Sequence

import seqstruct
from seqstruct.bridge.quiet import quiet
from seqstruct.command import answer, arguments_of


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="seqstruct", description="Structured and efficient sequence models.")
    parser.add_argument("--version", action="version", version=f"seqstruct {seqstruct.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in sorted(iter_modules(__path__), key=lambda m: m.name):
        if not module.name.startswith("_"):
            command = import_module(f"{__name__}.{module.name}")
            summary = command.__doc__.partition("\n")[0].partition(": ")[2].rstrip(".")
            own = commands.add_parser(module.name.replace("_", "-"), help=summary, description=command.__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
            command.add_arguments(own)
            own.set_defaults(run=command.run, own=own)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    args = arguments_of(build_parser(), argv)
    args.given = {name for name, value in vars(args).items() if value != args.own.get_default(name)}

    def work() -> int | None:
        with quiet():
            return args.run(args)

    return answer(f"seqstruct {args.command}", work)
