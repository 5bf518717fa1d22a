"""Training losses of a model, and of one fine-tuned from it: `python -m seqstruct.harness.losses LOG [LOG] --out FILE`.

One log: `training_loss`, that of the last epoch.  Two: that of the second by update, each a mean over the updates from
one line of the log to the next and the last one its value, and `updates_to_softmax_loss`, the first update at which it
is at or below the first's, where there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seqstruct.bridge import logs
from seqstruct.command import module_parser, run_module
from seqstruct.scoring.measurement import Measurement, write


def loss_curve(log: Path) -> list[tuple[float, float]]:
    """Updates, and the mean training loss of those up to each; of whole epochs, where they are shorter than a line.

    What a training that was interrupted did again counts once, as it was the last time.
    """
    entries = logs.parse_lines(log.read_text(encoding="utf-8").splitlines())
    found = [(e.statistics["num_updates"], e.statistics["loss"]) for e in entries if e.tag == "train_inner"]
    found = found or [(e.statistics["train_num_updates"], e.statistics["train_loss"])
                      for e in entries if e.tag == "train"]
    return sorted(dict(found).items())


def last_epoch(log: Path) -> tuple[float, float]:
    """The number of updates at its end, and its training loss.  Raises ValueError if none was finished."""
    entries = logs.parse_lines(log.read_text(encoding="utf-8").splitlines())
    found = [(e.statistics["train_num_updates"], e.statistics["train_loss"]) for e in entries if e.tag == "train"]
    if not found:
        raise ValueError(f"{log}: no epoch was finished")
    return found[-1]


def measure(first: Path, second: Path | None) -> list[Measurement]:
    """As above, in bits.  Raises ValueError as `last_epoch`, and if the second log says nothing of its last updates."""
    _, aim = last_epoch(first)
    if second is None:
        return [Measurement("training_loss", aim, "bits")]
    end, _ = last_epoch(second)
    curve = loss_curve(second)
    if curve[-1][0] != end:
        raise ValueError(f"{second}: expected a line of statistics after its last update, {end:.0f}, got the last one "
                         f"after {curve[-1][0]:.0f}; common.log_interval has to divide the number of updates")
    reached = [Measurement("updates_to_softmax_loss", update, "updates") for update, loss in curve if loss <= aim]
    return [Measurement("training_loss", curve[-1][1], "bits", "update", curve), *reached[:1]]


def main(argv: Sequence[str] | None = None) -> int:
    parser = module_parser("seqstruct.harness.losses", __doc__)
    parser.add_argument("first", metavar="LOG", type=Path)
    parser.add_argument("second", metavar="LOG", type=Path, nargs="?", help="of the one that is fine-tuned")
    parser.add_argument("--out", required=True, metavar="FILE", help="JSON, for `seqstruct record`")
    return run_module(parser, argv, lambda args: write(args.out, measure(args.first, args.second)))


if __name__ == "__main__":
    raise SystemExit(main())
