"""How time, memory and the number of operators of one attention layer grow with the length (Tables 1 and 4 of DuSell
and Chiang 2024; 4.1 and 5.2 of Peng 2022): `python -m seqstruct.benchmarks.growth CASE --out FILE`.

FILE gets an exponent for each quantity, fitted to the longest lengths, with all points, for `seqstruct record`.

Layers of the stacks, batch and model size are those of `stack`, the other cases those of `growth_cases`.  Memory is the
greatest sum of new tensors that live at once, in a forward and backward pass, or in a forward pass alone without
gradients.  Operators run one after another, however many processors each of them keeps busy: their number stands for
parallel time.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from scipy.stats import linregress

from seqstruct.benchmarks.growth_cases import TABLE_4_1, TABLE_5_2
from seqstruct.benchmarks.stack import layer
from seqstruct.benchmarks.timing import Audit, Contestant, audit, measure
from seqstruct.command import module_parser, run_module
from seqstruct.ops.compiled import VARIABLE
from seqstruct.scoring.measurement import Measurement, write

LAYERS = {
    "SDPA": ("softmax", {}),
    "Sup": ("superposition_stack", {"size": 32}),
    "Nd": ("nondeterministic_stack", {"states": 2, "symbols": 3, "size": 5}),
}
CASES: dict[str, Callable[[int], Contestant]] = {
    **{name: partial(layer, *choice) for name, choice in LAYERS.items()}, **TABLE_4_1, **TABLE_5_2,
}
QUANTITIES = ("time", "memory", "forward_memory", "operators")  # ms, MB, MB, a number
FITTED = 3  # the longest lengths, through which an exponent is fitted


def grow(name: str, lengths: Sequence[int], repeats: int) -> dict[str, list[tuple[int, float]]]:
    """Each of `QUANTITIES` as pairs (length, value).  Raises ValueError on an unknown case or a length below 1."""
    if name not in CASES:
        raise ValueError(f"expected one of {', '.join(CASES)}, got {name!r}")
    if min(lengths) < 1:
        raise ValueError(f"expected lengths of 1 or more, got {min(lengths)}")
    found: dict[str, list[tuple[int, float]]] = {quantity: [] for quantity in QUANTITIES}
    for length in sorted(lengths):
        contestant = CASES[name](length)
        timing = measure({name: contestant}, repeats, warm_up=1)[name]
        both = audit(contestant)
        with torch.no_grad(), Audit() as forward:
            contestant.forward()
        values = timing.both, both.peak, forward.peak, float(both.operators)
        for quantity, value in zip(QUANTITIES, values, strict=True):
            found[quantity].append((length, value))
    return found


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """The slope of a straight line through the logarithms of the last `FITTED` points (x, y), by least squares.

    Raises ValueError below two points or if a number is not above 0.
    """
    last = points[-FITTED:]
    if len(last) < 2 or min(min(point) for point in last) <= 0:
        raise ValueError(f"expected two points or more of numbers above 0, got {list(last)}")
    return float(linregress(*np.log(last).T).slope)


def exponents(found: Mapping[str, Sequence[tuple[float, float]]], requests: Sequence[str]) -> list[Measurement]:
    """A metric NAME_exponent for each request [TABLE:]NAME[=QUANTITY].  Raises ValueError on an unknown quantity."""
    made = []
    for request in requests:
        name, _, quantity = request.partition("=")
        table, _, name = name.rpartition(":")
        points = found.get(quantity or name)
        if points is None:
            raise ValueError(f"expected [TABLE:]NAME=QUANTITY with one of {', '.join(found)}, got {request!r}")
        made.append(Measurement(f"{name}_exponent", exponent(points), "exponent of n", "length", points, table))
    return made


def _run(args: argparse.Namespace) -> None:
    points = [(max(1, length), 1.0) for length in sorted(args.lengths)]  # `grow` says what is wrong with those below
    exponents(dict.fromkeys(QUANTITIES, points), args.exponents)
    write(args.out, exponents(grow(args.case, args.lengths, args.repeats), args.exponents))


def main(argv: Sequence[str] | None = None) -> int:
    """As a command.  Kernels are off unless they are asked for: one of them counts as one operator at any length."""
    os.environ.setdefault(VARIABLE, "0")
    parser = module_parser("seqstruct.benchmarks.growth", __doc__)
    parser.add_argument("case", choices=tuple(CASES), metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--lengths", type=int, nargs="+", default=[40, 80, 160, 320, 640], metavar="N")
    parser.add_argument("--repeats", type=int, default=1, metavar="N", help="timed passes of each length (default 1)")
    parser.add_argument("--exponents", nargs="+", default=QUANTITIES, metavar="[TABLE:]NAME[=QUANTITY]",
                        help=f"of {', '.join(QUANTITIES)} (default: all)")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    return run_module(parser, argv, _run)


if __name__ == "__main__":
    raise SystemExit(main())
