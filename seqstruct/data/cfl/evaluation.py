"""A model against the distribution that the strings were drawn from, overall and by length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from fairseq.utils import apply_to_sample
from torch import Tensor


class Comparison(NamedTuple):
    """Figures of the strings of one length (or of all, length None), in nats a symbol, EOS counted.

    cross_entropy: of the model, which pays for the length too.  difference: cross_entropy - lower_bound.
    lower_bound: of the true distribution; the length is given in the row of one length, and uniform over the valid
    lengths of the split in the row of all.
    """

    length: int | None
    strings: int
    cross_entropy: float
    lower_bound: float
    difference: float


class Evaluation(NamedTuple):
    """All strings of a split, and those of each length, shortest first."""

    overall: Comparison
    by_length: tuple[Comparison, ...]


def string_losses(model: Any, sample: Mapping[str, Any]) -> Tensor:
    """Negative log-probability of each string and EOS under a fairseq language model: B, nats."""
    log_probs = model.get_normalized_probs(model(**sample["net_input"]), log_probs=True, sample=sample)
    return -log_probs.gather(2, sample["target"].unsqueeze(2)).squeeze(2).sum(1)


@torch.no_grad()
def evaluate_cfl(model: Any, task: Any, split: str, batch_size: int = 50) -> Evaluation:
    """Compare a model with the true distribution on a split of a `cfl_language_modeling` task.

    The split is loaded if it is not; batch_size is the most strings in a batch, all of one length.
    The model is put into evaluation mode for the time.  Raises ValueError if the split has no log-probabilities.
    """
    if split not in task.datasets:
        task.load_dataset(split)
    dataset = task.dataset(split)
    if dataset.log_probability is None:
        raise ValueError(f"the split {split!r} has no true log-probabilities; valid and test have")
    device = next(model.parameters()).device
    losses = np.zeros(len(dataset))
    training = model.training
    model.eval()
    try:
        for batch in dataset.stretches(dataset.ordered_indices(), batch_size):
            sample = apply_to_sample(lambda tensor: tensor.to(device), dataset.collater([dataset[i] for i in batch]))
            losses[batch] = string_losses(model, sample).double().cpu().numpy()
    finally:
        model.train(training)
    bounds = -dataset.log_probability
    every = np.ones(len(dataset), dtype=bool)
    return Evaluation(
        _compare(None, every, losses, bounds + dataset.log_valid_lengths, dataset.sizes),
        tuple(
            _compare(int(size) - 1, dataset.sizes == size, losses, bounds, dataset.sizes)
            for size in np.unique(dataset.sizes)
        ),
    )


def _compare(
    length: int | None, rows: np.ndarray, losses: np.ndarray, bounds: np.ndarray, sizes: np.ndarray
) -> Comparison:
    symbols = float(sizes[rows].sum())
    loss, bound = float(losses[rows].sum()) / symbols, float(bounds[rows].sum()) / symbols
    return Comparison(length, int(rows.sum()), loss, bound, loss - bound)
