"""Options that several corpora have in the same form, and limits of numbers."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping


def interval(text: str) -> tuple[int, int]:
    """LOW:HIGH as two numbers, for `type=` of an option."""
    low, _, high = text.partition(":")
    if not (low.isdecimal() and high.isdecimal()):
        raise argparse.ArgumentTypeError(f"expected LOW:HIGH, such as 40:80, not {text!r}")
    return int(low), int(high)


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """For `type=` of an option: a whole number from `least` on, at most `most` if that is given."""
    expected = f"{least} or more" if most is None else f"{least} to {most}"

    def number(text: str) -> int:
        try:
            found = int(text)
        except ValueError:
            found = least - 1
        if found < least or (most is not None and found > most):
            raise argparse.ArgumentTypeError(f"expected a whole number, {expected}, got {text!r}")
        return found

    return number


# two letters each, of ISO 639-1
LANGUAGES = frozenset("""
    aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo
    es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg
    ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn
    no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta
    te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu""".split())


def language(text: str) -> str:
    """For `type=` of an option: the two letters of a language."""
    if text not in LANGUAGES:
        raise argparse.ArgumentTypeError(f"expected the two letters of a language, such as de, got {text!r}")
    return text


SEED = whole(0, 2**63 - 1)  # those that torch takes


def add_numbers(parser: argparse.ArgumentParser, options: Mapping[str, tuple[int, str]]) -> None:
    """Whole numbers: by the option's name its default and what it says."""
    for option, (default, said) in options.items():
        parser.add_argument(option, type=int, default=default, metavar="N", help=f"{said} (default: %(default)s)")


def add_intervals(parser: argparse.ArgumentParser, options: Mapping[str, tuple[tuple[int, int], str]]) -> None:
    """Intervals, both bounds included: by the option's name its default and what it says."""
    for option, (default, said) in options.items():
        parser.add_argument(option, type=interval, default=default, metavar="LOW:HIGH",
                            help=f"{said} (default: {default[0]}:{default[1]})")


def at_least(options: object, *, command: bool = False, **least: float) -> None:
    """Raise ValueError for the first field of the options that is below its least value, or NaN.

    command: by the name of the option, not of the field.
    """
    for name, value in least.items():
        found = getattr(options, name)
        if not found >= value:
            raise ValueError(f"{name.replace('_', '-')} is at least {value}, not {found}" if command
                             else f"{name}: expected {value} or more, got {found}")
