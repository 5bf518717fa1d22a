"""Rows of figures 4.2, 4.3, 5.1 and table 5.8 of Peng (2022): `python -m seqstruct.benchmarks.efficient_rows WHAT ROW`.

WHAT is speed (of decoders) or encoding, both with `--curves FOLDER` as `write_curves` makes it, or states (megabytes of
decoders' states, counted here by `--lengths`).  `--out FILE` is for `seqstruct record`.

A decoder's speed is that of the greedy step at a length; with "beam" before its name the rows of all states are
reordered before it.  `full_run_speed` is that of one greedy conditional decoding from nothing to the longest length.
`state_memory` is what is read at a step, `reserved_memory` counts a cache's spare cells too.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from seqstruct.benchmarks.decode import BATCH, LIMIT, states
from seqstruct.benchmarks.encode import BASE
from seqstruct.benchmarks.timing import Place
from seqstruct.command import module_parser, run_module
from seqstruct.scoring.measurement import Measurement, write

DECODERS = {  # in the benchmark
    "softmax": "softmax",
    "RFA-Gaussian": "rfa, 256 and 128 features",
    "RFA-arccos": "rfa arccos, 128 and 64 features",
    "T2R": "t2r, 32 and 4 features",
    "ABC-MLP": "abc_mlp, 32 and 8 slots",
    "phi-elu": "linear",
    "no attention": LIMIT,
}
FIGURES = {  # kind of decoding, and the rows of the figure; the rest is beside it
    "figure-4.2": ("conditional", ("softmax", "RFA-Gaussian", "RFA-arccos")),
    "figure-4.3": ("unconditional", ("softmax", "RFA-Gaussian", "RFA-arccos", "phi-elu", "no attention")),
    "figure-5.1": ("conditional", ("softmax", "RFA-Gaussian", "T2R", "ABC-MLP", "phi-elu", "no attention")),
}
ENCODERS = {
    "BASE": BASE,
    "Linformer 64": "linformer, 64 slots",
    "Linformer 128": "linformer, 128 slots",
    "ABC-MLP 64": "abc_mlp, 64 slots",
    "ABC-MLP 128": "abc_mlp, 128 slots",
}


def speed(row: str, curves: Path) -> list[Measurement]:
    """Of a decoder in each figure that has it; values are those at the longest length."""
    found: list[Measurement] = []
    for figure, (kind, rows) in FIGURES.items():
        if row in rows:
            content = json.loads((curves / f"{kind}.json").read_text(encoding="utf-8"))
            found += [m._replace(table=figure) for m in _speeds(content, DECODERS[row])]
    return found


def _speeds(content: Mapping[str, Any], name: str) -> list[Measurement]:
    found = []
    for quantity, before in (("greedy", ""), ("beam", "beam_")):
        points = content[quantity][name]
        tokens = [(n, 1e3 * BATCH / milliseconds) for n, milliseconds in points]
        faster = content[quantity][DECODERS["softmax"]][-1][1] / points[-1][1]
        found += [
            Measurement(f"{before}decoding_speed", tokens[-1][1], "tokens/s", "length", tokens),
            Measurement(f"{before}speed_up", faster, "times softmax"),
        ]
    if content["full"]:
        seconds, base_seconds = content["full"][name], content["full"][DECODERS["softmax"]]
        longest = content["greedy"][name][-1][0]
        found += [
            Measurement("full_run_speed", longest * BATCH / seconds, "tokens/s"),
            Measurement("full_run_speed_up", base_seconds / seconds, "times softmax"),
        ]
    return found


def memory(row: str, lengths: Sequence[int]) -> list[Measurement]:
    """Of a decoder's states in each figure that has it.  Nothing is timed: the same on every machine."""
    lengths = sorted(lengths)  # values are those at the longest

    @cache
    def counted(kind: str) -> list[dict[int, tuple[float, float]]]:
        place = Place.of("cpu", "float32")
        return [states(DECODERS[name], lengths, kind == "conditional", place) for name in (row, "softmax")]

    found = []
    for figure, kind in ((figure, kind) for figure, (kind, rows) in FIGURES.items() if row in rows):
        own, base = counted(kind)
        used, reserved = ([(length, pair[part]) for length, pair in own.items()] for part in range(2))
        share = 100 * used[-1][1] / base[lengths[-1]][0]
        found += [
            Measurement("state_memory", used[-1][1], "MB", "length", used, figure),
            Measurement("memory_share", share, "% of softmax's", table=figure),
            Measurement("reserved_memory", reserved[-1][1], "MB", "length", reserved, figure),
        ]
    return found


def encoding(row: str, curves: Path) -> list[Measurement]:
    content = json.loads((curves / "encoding.json").read_text(encoding="utf-8"))
    (_, time), (_, peak) = (content[quantity][ENCODERS[row]][0] for quantity in ("time", "memory"))
    base_time, base_peak = (content[quantity][BASE][0][1] for quantity in ("time", "memory"))
    return [
        Measurement("encoding_speed", base_time / time, "times BASE"),
        Measurement("memory", peak / base_peak, "times BASE"),
        Measurement("layer_time", time, "ms"),
    ]


def _run(args: argparse.Namespace) -> None:
    rows = ENCODERS if args.what == "encoding" else DECODERS
    if args.row not in rows:
        raise ValueError(f"expected a row of {', '.join(rows)}, got {args.row!r}")
    if (args.what == "states") != (args.curves is None):
        raise ValueError("expected --lengths for states, --curves for what was timed")
    made = {"speed": speed, "states": memory, "encoding": encoding}[args.what]
    write(args.out, made(args.row, args.lengths if args.curves is None else args.curves))


def main(argv: Sequence[str] | None = None) -> int:
    parser = module_parser("seqstruct.benchmarks.efficient_rows", __doc__)
    parser.add_argument("what", choices=("speed", "states", "encoding"))
    parser.add_argument("row", metavar="ROW")
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--curves", type=Path, metavar="FOLDER", help="speed, encoding: what was measured")
    given.add_argument("--lengths", type=int, nargs="+", metavar="N", help="states: tokens decoded")
    parser.add_argument("--out", required=True, metavar="FILE")
    return run_module(parser, argv, _run)


if __name__ == "__main__":
    raise SystemExit(main())
