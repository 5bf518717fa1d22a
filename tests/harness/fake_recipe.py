"""A recipe without a model: "training" is a process that counts how often it was run."""

import sys
from pathlib import Path

from seqstruct.harness.command import main
from seqstruct.harness.recipe import Estimate, Measurement, Recipe

_TRAIN = """
import pathlib, sys
log = pathlib.Path(sys.argv[1]); log.parent.mkdir(parents=True, exist_ok=True)
log.write_text(log.read_text() + "x" if log.exists() else "x")
sys.exit("bad luck" if sys.argv[2] == "fail" else 0)
"""


class Fake(Recipe):
    paper = "nmt_lectures"
    table = "1.5"
    family = "counters"
    rows = ("plain", "stack + gate", "fail")
    smoke_rows = ("plain",)
    seeds = {"smoke": 1, "small": 2, "paper": 3}
    licence = "public domain"
    width = 7

    def baselines(self, scale):
        return {} if scale == "paper" else {"copy": "plain"}

    def baseline(self, run, data, row):
        return [Measurement("times", len((data / "train.txt").read_text()), f"{row} of {run.cell.row}")]

    def settings(self, cell):
        return {"width": self.width, "row": cell.row}

    def dataset(self, cell):
        return "counts"

    def estimate(self, cell):
        return Estimate(minutes=1.5, disk=2.0, download=30.0)

    def prepare(self, run):
        def make(folder: Path) -> None:
            (folder / "train.txt").write_text("1 2 3\n")

        return run.prepared("counts", make)

    def train(self, run, data):
        run.command([sys.executable, "-c", _TRAIN, run.folder / "trained.txt", run.cell.row])
        return run.folder / "trained.txt"

    def evaluate(self, run, data, checkpoint):
        times = len(checkpoint.read_text())
        return [Measurement("times", times, "runs", "length", [(1, 0.5), (2, 1.5)]),
                Measurement("seed", run.cell.seed, "")]


recipe = Fake()
if __name__ == "__main__":
    raise SystemExit(main(recipe))
