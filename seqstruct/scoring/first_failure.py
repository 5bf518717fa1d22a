"""How far hypotheses are right: the share of the target before the first failure (Grefenstette et al. 2015).

    python -m seqstruct.scoring.first_failure DATA --results FOLDER --out FILE

DATA is made by `seqstruct prepare tree-transduction`; FOLDER holds what fairseq-generate wrote of it,
generate-valid.txt and generate-test.txt; FILE gets the mean shares, in percent, over all formulas of the validation
set, for each depth of the test set and over its depths, for `seqstruct record`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, takewhile
from pathlib import Path
from statistics import fmean

from seqstruct.command import module_parser, run_module
from seqstruct.data.text.aligned import read_lines
from seqstruct.data.tree_transduction.folder import Formulas, read_meta, read_split
from seqstruct.scoring.hypotheses import read_generate
from seqstruct.scoring.measurement import Measurement, write


def share_before_failure(hypothesis: Sequence[str], reference: Sequence[str]) -> float:
    """Share in [0, 1] of the reference's symbols, its end counted as one, that come before the first wrong one."""
    pairs = zip([*hypothesis, None], [*reference, None], strict=False)  # None is the end
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs)) / (len(reference) + 1)


def shares_by_depth(formulas: Formulas, hypotheses: Iterable[Sequence[str]]) -> dict[int, list[float]]:
    """The share of each formula, in percent, by its depth."""
    found: dict[int, list[float]] = {}
    for depth, hypothesis, reference in zip(formulas.depths, hypotheses, formulas.infix, strict=True):
        found.setdefault(depth, []).append(100 * share_before_failure(hypothesis, reference))
    return dict(sorted(found.items()))


def lengths_to_failure(shares: Mapping[str, Mapping[int, Sequence[float]]]) -> list[Measurement]:
    """The means of what `shares_by_depth` gives of valid and test."""
    means = [(depth, fmean(of_depth)) for depth, of_depth in shares["test"].items()]
    return [
        Measurement("validation_length_to_failure", fmean(chain.from_iterable(shares["valid"].values())), "%"),
        *(Measurement(f"length_to_failure_depth_{depth}", mean, "%") for depth, mean in means),
        Measurement("length_to_failure", fmean(mean for _, mean in means), "%", "depth", means),
    ]


def generated_shares(data: Path, folder: Path) -> dict[str, dict[int, list[float]]]:
    """Of what fairseq-generate wrote into a folder.  Raises ValueError if a formula has no hypothesis there."""
    found = {}
    for split in ("valid", "test"):
        formulas, path = read_split(data, split, read_meta(data)), folder / f"generate-{split}.txt"
        hypotheses = read_generate(read_lines(path), str(path), len(formulas.infix))
        found[split] = shares_by_depth(formulas, map(str.split, hypotheses))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    parser = module_parser("seqstruct.scoring.first_failure", __doc__)
    parser.add_argument("data", metavar="DATA", type=Path)
    parser.add_argument("--results", required=True, metavar="FOLDER", type=Path)
    parser.add_argument("--out", required=True, metavar="FILE")
    return run_module(
        parser, argv, lambda args: write(args.out, lengths_to_failure(generated_shares(args.data, args.results)))
    )


if __name__ == "__main__":
    raise SystemExit(main())
