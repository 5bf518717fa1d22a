"""What fairseq-validate says of models of several seeds that were trained as one (`--report-seeds` of `babi_qa`).

`python -m seqstruct.harness.seeds LOG --out FILE.json` writes accuracies and the loss of validation, each seed's beside
their mean, and the mean accuracy of facts of the half of the seeds that is best on validation, for `seqstruct record`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from seqstruct.bridge.logs import parse_lines
from seqstruct.command import module_parser, run_module
from seqstruct.scoring.measurement import Measurement, write

_KEY = re.compile(r"(valid|test)_(loss|accuracy|fact_accuracy)_seed_(\d+)")
FIGURES = {
    "test_accuracy": ("test", "accuracy", "%"), "validation_accuracy": ("valid", "accuracy", "%"),
    "validation_loss": ("valid", "loss", "nats"), "fact_accuracy": ("test", "fact_accuracy", "%"),
}


def measure(lines: Sequence[str], answers_alone: bool = False) -> list[Measurement]:
    """The figures of a log; answers_alone: without those of facts.

    The better of two seeds has the greater validation accuracy, or the less loss where these are equal.
    Raises ValueError if the log has no figures of seeds on both sets, or those of facts of one seed alone.
    """
    found: dict[tuple[str, str], dict[int, float]] = {}
    for entry in parse_lines(lines):
        for key, value in entry.statistics.items():
            if parts := _KEY.fullmatch(key):
                found.setdefault((parts[1], parts[2]), {})[int(parts[3])] = value
    wanted = {metric: of for metric, of in FIGURES.items() if not (answers_alone and "fact" in metric)}
    for split, figure, _ in wanted.values():
        if (split, figure) not in found:
            raise ValueError(f"expected {split}_{figure}_seed_N, with --report-seeds, found none")
    measured = [
        Measurement(metric, fmean(values.values()), unit, "seed", sorted(values.items()))
        for metric, (split, figure, unit) in wanted.items() for values in [found[split, figure]]
    ]
    if not answers_alone:
        accuracy, loss = found["valid", "accuracy"], found["valid", "loss"]
        if len(accuracy) < 2:
            raise ValueError(f"expected two seeds or more, of which a half is best, got {len(accuracy)}")
        order = sorted(sorted(accuracy), key=lambda seed: (-accuracy[seed], loss[seed]))
        facts = [found["test", "fact_accuracy"][seed] for seed in order[: len(order) // 2]]
        measured.append(Measurement("fact_accuracy_of_best_half", fmean(facts), "%"))
    return measured


def main(argv: Sequence[str] | None = None) -> int:
    parser = module_parser("seqstruct.harness.seeds", __doc__)
    parser.add_argument("log", metavar="LOG", type=Path, help="of fairseq-validate, with --log-format json")
    parser.add_argument("--answers-alone", action="store_true", help="nothing of facts")
    parser.add_argument("--out", required=True, metavar="FILE", help="JSON, for `seqstruct record`")
    return run_module(parser, argv, lambda args: write(
        args.out, measure(args.log.read_text(encoding="utf-8").splitlines(), args.answers_alone)
    ))


if __name__ == "__main__":
    raise SystemExit(main())
