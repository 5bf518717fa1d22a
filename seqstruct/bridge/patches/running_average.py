"""The running average of the parameters that `--store-ema` keeps (Polyak & Juditsky 1992), mended in fairseq.

Upstream leaves the version marks of encoder and decoder out of each update of the average, so that its model takes its
own parameters for those of 2018 and drops the final normalisation of pre-norm transformers.  Parameters that have
several names, as tied embeddings do, it moves once for each name: twice as fast where two tables are one.  It averages
buffers too, and stops at one of whole numbers; here buffers, such as the draws of random features, are the model's.
A run that goes on from a checkpoint without an average starts one there; with `--ema-update-freq` the average moves
at the same updates whether or not a run was cut.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Callable

from fairseq.models.ema import EMA
from fairseq.trainer import Trainer
from torch import Tensor

from seqstruct.bridge.checkpoints import mapped, place_of
from seqstruct.bridge.patches.patch import patch


@patch(EMA, "restore")
def restore(original: Callable, self: EMA, state_dict: dict[str, Any], build_fp32_params: bool = False) -> None:
    """What an update of the average leaves out is taken for missing."""
    original(self, {**self.model.state_dict(), **state_dict}, build_fp32_params)


@patch(EMA, "step")
def count(original: Callable, self: EMA, new_model: Any, updates: int | None = None) -> None:
    """The updates since the average moved last are forgotten where a run goes on."""
    if updates is not None and self.config.ema_update_freq > 1:
        self.update_freq_counter = (updates - 1) % self.config.ema_update_freq
    original(self, new_model, updates)


@patch(EMA, "_step_internal")
def step(original: Callable, self: EMA, new_model: Any, updates: int | None = None) -> None:
    """A parameter moves once for each of its names, and buffers are averaged."""
    named = first_names(new_model.state_dict())
    self.skip_keys = self.skip_keys | {name for name, _ in new_model.named_buffers()}
    original(self, SimpleNamespace(state_dict=lambda: named), updates)


@patch(Trainer, "load_checkpoint")
def load_checkpoint(load: Callable, self: Trainer, filename: str, *rest: Any, **named: Any) -> Any:
    """A checkpoint without an average ends in a KeyError; an average begins there."""
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


def first_names(state_dict: dict[str, Any]) -> dict[str, Any]:
    """The entries of a state dictionary without tensors that stand there already under another name."""
    named: dict[Any, str] = {}
    for name, value in state_dict.items():
        named.setdefault(place_of(value) if isinstance(value, Tensor) else name, name)
    return {name: state_dict[name] for name in named.values()}
