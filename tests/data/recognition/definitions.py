"""Membership in the eighteen languages, written apart from the package: by rewriting, by tokens, by sums of powers."""

from __future__ import annotations

import re
from collections import Counter
from itertools import product


def nested(depth: int) -> str:
    """A regular expression of balanced brackets of two kinds, so deep at most."""
    inner = nested(depth - 1) if depth else ""
    return rf"(?:\({inner}\)|\[{inner}\])*" if depth else ""


def navigates(s: str) -> bool:
    place = 0
    for i, symbol in enumerate(s):
        if symbol.isdigit():
            return i == len(s) - 1 and place == int(symbol)
        place = {">": (place + 1) % 5, "<": (place + 4) % 5, "=": place}[symbol]
    return False


def value(s: str) -> int | None:
    """Of digits and operators, from the last operator down; None if it is no expression."""
    if len(s) == 1:
        return int(s) if s.isdigit() else None
    if len(s) < 3 or not s[-1].isdigit() or s[-2] not in "+-*":
        return None
    left, right = value(s[:-2]), int(s[-1])
    return None if left is None else {"+": left + right, "-": left - right, "*": left * right}[s[-2]] % 5


def calculates(s: str) -> bool:
    left, equals, right = s.rpartition("=")
    return bool(equals) and len(right) == 1 and right.isdigit() and value(left) == int(right)


def operates(s: str) -> bool:
    stack, i = [], 0
    while i < len(s) and s[i] in "01":
        stack.append(s[i])
        i += 1
    while i < len(s) and s[i] != "#":
        if s[i] == "-" and stack:
            stack.pop()
            i += 1
        elif s[i] == "+" and s[i + 1 : i + 2] in ("0", "1"):
            stack.append(s[i + 1])
            i += 2
        else:
            return False
    return s[i:] == "#" + "".join(reversed(stack))


def halves(image):
    """Whether the second half, after #, is the image of the first."""

    def accepts(s: str) -> bool:
        half = len(s) // 2
        return len(s) % 2 == 1 and s[half] == "#" and "#" not in s[:half] and s[half + 1 :] == image(s[:half])

    return accepts


def numbers(operator: str, result):
    """Bits, the lowest first, in parts between operator and =."""

    def accepts(s: str) -> bool:
        if s.count("=") != 1 or (operator and s.count(operator) != 1):
            return False
        left, right = s.split("=")
        parts = [*(left.split(operator) if operator else [left]), right]
        if not all(part and set(part) <= {"0", "1"} for part in parts):
            return False
        *operands, found = (sum(2**i for i, bit in enumerate(part) if bit == "1") for part in parts)
        return result(*operands) == found

    return accepts


def missing(s: str) -> bool:
    doubled = ("".join(w + w) for w in product("01", repeat=len(s) // 2) if len(s) % 2 == 0)
    return any(s == u[:i] + "_" + u[i + 1 :] for u in doubled for i in range(len(u)) if u[i] == "1")


def root(x: int) -> int:
    return next(z for z in range(x + 1) if z * z <= x < (z + 1) * (z + 1))


DEFINITIONS = {
    "even-pairs": lambda s: len(re.findall("(?=01)", s)) % 2 == len(re.findall("(?=10)", s)) % 2,
    "repeat-01": lambda s: re.fullmatch("(01)*", s) is not None,
    "parity": lambda s: sum(map(int, s)) % 2 == 1,
    "cycle-navigation": navigates,
    "modular-arithmetic": calculates,
    "dyck-2-3": lambda s: re.fullmatch(nested(3), s) is not None,
    "first": lambda s: s[:1] == "1",
    "majority": lambda s: Counter(s)["1"] > Counter(s)["0"],
    "stack-manipulation": operates,
    "marked-reversal": halves(lambda w: "".join(reversed(w))),
    "unmarked-reversal": lambda s: len(s) % 2 == 0 and all(s[i] == s[-1 - i] for i in range(len(s) // 2)),
    "marked-copy": halves(lambda w: w),
    "missing-duplicate": missing,
    "odds-first": halves(lambda w: "".join([c for i, c in enumerate(w) if i % 2 == 0]
                                           + [c for i, c in enumerate(w) if i % 2])),
    "binary-addition": numbers("+", lambda x, y: x + y),
    "binary-multiplication": numbers("*", lambda x, y: x * y),
    "compute-sqrt": numbers("", root),
    "bucket-sort": halves(lambda w: "".join(c * w.count(c) for c in "12345")),
}


def strings(terminals: str, longest: int) -> list[str]:
    """All strings up to a length."""
    return ["".join(symbols) for length in range(longest + 1) for symbols in product(terminals, repeat=length)]
