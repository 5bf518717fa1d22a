"""Where self-attention over formulas takes closing parentheses, and all symbols (Kim et al. 2017, Figure 3).

    python -m seqstruct.scoring.parentheses CHECKPOINT --data DIR --out FILE

A row of weights is a distribution over a symbol's parents.  FILE gets, for `seqstruct record`, the mean weight of the
closing parentheses of the test set on opening ones, and on the one that each closes, and that of all symbols but the
root on the two next to them, in percent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from seqstruct.bridge.passes import collect_readings
from seqstruct.command import module_parser, run_module
from seqstruct.scoring.measurement import Measurement, write
from seqstruct.scoring.trained import load_model


def pairs_of(symbols: Sequence[str]) -> dict[int, int]:
    """The opening parenthesis of each closing one, by place; symbols: a prefix form."""
    found, opened = {}, []
    for place, symbol in enumerate(symbols):
        if symbol == "(":
            opened.append(place)
        elif symbol == ")":
            found[place] = opened.pop()
    return found


def weights_on_openings(formulas: Iterable[tuple[Sequence[str], Tensor]]) -> list[Measurement]:
    """Means in percent, over all parentheses and symbols of all formulas.

    formulas: the T symbols of a prefix form, and weights T T in [0, 1], [i, j] that of symbol j for symbol i.
    """
    of_any, of_own, of_neighbours = [], [], []
    for symbols, weights in formulas:
        own = pairs_of(symbols)
        rows = weights[list(own)]
        of_any += rows[:, sorted(own.values())].sum(1).tolist()
        of_own += rows.gather(1, torch.tensor(list(own.values()))[:, None])[:, 0].tolist()
        after = torch.cat([weights.diagonal(1)[1:], weights.new_zeros(1)])  # nothing follows the last symbol
        of_neighbours += (weights.diagonal(-1) + after).tolist()
    return [
        Measurement("test_weight_on_openings", 100 * fmean(of_any), "%"),
        Measurement("test_weight_on_own_opening", 100 * fmean(of_own), "%"),
        Measurement("test_weight_on_neighbours", 100 * fmean(of_neighbours), "%"),
    ]


def even_weights(symbols: Sequence[str]) -> Tensor:
    """T T: the same weight on all symbols but the row's own."""
    number = len(symbols)
    return (1 - torch.eye(number, dtype=torch.float64)) / (number - 1)


def nearest_weights(symbols: Sequence[str]) -> Tensor:
    """T T: everything on the last opening parenthesis before the row's symbol, and nothing where there is none."""
    weights, last = torch.zeros(len(symbols), len(symbols), dtype=torch.float64), None
    for place, symbol in enumerate(symbols):
        if last is not None:
            weights[place, last] = 1
        if symbol == "(":
            last = place
    return weights


def attended(checkpoint: str | Path, data: str | Path | None = None) -> Iterator[tuple[list[str], Tensor]]:
    """The T symbols and weights T T, the mean over heads, of the formulas of the test set, one after another.

    Raises ValueError if the checkpoint is of another task, or its encoder has no attention.
    """
    from seqstruct.tasks.tree_transduction import TreeTransductionTask

    model, task = load_model(checkpoint, data)
    if not isinstance(task, TreeTransductionTask):
        raise ValueError(f"{checkpoint}: expected a model of the task tree_transduction")
    task.load_dataset("test")
    dataset: Any = task.datasets["test"]
    for number in range(len(dataset)):
        source = dataset[number]["source"]
        with torch.no_grad(), collect_readings() as readings:
            model.encoder(source[None], torch.tensor([len(source)]))
        if not readings:
            raise ValueError(f"{checkpoint}: its encoder has no self-attention")
        yield [task.source_dictionary[i] for i in source], readings[0].reading.weights[0].mean(0).double()


def main(argv: Sequence[str] | None = None) -> int:
    parser = module_parser("seqstruct.scoring.parentheses", __doc__)
    parser.add_argument("checkpoint", metavar="CHECKPOINT", type=Path)
    parser.add_argument("--data", metavar="DIR", help="made by `seqstruct prepare tree-transduction`")
    parser.add_argument("--out", required=True, metavar="FILE")
    return run_module(
        parser, argv, lambda args: write(args.out, weights_on_openings(attended(args.checkpoint, args.data)))
    )


if __name__ == "__main__":
    raise SystemExit(main())
