"""Figures 4.2, 4.3, 4.4 and 5.1 of the thesis, drawn from the records of decoding_curves.py, decoding_states.py and
softmax_transfer.py.

Decoding: tokens per second, greedily and in beam search, and megabytes of state by length, means over measurements.
Figure 4.4: training loss by update, mean over seeds, and the softmax model's as a dashed line.  A figure without
records is left out, and so is a panel.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from matplotlib.figure import Figure

from seqstruct.benchmarks.curves import length_panels
from seqstruct.harness import plot
from seqstruct.harness.paper import read_tables
from seqstruct.harness.records import SCALES, Record, latest, read_records

FOLDER = Path(__file__).resolve().parent
DECODING = ("figure-4.2", "figure-4.3", "figure-5.1")
AXES = {
    "decoding_speed": "tokens per second", "beam_decoding_speed": "tokens per second, beam search",
    "state_memory": "state, MB",
}  # fmt: skip


def series(records: Sequence[Record], metric: str) -> dict[str, dict[float, float]]:
    """By row, in the order of the records, the mean over seeds at each point of a metric that is split up."""
    found: dict[str, dict[float, list[float]]] = {}
    for record in records:
        for x, y in record.points(metric):
            found.setdefault(record.row, {}).setdefault(x, []).append(y)
    return {row: {x: fmean(values) for x, values in sorted(points.items())} for row, points in found.items()}


def decoding(records: Sequence[Record], title: str) -> Figure:
    """Speed and memory by length."""
    panels = [(label, series(records, metric)) for metric, label in AXES.items()]
    return length_panels([panel for panel in panels if panel[1]], title)


def transfer(records: Sequence[Record], title: str) -> Figure:
    """Training loss by update."""
    figure = Figure(figsize=(6.4, 4.0))
    axes = figure.subplots()
    for row, points in series(records, "training_loss").items():
        axes.plot(list(points), list(points.values()), marker="o", markersize=3, label=row)
    softmax = [
        r.metrics["training_loss"]["value"] for r in records if r.row == "softmax" and "training_loss" in r.metrics
    ]
    if softmax:
        axes.axhline(fmean(softmax), color="black", linestyle="--", linewidth=1.0, label="softmax, trained")
    axes.set_xlabel("updates")
    axes.set_ylabel("training loss, bits")
    axes.set_title(title, fontsize="medium")
    axes.legend(fontsize="small")
    axes.grid(alpha=0.3)
    return figure


def draw(records: Path, scale: str, out: Path) -> list[Path]:
    """Every figure that has records of the scale; their paths.  Raises ValueError if none has."""
    paths = []
    orders = {table.name: [entry.row for entry in table.published] for table in read_tables(FOLDER)}
    for name in (*DECODING, "figure-4.4"):
        found = [r for r in latest(read_records(records / f"{name}.jsonl")) if r.scale == scale]
        found.sort(key=lambda r, order=orders[name]: order.index(r.row) if r.row in order else len(order))
        if not found:
            continue
        title = f"{name.replace('-', ' ').capitalize()}, scale {scale}"
        plot.save((decoding if name in DECODING else transfer)(found, title), out / f"{name}.png")
        paths.append(out / f"{name}.png")
    if not paths:
        raise ValueError(f"{records}: no records of these figures at scale {scale}; run decoding_curves.py and "
                         "softmax_transfer.py first")  # fmt: skip
    return paths


def main() -> int:
    """Draw; an error is one sentence on standard error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", choices=SCALES, default="small", help="of the records (default: small)")
    parser.add_argument("--records", type=Path, default=FOLDER / "records", metavar="DIR",
                        help="default: records/ beside this script")
    parser.add_argument("--out", type=Path, default=Path("runs/peng_thesis/figures"), metavar="DIR",
                        help="default: runs/peng_thesis/figures")
    args = parser.parse_args()
    try:
        args.out.mkdir(parents=True, exist_ok=True)
        for path in draw(args.records, args.scale, args.out):
            print(path)
    except (ValueError, OSError) as error:
        print(f"figures.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
