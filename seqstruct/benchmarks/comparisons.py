"""How many times as fast as others', from recipes/SPEED.md: `python -m seqstruct.benchmarks.comparisons`.

Ours is what a user gets; a second column has PyTorch's operators alone, from the sections NAME-pytorch.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from seqstruct.command import markdown_table, module_parser, run_module

FILE = Path(__file__).resolve().parents[2] / "recipes" / "SPEED.md"
OWN = "-pytorch"  # ends the names of sections without what is compiled

# ours, what it is held against, the benchmark, and the names of both in its tables
COMPARISONS = (
    *((f"marginals of {kind}, both passes", other, "inference", f"{case}, seqstruct", f"{case}, {other}")
      for kind, case, others in (("chains", "chain", ("torch-struct",)),
                                 ("projective trees", "projective trees", ("torch-struct", "supar")),
                                 ("all trees", "all trees", ("torch-struct", "supar"))) for other in others),
    *((f"{what} of {kind}, both passes", "torch-struct", "distributions", f"{kind}, {what}, seqstruct",
       f"{kind}, {what}, torch-struct")
      for kind in ("brackets", "segments") for what in ("log-partition", "marginals")),
    ("training step of a dependency parser", "supar", "parsing", "tree, likelihood", "supar, tree, likelihood"),
    *((f"{cell}, both passes", "`torch.nn.LSTM`", "rational", cell, "torch.nn.LSTM")
      for cell in ("RRNN(B)", "RRNN(B_max_plus)", "RRNN(C)", "RRNN(F)")),
    *((f"{name}, both passes", "fused softmax", "attention", name, "softmax, fused")
      for name in ("linear", "rfa, 64 frequencies", "rfa gated, 64 frequencies", "abc_mlp, 32 slots", "delta",
                   "gated_delta", "delta_product, 2 steps", "kda", "gla", "retention", "log_linear, 12 levels")),
    ("softmax with dropout, both passes", "PyTorch", "attention", "softmax, dropout 0.1",
     "softmax, dropout 0.1, PyTorch"),
    ("gated_delta, both passes", "Hugging Face", "attention", "gated_delta", "Hugging Face, gated_delta"),
    *((f"{name}, one step", "softmax, preallocated cache", "decode", name, "softmax, preallocated cache")
      for name in ("linear, 64 features", "rfa, 128 features", "rfa, 256 features", "abc_mlp, 32 slots")),
    *((f"{name}, an encoder's layer", "fused softmax", "encode", name, "softmax")
      for name in ("linformer, 64 slots", "linformer, 128 slots", "abc_mlp, 64 slots", "abc_mlp, 128 slots")),
    *((f"{what}: {name}", other, section, row, f"{theirs} (input feeding)")
      for section, what in (("translation", "training step"), ("beam search", "beam search"))
      for name, row in (("Luong's, general, input feeding", "luong, input feeding"),
                        ("Luong's, general, no input feeding", "luong"),
                        ("segmentation attention", "segmentation"),
                        ("GRU, additive", "GRU, additive, previous state"))
      for other, theirs in (("fairseq", "fairseq lstm"), ("JoeyNMT", "JoeyNMT"))),
)
FRONT = {  # those of README.md, beside the one that is slowest of all
    ("marginals of chains, both passes", "torch-struct"), ("marginals of projective trees, both passes", "supar"),
    ("marginals of all trees, both passes", "torch-struct"), ("log-partition of brackets, both passes", "torch-struct"),
    ("RRNN(B), both passes", "`torch.nn.LSTM`"), ("linear, both passes", "fused softmax"),
    ("rfa, 64 frequencies, both passes", "fused softmax"), ("gated_delta, both passes", "Hugging Face"),
    ("linear, 64 features, one step", "softmax, preallocated cache"),
    ("abc_mlp, 128 slots, an encoder's layer", "fused softmax"),
    ("training step: Luong's, general, input feeding", "fairseq"),
    ("training step: GRU, additive", "fairseq"), ("training step: Luong's, general, input feeding", "JoeyNMT"),
}
TIME = {  # the column of the time that counts
    "inference": 3, "distributions": 4, "rational": 4, "parsing": 2, "attention": 3, "decode": 2, "encode": 2,
    "translation": 3, "beam search": 2,
}
BY_LENGTH = ("attention", "decode")  # where the order turns with the length


def summary(text: str, front: bool = False) -> str:
    """A table in markdown of `COMPARISONS`, least to greatest over sizes and runs; text: of SPEED.md.

    What was not measured has an empty cell.  front: those of `FRONT` that were, without PyTorch's operators alone.
    Raises ValueError if nothing was measured at all.
    """
    found = {(ours, other): [_ratios(text, section + end, section, own, theirs) for end in ("", OWN)]
             for ours, other, section, own, theirs in COMPARISONS}
    rows = [[*pair, *map(_shown, both)] for pair, both in found.items() if any(both)]
    if not rows:
        raise ValueError("expected rows of two contestants of one size, as recipes/speed.sh writes them, found none")
    if not front:
        return markdown_table(["ours", "beside", "times as fast", "by PyTorch alone"], rows) + "\n"
    measured = {pair: min(map(min, ratios.values())) for pair, (ratios, _) in found.items() if ratios}
    chosen = FRONT | {min(measured, key=measured.__getitem__, default=("", ""))}
    rows = [row[:3] for row in rows if tuple(row[:2]) in chosen and row[2]]
    return markdown_table(["ours", "beside", "times as fast"], rows) + "\n"


def _ratios(text: str, section: str, kind: str, own: str, theirs: str) -> dict[str, list[float]]:
    """By length where the order turns with it, in words; of all sizes and runs."""
    found: dict[str, list[float]] = {}
    for times in read_times(text, section, kind):
        for (name, size), value in times.items():
            if name == own and (theirs, size) in times:
                place = f" at {int(size):,}" if kind in BY_LENGTH else ""
                found.setdefault(place, []).append(times[theirs, size] / value)
    return found


def _shown(ratios: Mapping[str, Sequence[float]]) -> str:
    return ", ".join(f"{_range(found)}{place}" for place, found in ratios.items())


def _range(ratios: Sequence[float]) -> str:
    ends = dict.fromkeys(f"{ratio:.2f}" if ratio < 2 else f"{ratio:.1f}" for ratio in (min(ratios), max(ratios)))
    return " to ".join(ends)


def read_times(text: str, section: str, kind: str) -> list[dict[tuple[str, str], float]]:
    """Of each run of a benchmark, milliseconds by name and size; kind: the section without its end."""
    heading = section.replace("beam search", "translation")
    part = next((part for part in text.split("\n## ") if part.startswith(f"{heading}\n")), "")
    runs = []
    for block in re.findall(r"^```\n(.*?)^```$", part, re.S | re.M):
        training, _, beam = block.partition("\nBeam ")
        found: dict[tuple[str, str], float] = {}
        for line in (beam if kind == "beam search" else training).splitlines():
            cells = re.split(r" {2,}", line)
            if len(cells) <= TIME[kind] or not re.fullmatch(r"[\d.]+", cells[TIME[kind]]):
                continue
            name, size = cells[0], cells[1]
            if kind in ("inference", "distributions"):
                name, size = ", ".join([cells[0].partition(",")[0], *cells[1 : TIME[kind] - 1]]), cells[0]
            found[name, size] = float(cells[TIME[kind]])
        runs.append(found)
    return runs


def main(argv: Sequence[str] | None = None) -> int:
    parser = module_parser("seqstruct.benchmarks.comparisons", __doc__)
    parser.add_argument("file", metavar="FILE", type=Path, nargs="?", default=FILE,
                        help="as recipes/speed.sh writes it (default: recipes/SPEED.md)")
    parser.add_argument("--front", action="store_true", help="the few rows of README.md, and the slowest of all")

    def run(args: argparse.Namespace) -> None:
        print(summary(args.file.read_text(encoding="utf-8"), args.front), end="")

    return run_module(parser, argv, run)


if __name__ == "__main__":
    raise SystemExit(main())
