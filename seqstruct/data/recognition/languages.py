"""The eighteen languages of FLaRe (Butoi et al., ICLR 2025, table 1), written from their definitions.

Symbols are single characters.  Membership is decided by the definition of a language, apart from what draws its
strings.  Numbers have their lowest bit first, and zeros may follow the highest one.

regular             even-pairs          as many 01 as 10: the first symbol is the last one, or there is none
                    repeat-01           01 repeated
                    parity              an odd number of 1s
                    cycle-navigation    steps < > = on a circle of five places, then the place that is reached
                    modular-arithmetic  digits and + - * from left to right, then = and the value modulo 5
                    dyck-2-3            balanced brackets of two kinds, at most three deep
                    first               begins with 1
context-free        majority            more 1s than 0s
                    stack-manipulation  a stack, its top last; + and a symbol to push, - to pop; #, and the stack that
                                        is left, its top first (the paper's PUSH and POP are + and - here)
                    marked-reversal     w # w reversed
                    unmarked-reversal   w, w reversed
context-sensitive   marked-copy         w # w
                    missing-duplicate   w w with one 1 replaced by _
                    odds-first          w # the symbols of w at odd places, then those at even ones
                    binary-addition     x + y = z
                    binary-multiplication   x * y = z
                    compute-sqrt        x = z, z the integer part of the square root of x
                    bucket-sort         w over 1 to 5, #, and w sorted

Strings of a given length: those of regular languages as in `automata`; of w, each symbol is uniform.  The number of 1s
of majority is uniform, and their places are.  In missing-duplicate a 1 is put at a uniform place of w, and one of the
1s of w w is taken out.  Lengths of numbers are shares of a Dirichlet distribution with the parameters (1, 1, 1) of x, y
and z, (1, 1, 2) of products and (2, 1) of x and its root, the shorter of x and y is drawn first, and both are uniform
among those whose result z has room for.  In stack-manipulation a stack and a number of pushes are drawn that give the
length; then pushing and popping are equally likely while the stack is not empty, until there is one push too many.
Deviations from the released code: the length is uniform in stack-manipulation too; roots are exact at every size; what
may come next does not depend on how long strings of the data are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf, isqrt
from random import Random

from seqstruct.data.recognition.automata import AUTOMATA, END

LEVELS = ("regular", "context-free", "context-sensitive")


@dataclass(frozen=True, eq=False)
class FormalLanguage:
    """accepts: whether a string is a member.  has_length: whether a member has so many symbols.

    draw: a member of a length that there is.  follow: of a member, the symbols that may come after each prefix, the
    empty one first, such that a member begins so; END among them where the prefix is one.
    """

    name: str
    level: str
    terminals: str
    accepts: Callable[[str], bool]
    has_length: Callable[[int], bool]
    draw: Callable[[int, Random], str]
    follow: Callable[[str], list[str]]

    def lengths(self, low: int, high: int) -> list[int]:
        """The lengths from low to high, both included, that members have.

        Raises ValueError if there is none or the range is not one of lengths.
        """
        if not 0 <= low <= high:
            raise ValueError(f"lengths go from 0 on, the smaller first; got {low}:{high}")
        found = [length for length in range(low, high + 1) if self.has_length(length)]
        if not found:
            raise ValueError(f"{self.name} has no string of length {low if low == high else f'{low} to {high}'}")
        return found


def word(symbols: str, length: int, generator: Random) -> str:
    """Symbols drawn uniformly."""
    return "".join(generator.choices(symbols, k=length))


def _dyck(string: str) -> bool:
    due = []
    for symbol in string:
        if symbol in "([":
            due.append(")" if symbol == "(" else "]")
        elif not due or due.pop() != symbol:
            return False
        if len(due) > 3:
            return False
    return not due


def _navigates(string: str) -> bool:
    steps, place = string[:-1], string[-1:]
    return (place.isdecimal() and not re.search(r"\d", steps)
            and (steps.count(">") - steps.count("<")) % 5 == int(place))


def _calculates(string: str) -> bool:
    if not re.fullmatch(r"\d([-+*]\d)*=\d", string):
        return False
    value = int(string[0])
    for operator, digit in re.findall(r"([-+*])(\d)", string):
        value = {"+": value + int(digit), "-": value - int(digit), "*": value * int(digit)}[operator]
    return value % 5 == int(string[-1])


REGULAR: dict[str, tuple[str, Callable[[str], bool]]] = {
    "even-pairs": ("01", lambda s: s[:1] == s[-1:]),
    "repeat-01": ("01", lambda s: s == "01" * (len(s) // 2)),
    "parity": ("01", lambda s: s.count("1") % 2 == 1),
    "cycle-navigation": ("<>=01234", _navigates),
    "modular-arithmetic": ("01234+-*=", _calculates),
    "dyck-2-3": ("()[]", _dyck),
    "first": ("01", lambda s: s.startswith("1")),
}


def regular(name: str) -> FormalLanguage:
    """A language by its automaton, which draws, and its definition, which decides."""
    (terminals, accepts), automaton = REGULAR[name], AUTOMATA[name]
    return FormalLanguage(name, "regular", terminals, accepts, automaton.has_length, automaton.draw, automaton.follow)


def marked(name: str, level: str, symbols: str, image: Callable[[str], str]) -> FormalLanguage:
    """w # image(w), for w over the symbols."""

    def accepts(string: str) -> bool:
        w, mark, rest = string.partition("#")
        return mark == "#" and rest == image(w)

    def draw(length: int, generator: Random) -> str:
        w = word(symbols, length // 2, generator)
        return f"{w}#{image(w)}"

    def follow(string: str) -> list[str]:
        w, _, rest = string.partition("#")
        return [symbols + "#"] * (len(w) + 1) + [*rest, END]

    return FormalLanguage(name, level, symbols + "#", accepts, lambda n: n % 2 == 1, draw, follow)


def _majority() -> FormalLanguage:
    def accepts(string: str) -> bool:
        return 2 * string.count("1") > len(string)

    def draw(length: int, generator: Random) -> str:
        ones = generator.randint(length // 2 + 1, length)
        return "".join(generator.sample("1" * ones + "0" * (length - ones), length))

    def follow(string: str) -> list[str]:
        ahead = accumulate((1 if symbol == "1" else -1 for symbol in string), initial=0)
        return ["01" + (END if lead > 0 else "") for lead in ahead]

    return FormalLanguage("majority", "context-free", "01", accepts, lambda n: n > 0, draw, follow)


def _unmarked_reversal() -> FormalLanguage:
    def accepts(string: str) -> bool:
        return len(string) % 2 == 0 and string == string[::-1]

    def draw(length: int, generator: Random) -> str:
        w = word("01", length // 2, generator)
        return w + w[::-1]

    def follow(string: str) -> list[str]:
        return ["01" + (END if accepts(string[:t]) else "") for t in range(len(string) + 1)]

    return FormalLanguage("unmarked-reversal", "context-free", "01", accepts, lambda n: n % 2 == 0, draw, follow)


def _missing_duplicate() -> FormalLanguage:
    def accepts(string: str) -> bool:
        whole, half = string.replace("_", "1"), len(string) // 2
        return string.count("_") == 1 and whole[:half] == whole[half:]

    def draw(length: int, generator: Random) -> str:
        w = list(word("01", length // 2, generator))
        w[generator.randrange(len(w))] = "1"
        whole = w + w
        whole[generator.choice([i for i, symbol in enumerate(whole) if symbol == "1"])] = "_"
        return "".join(whole)

    def follow(string: str) -> list[str]:
        gap = string.index("_")
        return ["01_" if t <= gap else "01" + (END if accepts(string[:t]) else "") for t in range(len(string) + 1)]

    def has_length(length: int) -> bool:
        return length > 0 and length % 2 == 0

    return FormalLanguage("missing-duplicate", "context-sensitive", "01_", accepts, has_length, draw, follow)


def _stack_manipulation() -> FormalLanguage:
    form = re.compile(r"([01]*)((?:\+[01]|-)*)#([01]*)")

    def stacks(start: str, operations: str) -> list[str] | None:
        """The stack after each operation, the first one before all; None if an empty one is popped."""
        found = [start]
        for operation in re.findall(r"\+.|-", operations):
            if operation == "-" and not found[-1]:
                return None
            found.append(found[-1][:-1] if operation == "-" else found[-1] + operation[1])
        return found

    def accepts(string: str) -> bool:
        parts = form.fullmatch(string)
        found = parts and stacks(parts[1], parts[2])
        return bool(found) and found[-1][::-1] == parts[3]

    def splits(length: int) -> list[tuple[int, int]]:
        """Sizes of the first stack and numbers of pushes that give the length, whatever is popped."""
        return [((length - 1 - 3 * pushes) // 2, pushes) for pushes in range((length + 2) // 3)
                if (length - 1 - 3 * pushes) % 2 == 0]

    def draw(length: int, generator: Random) -> str:
        size, pushes = generator.choice(splits(length))
        first = stack = word("01", size, generator)
        operations = ""
        while True:
            if stack and generator.random() < 0.5:
                stack, operations = stack[:-1], operations + "-"
            elif pushes:
                symbol, pushes = generator.choice("01"), pushes - 1
                stack, operations = stack + symbol, f"{operations}+{symbol}"
            else:
                return f"{first}{operations}#{stack[::-1]}"

    def follow(string: str) -> list[str]:
        first, operations, rest = form.fullmatch(string).groups()
        found = ["01+#" + ("-" if size else "") for size in range(len(first) + 1)]
        after = stacks(first, operations)[1:]
        for operation, stack in zip(re.findall(r"\+.|-", operations), after, strict=True):
            found += ["01"] * (len(operation) - 1) + ["+#" + ("-" if stack else "")]
        return [*found, *rest, END]

    def has_length(length: int) -> bool:
        return bool(splits(length))

    return FormalLanguage("stack-manipulation", "context-free", "01+-#", accepts, has_length, draw, follow)


def number(bits: str) -> int:
    """The value of bits, the lowest first."""
    return int(bits[::-1], 2)


def bits_of(value: int, length: int = 1) -> str:
    """The bits of a value, the lowest first, with zeros to a length at the least."""
    return format(value, "b")[::-1].ljust(length, "0")


def shares(total: int, parameters: Sequence[int], generator: Random) -> list[int]:
    """Whole numbers of 1 or more that add up to the total, by shares of a Dirichlet distribution."""
    drawn = [generator.gammavariate(parameter, 1.0) for parameter in parameters]
    rest = total - len(drawn)
    ends = [int(rest * part / sum(drawn)) for part in accumulate(drawn[:-1])]
    return [1 + end - begin for begin, end in zip([0, *ends], [*ends, rest], strict=True)]


def calculation(
    name: str, operator: str, parameters: Sequence[int], result: Callable[..., int],
    greatest: Sequence[Callable[..., float]],
) -> FormalLanguage:
    """Operands, = and their result.  operator: between two operands, or nothing of one.

    parameters: of the lengths of operands and result.  greatest: of each operand its greatest value, from the greatest
    result and the operands before it.
    """
    form = re.compile(rf"([01]+){rf'{re.escape(operator)}([01]+)' if operator else ''}=([01]+)")
    marks = len(parameters) - 1

    def accepts(string: str) -> bool:
        parts = form.fullmatch(string)
        if parts is None:
            return False
        *operands, found = map(number, parts.groups())
        return result(*operands) == found

    def draw(length: int, generator: Random) -> str:
        *sizes, room = shares(length - marks, parameters, generator)
        sizes.sort()
        operands: list[int] = []
        for size, most in zip(sizes, greatest, strict=True):
            operands.append(generator.randint(0, min(2**size - 1, most(2**room - 1, *operands))))
        written = [bits_of(value, size) for value, size in zip(operands, sizes, strict=True)]
        generator.shuffle(written)
        return f"{operator.join(written)}={bits_of(result(*operands), room)}"

    def follow(string: str) -> list[str]:
        *operands, found = form.fullmatch(string).groups()
        least = bits_of(result(*map(number, operands)))
        before = [symbols for operand, mark in zip(operands, [*operator, "="], strict=True)
                  for symbols in ["01", *[f"01{mark}"] * len(operand)]]
        return [*before, *least, *[f"0{END}"] * (len(found) - len(least) + 1)]

    def has_length(length: int) -> bool:
        return length >= 2 * marks + 1

    return FormalLanguage(name, "context-sensitive", f"01{operator}=", accepts, has_length, draw, follow)


_BITS, _SENSITIVE = "01", LEVELS[2]
LANGUAGES = {language.name: language for language in (
    *map(regular, AUTOMATA),
    _majority(), _stack_manipulation(), marked("marked-reversal", LEVELS[1], _BITS, lambda w: w[::-1]),
    _unmarked_reversal(), marked("marked-copy", _SENSITIVE, _BITS, lambda w: w), _missing_duplicate(),
    marked("odds-first", _SENSITIVE, _BITS, lambda w: w[::2] + w[1::2]),
    calculation("binary-addition", "+", (1, 1, 1), lambda x, y: x + y, (lambda z: z, lambda z, x: z - x)),
    calculation("binary-multiplication", "*", (1, 1, 2), lambda x, y: x * y,
                # times 0 there is room for any number
                (lambda z: inf, lambda z, x: z // x if x else inf)),
    calculation("compute-sqrt", "", (2, 1), isqrt, (lambda z: (z + 1) ** 2 - 1,)),
    marked("bucket-sort", _SENSITIVE, "12345", lambda w: "".join(sorted(w))),
)}


def find_language(name: str) -> FormalLanguage:
    """A language by its name.  Raises ValueError that lists the names."""
    if name not in LANGUAGES:
        raise ValueError(f"no language is called {name!r}; there are: {', '.join(LANGUAGES)}")
    return LANGUAGES[name]
