"""Encoding texts with bounded memory (Peng 2022, table 5.8): speed and memory, as by `seqstruct bench encode`.

One layer of RoBERTa-base's size, forward alone, 512 tokens, batch 16; the thesis has a GPU, this recipe the processor,
at scale paper the GPU.  Memory is what a pass adds at most.  All layers take turns in one measurement, which the cells
of one seed share; another seed is another measurement.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seqstruct.benchmarks.encode import BASE, BATCH
from seqstruct.harness.command import main
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import Run

NAMES = {  # in the benchmark
    "BASE": BASE,
    "Linformer 64": "linformer, 64 slots",
    "Linformer 128": "linformer, 128 slots",
    "ABC-MLP 64": "abc_mlp, 64 slots",
    "ABC-MLP 128": "abc_mlp, 128 slots",
}
LENGTH = {"smoke": 16, "small": 512, "paper": 512}
REPEATS = {"smoke": 1, "small": 7, "paper": 20}


class TextEncoding(Recipe):
    """Ratios to softmax; no training."""

    paper = "peng_thesis"
    table = "5.8"
    family = "efficient encoder layers alone"
    rows = tuple(NAMES)
    smoke_rows = ("BASE", "ABC-MLP 64")
    seeds = {"smoke": 1, "small": 2, "paper": 2}
    threads = {"smoke": 1, "small": 2, "paper": None}
    licence = "none needed, inputs are random"

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        return {"length": LENGTH[cell.scale], "repeats": REPEATS[cell.scale], "batch": BATCH}

    def dataset(self, cell: Cell) -> str:
        device = "GPU" if cell.scale == "paper" else "CPU"
        return f"random vectors, one layer, batch {BATCH}, {LENGTH[cell.scale]} tokens, {device}"

    def estimate(self, cell: Cell) -> Estimate:
        return Estimate({"smoke": 0.1, "small": 0.5, "paper": 0.2}[cell.scale], 0.1)

    def prepare(self, run: Run) -> Path:
        scale = run.cell.scale

        def make(folder: Path) -> None:
            run.progress.say(f"{run.cell}: measuring, for all rows at once")
            run.command([
                sys.executable, "-m", "seqstruct.benchmarks.write_curves", "encoding", "--repeats",
                str(REPEATS[scale]), "--device", "cuda" if scale == "paper" else "cpu", "--out",
                folder / "encoding.json", "--lengths", str(LENGTH[scale]),
            ])  # fmt: skip

        return run.prepared(f"encoding-{scale}-{run.cell.seed}", make)

    def train(self, run: Run, data: Path) -> Path:
        return data

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        content = json.loads((data / "encoding.json").read_text(encoding="utf-8"))
        own, base = NAMES[run.cell.row], NAMES["BASE"]
        (_, time), (_, memory) = content["time"][own][0], content["memory"][own][0]
        return [
            Measurement("encoding_speed", content["time"][base][0][1] / time, "times BASE"),
            Measurement("memory", memory / content["memory"][base][0][1], "times BASE"),
            Measurement("layer_time", time, "ms"),
        ]


recipe = TextEncoding()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
