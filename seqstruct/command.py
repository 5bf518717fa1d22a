"""What all commands share, `seqstruct NAME` and `python -m seqstruct.NAME`: one sentence where something is wrong."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

BROKEN_PIPE, INTERRUPTED = 141, 130  # what a shell says of a command that wrote to a closed pipe, or was interrupted
GOES_ON = "interrupted; the same command goes on from here"


def module_parser(name: str, doc: str | None) -> argparse.ArgumentParser:
    """The parser of `python -m NAME`, described by the module's docstring as it stands."""
    return argparse.ArgumentParser(
        prog=f"python -m {name}", description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def arguments_of(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> argparse.Namespace:
    """The arguments, the process's own if None; exits as argparse does, also where nobody reads the help to its end."""
    try:
        return parser.parse_args(argv)
    except SystemExit:
        _flush()
        raise


def add_data(parser: argparse.ArgumentParser) -> None:
    """--data of what takes a checkpoint, as `seqstruct.scoring.trained_on` reads it."""
    parser.add_argument("--data", metavar="DIR", help="the prepared folder, or the bin/ in it (default: beside the "
                        "checkpoint, or where training found it)")


def refuse_unused(args: argparse.Namespace, *rows: tuple[object, str, Sequence[str]]) -> None:
    """Raise ValueError for the first option that does nothing beside the others and is not at its default.

    args: of `seqstruct`.  rows: whether some do nothing, what is said of them, and their names.
    """
    for unused, told, names in rows:
        if unused and (given := [name for name in names if name in args.given]):
            raise ValueError(f"--{given[0].replace('_', '-')}: {told}")


def _flush() -> bool:
    """Write what is held back, and say whether somebody reads it; else it goes nowhere, or Python would complain."""
    try:
        sys.stdout.flush()
        return True
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False


def run_module(
    parser: argparse.ArgumentParser, argv: Sequence[str] | None, work: Callable[[argparse.Namespace], Any]
) -> int:
    """Read the arguments, the process's own if None, and do the work; the exit status comes back, as of `answer`."""
    args = arguments_of(parser, argv)
    return answer(parser.prog.rpartition(" ")[2], lambda: work(args))


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; bars inside of cells are escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def text_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns of text, the first one left-aligned."""
    lines = [header, *rows]
    first, *others = (max(map(len, column)) for column in zip(*lines, strict=True))
    return "\n".join(
        "  ".join([name.ljust(first), *(cell.rjust(width) for cell, width in zip(cells, others, strict=True))]).rstrip()
        for name, *cells in lines
    )


@contextmanager
def interrupted_by_sigterm() -> Iterator[None]:
    """In the block SIGTERM (of `kill` or a cluster) is as Ctrl-C: what is half made goes, and children are ended.

    A process forked inside of it, as those that load data, ends at once.  In threads other than the first the block
    changes nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    process = os.getpid()

    def interrupt(number: int, frame: object) -> None:
        if os.getpid() == process:
            raise KeyboardInterrupt
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def answer(name: str, work: Callable[[], Any], interrupted: str = "interrupted") -> int:
    """Do the work of a command; its exit status comes back: what it returns if that is a number, else 0.

    A ValueError, an OSError and a missing package become one sentence on standard error and the status 1.  A reader of
    the output who has seen enough is no error to tell of.  interrupted: what is said of Ctrl-C, and of SIGTERM.
    """
    try:
        with interrupted_by_sigterm():
            status = work()
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except BrokenPipeError:
        _flush()
        return BROKEN_PIPE
    except (ValueError, OSError) as error:
        named = isinstance(error, OSError) and error.filename is not None and error.strerror
        print(f"{name}: {f'{error.filename}: {error.strerror}' if named else error}", file=sys.stderr)
        return 1
    except ImportError as error:
        print(f"{name}: {error}; `seqstruct doctor` names what is missing", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{name}: {interrupted}", file=sys.stderr)
        return INTERRUPTED
