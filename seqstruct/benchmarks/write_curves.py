"""What `decode` and `encode` measure: `python -m seqstruct.benchmarks.write_curves KIND ... --out FOLDER`, of JSON.

FOLDER/KIND.json is, for KIND conditional or unconditional (whole decoders), milliseconds of a step, greedy and in beam
search, by name as pairs with the length; `full`: seconds of one greedy decoding from nothing to the longest length;
for encoding time, milliseconds of a pass, and memory, the megabytes that it adds at most.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seqstruct.benchmarks.decode import LIMIT, PLANS, decoders, full_run, model_of
from seqstruct.benchmarks.encode import encoding
from seqstruct.benchmarks.timing import Place, machine
from seqstruct.command import module_parser, run_module
from seqstruct.data.files import new_folder, write_json

KINDS = ("conditional", "unconditional", "encoding")


def measured(kind: str, lengths: Sequence[int], repeats: int, full: bool, place: Place) -> dict[str, Any]:
    """By quantity; full is empty unless asked for; the machine's line.

    Raises ValueError on lengths or repeats below 1.
    """
    if min(lengths) < 1 or repeats < 1:
        raise ValueError(f"expected lengths and repeats of 1 or more, got {min(lengths)} and {repeats}")
    lengths = sorted(lengths)  # the last point of a curve is read as that of the greatest
    seconds: dict[str, float] = {}
    if kind == "encoding":
        found = {length: encoding(length, repeats, place) for length in lengths}
        curves = {
            quantity: {name: {n: found[n][name][part] for n in lengths} for name in found[lengths[0]]}
            for part, quantity in enumerate(("time", "memory"))
        }
    else:
        conditional, longest = kind == "conditional", max(lengths)
        found = decoders(lengths, repeats, conditional, place)
        curves = {"greedy": found["step ms"], "beam": found["beam step ms"]}
        for name in (*PLANS, LIMIT) if full else ():
            seconds[name] = full_run(model_of(name, conditional, longest, place), longest, place)
    pairs = {quantity: {name: list(points.items()) for name, points in by_name.items()}
             for quantity, by_name in curves.items()}
    return {**pairs, "full": seconds, "machine": f"{place}; {machine()}"}


def _run(args: argparse.Namespace) -> None:
    place = Place.of(args.device, "float32")
    with new_folder(args.out) as folder:
        for kind in args.kinds:
            full = args.full and kind == "conditional"
            write_json(folder / f"{kind}.json", measured(kind, args.lengths, args.repeats, full, place))


def main(argv: Sequence[str] | None = None) -> int:
    parser = module_parser("seqstruct.benchmarks.write_curves", __doc__)
    parser.add_argument("kinds", nargs="+", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--lengths", type=int, nargs="+", required=True, metavar="N")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="timed steps or passes (default 3)")
    parser.add_argument("--full", action="store_true", help="conditional: decode once to the longest length too")
    parser.add_argument("--device", default="cpu", help="cpu (default) or cuda")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    return run_module(parser, argv, _run)


if __name__ == "__main__":
    raise SystemExit(main())
