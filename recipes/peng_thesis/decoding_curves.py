"""Decoding speed by length (Peng 2022, figures 4.2, 4.3 and 5.1), as `seqstruct bench decode` measures it.

6 layers of size 512, batch 16, untrained; conditional with a source as long as the target (figures 4.2 and 5.1) or
without one (4.3); the thesis has a TPU, this recipe the processor, at scale paper the GPU.  All models take turns in
one measurement, which the cells of one seed share; another seed is another measurement.  A speed is that of the greedy
step at a length; with "beam" before its name the rows of all states are reordered before it, which copies them whole,
softmax's spare cells too; `full_run_speed` is that of one greedy conditional decoding from nothing to the longest
length.  "no attention", the limit, reads and writes by the identity.  It wants a machine that does nothing else; the
memory of the figures is decoding_states.py's.  figures.py draws the records.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seqstruct.benchmarks.decode import BATCH, LIMIT
from seqstruct.harness.command import main
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import Run

NAMES = {  # in the benchmark
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
LENGTHS = {"smoke": (8, 16), "small": (32, 64, 128, 256, 512, 1024, 2048), "paper": (32, 64, 128, 256, 512, 1024, 2048)}
REPEATS = {"smoke": 1, "small": 5, "paper": 7}


class DecodingCurves(Recipe):
    """Tokens per second; no training."""

    paper = "peng_thesis"
    table = "figure-4.2"
    family = "efficient decoders alone"
    rows = tuple(NAMES)
    smoke_rows = ("softmax", "RFA-Gaussian")
    seeds = {"smoke": 1, "small": 2, "paper": 2}
    max_minutes = {"smoke": 2.0, "small": 60.0, "paper": None}
    threads = {"smoke": 1, "small": 2, "paper": None}
    licence = "none needed, inputs are random"

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        return {"lengths": LENGTHS[cell.scale], "repeats": REPEATS[cell.scale], "batch": BATCH}

    def dataset(self, cell: Cell) -> str:
        device = "GPU" if cell.scale == "paper" else "CPU"
        return f"random tokens, batch {BATCH}, lengths {list(LENGTHS[cell.scale])}, {device}"

    def estimate(self, cell: Cell) -> Estimate:
        # the first cell of a seed measures for all
        return Estimate({"smoke": 0.3, "small": 4.0, "paper": 2.0}[cell.scale], 0.1)

    def prepare(self, run: Run) -> Path:
        scale = run.cell.scale

        def make(folder: Path) -> None:
            for kind in ("conditional", "unconditional"):
                run.progress.say(f"{run.cell}: measuring {kind} decoding, for all rows at once")
                run.command([
                    sys.executable, "-m", "seqstruct.benchmarks.write_curves", kind, "--repeats",
                    str(REPEATS[scale]), "--device", "cuda" if scale == "paper" else "cpu", "--out",
                    folder / f"{kind}.json", *(["--full"] if kind == "conditional" else []), "--lengths",
                    *map(str, LENGTHS[scale]),
                ])  # fmt: skip

        return run.prepared(f"decoding-{scale}-{run.cell.seed}", make)

    def train(self, run: Run, data: Path) -> Path:
        return data

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        found = []
        for figure, (kind, rows) in FIGURES.items():
            if run.cell.row in rows:
                content = json.loads((data / f"{kind}.json").read_text(encoding="utf-8"))
                found += of_figure(content, NAMES[run.cell.row], figure)
        return found


def of_figure(content: Mapping[str, Any], name: str, figure: str) -> list[Measurement]:
    """The numbers of one decoder; values are those at the longest length."""
    found: list[tuple[Any, ...]] = []
    for quantity, before in (("greedy", ""), ("beam", "beam_")):
        points = content[quantity][name]
        speed = [(n, 1e3 * BATCH / milliseconds) for n, milliseconds in points]
        faster = content[quantity][NAMES["softmax"]][-1][1] / points[-1][1]
        found += [
            (f"{before}decoding_speed", speed[-1][1], "tokens/s", "length", speed),
            (f"{before}speed_up", faster, "times softmax"),
        ]
    longest = content["greedy"][name][-1][0]
    if content["full"]:
        seconds, base_seconds = content["full"][name], content["full"][NAMES["softmax"]]
        found += [
            ("full_run_speed", longest * BATCH / seconds, "tokens/s"),
            ("full_run_speed_up", base_seconds / seconds, "times softmax"),
        ]
    return [Measurement(*values, table=figure) for values in found]


recipe = DecodingCurves()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
