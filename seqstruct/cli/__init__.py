"""The `seqstruct` command.  Each module here that has `add_parser(commands)` is one subcommand.

`add_parser` adds one parser to the argparse subparsers and sets `run=function(args) -> int | None` as its default;
heavy imports stay inside `run`.  A ValueError or OSError that leaves `run` becomes one sentence and exit status 1.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from pkgutil import iter_modules
from typing import Sequence

import seqstruct
from seqstruct.harness.quiet import quiet


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command."""
    parser = argparse.ArgumentParser(prog="seqstruct", description="Structured and efficient sequence models.")
    parser.add_argument("--version", action="version", version=f"seqstruct {seqstruct.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in sorted(iter_modules(__path__), key=lambda m: m.name):
        if not module.name.startswith("_"):
            import_module(f"{__name__}.{module.name}").add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit status comes back."""
    args = build_parser().parse_args(argv)
    try:
        with quiet():
            status = args.run(args) or 0
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # who read has seen enough; what is still held back goes nowhere, or Python would complain when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # what a shell says of a command that wrote to a closed pipe
    except (ValueError, OSError) as error:
        named = isinstance(error, OSError) and error.filename is not None and error.strerror
        sentence = f"{error.filename}: {error.strerror}" if named else str(error)
        print(f"seqstruct {args.command}: {sentence}", file=sys.stderr)
        return 1
    except ImportError as error:
        print(f"seqstruct {args.command}: {error}; `seqstruct doctor` names what is missing", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"seqstruct {args.command}: interrupted", file=sys.stderr)
        return 130
