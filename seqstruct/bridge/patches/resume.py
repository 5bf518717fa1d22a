"""Exact resumption: what a resumed fairseq-train forgets, kept in the checkpoint.

Upstream loses the count of validations without improvement (`--patience`), and with `reduce_lr_on_plateau` the count
of bad epochs and the step that follows the validation at which the checkpoint was written; the step also of schedules
of this package that say `steps_on_validation = True`.  A run that was cut at the
end of an epoch then trains otherwise than an unbroken one; one that was cut anywhere, in other batches, unless each
epoch makes them anew (`--update-epoch-batch-itr`).  The versions that wrote a checkpoint are kept beside.
"""

from __future__ import annotations

import logging
import sys
from typing import Any, Callable

import numpy
from fairseq.optim.lr_scheduler.reduce_lr_on_plateau import ReduceLROnPlateauLRSchedule
from fairseq.tasks.fairseq_task import FairseqTask
from fairseq.trainer import Trainer

from seqstruct.bridge.patches.patch import patch
from seqstruct.bridge.versions import versions

logger = logging.getLogger(__name__)

_KEY = "seqstruct_resume"


@patch(Trainer, "save_checkpoint")
def save_checkpoint(save: Callable, self: Trainer, filename: str, extra_state: dict[str, Any]) -> Any:
    """A checkpoint lacks the count of validations without improvement, and where a plateau's schedule stands."""
    return save(self, filename, {**extra_state, _KEY: _state(self), "seqstruct_versions": versions()})


@patch(Trainer, "state_dict")
def state_dict(original: Callable, self: Trainer) -> dict[str, Any]:
    """The meters of --eval-bleu have arrays, with which a checkpoint cannot be loaded as `weights_only=True`."""
    state = original(self)
    for meters in state["extra_state"]["metrics"].values():
        for *_, meter in meters:
            meter.update({name: x.tolist() for name, x in meter.items() if isinstance(x, numpy.ndarray)})
    return state


@patch(Trainer, "load_checkpoint")
def load_checkpoint(
    load: Callable, self: Trainer, filename: str, reset_optimizer: bool = False, reset_lr_scheduler: bool = False,
    optimizer_overrides: dict[str, Any] | None = None, reset_meters: bool = False,
) -> Any:
    """They start anew, the step of the schedule after the last validation is left out, and a checkpoint without an
    optimizer's state starts all but its parameters anew without a word.
    """
    extra_state = load(self, filename, reset_optimizer, reset_lr_scheduler, optimizer_overrides, reset_meters)
    updates = self._optim_history[-1].get("num_updates", 0) if self._optim_history else 0
    if not reset_optimizer and self.get_num_updates() < updates and self.is_data_parallel_master:
        logger.warning("%s, of %d updates, has no state of the optimizer, as with --no-save-optimizer-state: "
                       "optimizer, schedule and the count of updates begin anew", filename, updates)
    kept = (extra_state or {}).get(_KEY)
    if kept is None or reset_optimizer:
        return extra_state
    stopping = _early_stopping()
    if stopping is not None and not reset_meters and kept["num_runs"] is not None:
        stopping.best, stopping.num_runs = kept["best"], kept["num_runs"]
    if not reset_lr_scheduler:
        _restore_schedule(getattr(self, "_lr_scheduler", None), kept, extra_state)
    return extra_state


@patch(FairseqTask, "get_batch_iterator")
def get_batch_iterator(
    batches: Callable, self: FairseqTask, dataset: Any, *rest: Any, epoch: int = 1,
    disable_iterator_cache: bool = False, update_epoch_batch_itr: bool = False, **named: Any,
) -> Any:
    """Batches that a run keeps from its first epoch on are made by the seed of the epoch in which it goes on."""
    remade = disable_iterator_cache or update_epoch_batch_itr or not self.can_reuse_epoch_itr(dataset)
    first = epoch if remade or dataset in self.dataset_to_epoch_iter else 1
    named.update(disable_iterator_cache=disable_iterator_cache, update_epoch_batch_itr=update_epoch_batch_itr)
    found = batches(self, dataset, *rest, epoch=first, **named)
    if first != epoch:
        found.epoch = epoch
        dataset.set_epoch(epoch)
    return found


def _restore_schedule(scheduler: Any, kept: dict[str, Any], extra_state: dict[str, Any]) -> None:
    plateau = isinstance(scheduler, ReduceLROnPlateauLRSchedule) and kept["plateau"] is not None
    if plateau:
        for name, value in kept["plateau"].items():
            setattr(scheduler.lr_scheduler, name, value)
        scheduler.warmup_end = kept["warmup_end"]
    if plateau or getattr(scheduler, "steps_on_validation", False):
        # a checkpoint at the end of an epoch is written before that epoch's step of the schedule
        if extra_state["train_iterator"]["iterations_in_epoch"] == 0 and extra_state["val_loss"] is not None:
            scheduler.step(extra_state["train_iterator"]["epoch"] - 1, extra_state["val_loss"])


def _state(trainer: Trainer) -> dict[str, Any]:
    stopping = _early_stopping()
    scheduler = trainer.lr_scheduler
    plateau = isinstance(scheduler, ReduceLROnPlateauLRSchedule)
    return {
        "best": getattr(stopping, "best", None),
        "num_runs": getattr(stopping, "num_runs", None),
        "plateau": {
            name: getattr(scheduler.lr_scheduler, name)
            for name in ("best", "num_bad_epochs", "cooldown_counter", "last_epoch")
        } if plateau else None,
        "warmup_end": scheduler.warmup_end if plateau else None,
    }


def _early_stopping() -> Any:
    """fairseq's function that counts validations without improvement in its own attributes; None outside training."""
    for name in ("__main__", "fairseq_cli.train"):
        found = getattr(sys.modules.get(name), "should_stop_early", None)
        if found is not None:
            return found
    return None
