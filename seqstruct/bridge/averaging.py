"""Checkpoint averaging (Vaswani et al. 2017, sec. 6.1): the mean of several checkpoints of one run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import torch

from seqstruct.bridge.checkpoints import load_checkpoint


def average_checkpoints(paths: Sequence[str | os.PathLike], out: str | os.PathLike) -> None:
    """Write the last checkpoint of `paths` to `out` with the mean of all their floating-point parameters and buffers.

    What is no floating-point number, such as counters, is the last one's; so are configuration and optimizer.
    Random features are one draw for a whole run, so that their mean is that draw; a performer's that are redrawn in
    training are not.
    Raises ValueError if there is no checkpoint, or two of them differ in the names or shapes of their parameters, and
    what `load_checkpoint` raises.  Memory: two checkpoints.
    """
    if not paths:
        raise ValueError("average_checkpoints: expected one checkpoint or more, got none")
    total: dict[str, torch.Tensor] = {}
    state = {}
    for path in paths:
        state = load_checkpoint(path)
        model = state["model"]
        if total and {k: v.shape for k, v in model.items()} != {k: v.shape for k, v in total.items()}:
            raise ValueError(f"{path}: its parameters are not those of {paths[0]} in name and shape")
        for name, value in model.items():
            exact = value.double() if value.is_floating_point() else value
            total[name] = total[name] + exact if name in total and value.is_floating_point() else exact
    for name, value in state["model"].items():
        if value.is_floating_point():
            state["model"][name] = (total[name] / len(paths)).to(value.dtype)
    beside = Path(f"{out}.partial")
    torch.save(state, beside)
    os.replace(beside, out)
