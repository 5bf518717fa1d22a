"""Options that several corpora have in the same form."""

from __future__ import annotations

import argparse
from collections.abc import Mapping


def interval(text: str) -> tuple[int, int]:
    """LOW:HIGH as two numbers, for `type=` of an option."""
    low, _, high = text.partition(":")
    if not (low.isdecimal() and high.isdecimal()):
        raise argparse.ArgumentTypeError(f"expected LOW:HIGH, such as 40:80, not {text!r}")
    return int(low), int(high)


def add_numbers(parser: argparse.ArgumentParser, options: Mapping[str, tuple[int, str]]) -> None:
    """Whole numbers: by the option's name its default and what it says."""
    for option, (default, said) in options.items():
        parser.add_argument(option, type=int, default=default, metavar="N", help=f"{said} (default: %(default)s)")


def add_intervals(parser: argparse.ArgumentParser, options: Mapping[str, tuple[tuple[int, int], str]]) -> None:
    """Intervals, both bounds included: by the option's name its default and what it says."""
    for option, (default, said) in options.items():
        parser.add_argument(option, type=interval, default=default, metavar="LOW:HIGH",
                            help=f"{said} (default: {default[0]}:{default[1]})")  # fmt: skip
