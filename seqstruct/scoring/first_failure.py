"""How far hypotheses are right: the share of the target before the first failure (Grefenstette et al. 2015).

    python -m seqstruct.scoring.first_failure DATA --results FOLDER --out FILE

DATA is made by `seqstruct prepare tree-transduction`; FOLDER holds what fairseq-generate wrote of it,
generate-valid.txt and generate-test.txt; FILE gets the mean shares, in percent, over all formulas of the validation
set, for each depth of the test set and over its depths, for `seqstruct record`.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seqstruct.command import module_parser, run_module
from seqstruct.data.files import write_json
from seqstruct.data.text.aligned import read_lines
from seqstruct.data.tree_transduction.folder import read_meta, read_split
from seqstruct.scoring.hypotheses import read_generate


def share_before_failure(hypothesis: Sequence[str], reference: Sequence[str]) -> float:
    """Share in [0, 1] of the reference's symbols, its end counted as one, that come before the first wrong one."""
    right = 0
    for own, wanted in zip(hypothesis, reference, strict=False):
        if own != wanted:
            break
        right += 1
    if right == len(hypothesis) == len(reference):
        right += 1
    return right / (len(reference) + 1)


def shares_by_depth(data: Path, split: str, generated: Path) -> dict[int, list[float]]:
    """The share of each formula of a split, by its depth.

    generated: output of fairseq-generate.  Raises ValueError if a formula has no hypothesis there.
    """
    formulas = read_split(data, split, read_meta(data))
    hypotheses = read_generate(read_lines(generated), str(generated), len(formulas.infix))
    found: dict[int, list[float]] = {}
    for depth, hypothesis, reference in zip(formulas.depths, hypotheses, formulas.infix, strict=True):
        found.setdefault(depth, []).append(share_before_failure(hypothesis.split(), reference))
    return dict(sorted(found.items()))


def lengths_to_failure(data: Path, folder: Path) -> list[dict[str, Any]]:
    """What the command writes: metric, value and unit of each number, of the last one its points by depth too."""
    shares = {split: shares_by_depth(data, split, folder / f"generate-{split}.txt") for split in ("valid", "test")}
    validation = statistics.fmean(share for of_depth in shares["valid"].values() for share in of_depth)
    means = {depth: 100 * statistics.fmean(of_depth) for depth, of_depth in shares["test"].items()}
    values = {
        "validation_length_to_failure": 100 * validation,
        **{f"length_to_failure_depth_{depth}": value for depth, value in means.items()},
        "length_to_failure": statistics.fmean(means.values()),
    }
    found: list[dict[str, Any]] = [{"metric": name, "value": value, "unit": "%"} for name, value in values.items()]
    found[-1] |= {"axis": "depth", "points": sorted(means.items())}
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit status comes back."""
    parser = module_parser("seqstruct.scoring.first_failure", __doc__)
    parser.add_argument("data", metavar="DATA", type=Path)
    parser.add_argument("--results", required=True, metavar="FOLDER", type=Path)
    parser.add_argument("--out", required=True, metavar="FILE")
    return run_module(parser, argv, lambda args: write_json(args.out, lengths_to_failure(args.data, args.results)))


if __name__ == "__main__":
    raise SystemExit(main())
