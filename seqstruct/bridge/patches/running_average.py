"""The running average of the parameters that `--store-ema` keeps (Polyak & Juditsky 1992), mended in fairseq.

Upstream leaves the version marks of encoder and decoder out of each update of the average, so that its model takes its
own parameters for those of 2018 and drops the final normalisation of pre-norm transformers.  Parameters that have
several names, as tied embeddings do, it moves once for each name: twice as fast where two tables are one.  It averages
buffers too, and stops at one of whole numbers; here buffers, such as the draws of random features, are the model's.
A run that goes on from a checkpoint without an average starts one there.
"""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any, Callable

from fairseq.models.ema import EMA
from fairseq.trainer import Trainer
from torch import Tensor

from seqstruct.bridge.checkpoints import place_of
from seqstruct.bridge.patches.dictionaries import mapped


def install() -> None:
    """Make every average of this process keep all of its model and move each parameter once; a second call is none."""
    if not hasattr(EMA.restore, "__wrapped__"):
        EMA.restore = _whole(EMA.restore)
        EMA._step_internal = _once(EMA._step_internal)
        Trainer.load_checkpoint = _starting(Trainer.load_checkpoint)


def _whole(restore: Callable) -> Callable:
    @functools.wraps(restore)
    def restore_all(self: EMA, state_dict: dict[str, Any], build_fp32_params: bool = False) -> None:
        restore(self, {**self.model.state_dict(), **state_dict}, build_fp32_params)

    return restore_all


def _once(step: Callable) -> Callable:
    @functools.wraps(step)
    def step_once(self: EMA, new_model: Any, updates: int | None = None) -> None:
        named = first_names(new_model.state_dict())
        self.skip_keys = self.skip_keys | {name for name, _ in new_model.named_buffers()}
        step(self, SimpleNamespace(state_dict=lambda: named), updates)

    return step_once


def _starting(load: Callable) -> Callable:
    """Where a run goes on from a checkpoint without an average, one begins there; upstream ends in a KeyError."""

    @functools.wraps(load)
    def load_checkpoint(self: Trainer, filename: str, *rest: Any, **named: Any) -> Any:
        options, state = self.cfg.ema, mapped(filename) if self.cfg.ema.store_ema else None
        if state is None or "ema" in (state.get("extra_state") or {}):
            return load(self, filename, *rest, **named)
        options.store_ema = False
        try:
            extra_state = load(self, filename, *rest, **named)
        finally:
            options.store_ema = True
        self.ema.restore(self.get_model().state_dict(), build_fp32_params=options.ema_fp32)
        return extra_state

    return load_checkpoint


def first_names(state_dict: dict[str, Any]) -> dict[str, Any]:
    """The entries of a state dictionary without tensors that stand there already under another name."""
    named: dict[Any, str] = {}
    for name, value in state_dict.items():
        named.setdefault(place_of(value) if isinstance(value, Tensor) else name, name)
    return {name: state_dict[name] for name in named.values()}
