"""How many times as fast as others', from recipes/SPEED.md: `python -m seqstruct.benchmarks.comparisons FILE`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from seqstruct.command import markdown_table, module_parser, run_module

# ours, what it is held against, the benchmark, and the names of both in its tables
COMPARISONS = (
    *((f"marginals of {kind}, both passes", other, "inference", f"{case}, seqstruct", f"{case}, {other}")
      for kind, case, others in (("chains", "chain", ("torch-struct",)),
                                 ("projective trees", "projective trees", ("torch-struct", "supar")),
                                 ("all trees", "all trees", ("torch-struct", "supar"))) for other in others),
    ("training step of a dependency parser", "supar", "parsing", "tree, likelihood", "supar, tree, likelihood"),
    *((f"{cell}, both passes", "`torch.nn.LSTM`", "rational", cell, "torch.nn.LSTM")
      for cell in ("RRNN(B)", "RRNN(B_max_plus)", "RRNN(C)", "RRNN(F)")),
    *((f"{name}, both passes", "fused softmax", "attention", name, "softmax, fused")
      for name in ("linear", "rfa, 64 frequencies", "rfa gated, 64 frequencies", "abc_mlp, 32 slots")),
    *((f"{name}, one step", "softmax, preallocated cache", "decode", name, "softmax, preallocated cache")
      for name in ("linear, 64 features", "rfa, 128 features", "rfa, 256 features", "abc_mlp, 32 slots")),
    *((f"{name}, an encoder's layer", "fused softmax", "encode", name, "softmax")
      for name in ("linformer, 64 slots", "linformer, 128 slots", "abc_mlp, 64 slots", "abc_mlp, 128 slots")),
    *((f"{what}: {name}", other, section, row, theirs)
      for section, what, others in (
          ("translation", "training step", {"fairseq": "fairseq lstm (input feeding)",
                                            "JoeyNMT": "JoeyNMT (input feeding)"}),
          ("beam search", "beam search", {"fairseq": "fairseq lstm (input feeding)"}))
      for name, row in (("Luong's, general", "luong"), ("the same with input feeding", "luong, input feeding"),
                        ("segmentation attention", "segmentation"),
                        ("GRU, additive", "GRU, additive, previous state"))
      for other, theirs in others.items()),
)  # fmt: skip
TIME = {  # the column of the time that counts
    "inference": 3, "rational": 4, "parsing": 2, "attention": 3, "decode": 2, "encode": 2, "translation": 3,
    "beam search": 2,
}  # fmt: skip
BY_LENGTH = ("attention", "decode")  # where the order turns with the length


def summary(text: str) -> str:
    """A table in markdown of `COMPARISONS`, least to greatest over sizes and runs; text: of SPEED.md."""
    rows = []
    for ours, other, section, own, theirs in COMPARISONS:
        ratios: dict[str, list[float]] = {}
        for times in read_times(text, section):
            for (name, size), value in times.items():
                if name == own and (theirs, size) in times:
                    place = f" at {int(size):,}" if section in BY_LENGTH else ""
                    ratios.setdefault(place, []).append(times[theirs, size] / value)
        if not ratios:
            raise ValueError(f"SPEED.md, {section}: expected rows {own!r} and {theirs!r} of one size")
        shown = ", ".join(f"{_range(found)}{place}" for place, found in ratios.items())
        rows.append([ours, other, shown])
    return markdown_table(["ours", "beside", "times as fast"], rows) + "\n"


def _range(ratios: Sequence[float]) -> str:
    ends = dict.fromkeys(f"{ratio:.2f}" if ratio < 2 else f"{ratio:.1f}" for ratio in (min(ratios), max(ratios)))
    return " to ".join(ends)


def read_times(text: str, section: str) -> list[dict[tuple[str, str], float]]:
    """Of each run of a benchmark, milliseconds by name and size."""
    heading = "translation" if section == "beam search" else section
    part = next((part for part in text.split("\n## ") if part.startswith(f"{heading}\n")), "")
    runs = []
    for block in re.findall(r"^```\n(.*?)^```$", part, re.S | re.M):
        training, _, beam = block.partition("\nBeam ")
        found: dict[tuple[str, str], float] = {}
        for line in (beam if section == "beam search" else training).splitlines():
            cells = re.split(r" {2,}", line)
            if len(cells) <= TIME[section] or not re.fullmatch(r"[\d.]+", cells[TIME[section]]):
                continue
            name, size = cells[0], cells[1]
            if section == "inference":
                name, size = f"{cells[0].partition(',')[0]}, {cells[1]}", cells[0]
            found[name, size] = float(cells[TIME[section]])
        runs.append(found)
    return runs


def main(argv: Sequence[str] | None = None) -> int:
    parser = module_parser("seqstruct.benchmarks.comparisons", __doc__)
    parser.add_argument("file", metavar="FILE", type=Path, help="as recipes/speed.sh writes it")
    return run_module(parser, argv, lambda args: print(summary(args.file.read_text(encoding="utf-8")), end=""))


if __name__ == "__main__":
    raise SystemExit(main())
