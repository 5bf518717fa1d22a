"""`decay_from_plateau`: constant until the validation loss stops falling, then multiplied by a factor every epoch.

The schedule of Luong et al. (2015) and Kim et al. (2017, appendices A.2 and A.3).  fairseq's `reduce_lr_on_plateau`
shrinks the rate after the epochs without improvement alone; here the first of them, or an epoch set beforehand, starts
a decay that goes on to the end.

fairseq's types are read at run time: no postponed annotations here.
"""

from dataclasses import dataclass
from typing import Any, Dict, List, Optional

from fairseq.dataclass import FairseqDataclass
from fairseq.optim.lr_scheduler import FairseqLRScheduler, register_lr_scheduler
from omegaconf import II

from seqstruct.bridge.options import flag


@dataclass
class DecayFromPlateauConfig(FairseqDataclass):
    """Options of the schedule."""

    lr_shrink: float = flag(0.5, "factor of each epoch once the decay has begun, in (0, 1)")
    decay_after_epoch: int = flag(0, "the decay begins after this epoch at the latest, 1 or more; 0 for no such limit")
    lr: List[float] = II("optimization.lr")


@register_lr_scheduler("decay_from_plateau", dataclass=DecayFromPlateauConfig)
class DecayFromPlateau(FairseqLRScheduler):
    """Looks at the validation loss at the end of each epoch; less is better."""

    steps_on_validation = True

    def __init__(self, cfg: DecayFromPlateauConfig, optimizer: Any):
        """Raises ValueError on several learning rates or options out of range."""
        super().__init__(cfg, optimizer)
        if len(cfg.lr) != 1:
            raise ValueError(f"decay_from_plateau: expected one learning rate, got {len(cfg.lr)}")
        if not 0 < cfg.lr_shrink < 1 or cfg.decay_after_epoch < 0:
            raise ValueError(
                "decay_from_plateau: lr-shrink is between 0 and 1 and decay-after-epoch 0 or more, "
                f"not {cfg.lr_shrink} and {cfg.decay_after_epoch}"
            )
        self.lr = cfg.lr[0]
        self.decaying = False
        self.ended: Optional[int] = 0  # the last epoch whose end was looked at
        self.optimizer.set_lr(self.lr)

    def step_begin_epoch(self, epoch: int) -> None:
        """Make up for the end of the epoch before, if it came without validation."""
        if self.ended is not None and self.ended < epoch - 1:
            self._end(epoch - 1, worse=False)
        self.ended = epoch - 1
        self.step_update(0)

    def step(self, epoch: int, val_loss: Optional[float] = None) -> float:
        """The rate of the next epoch, from the number of the one that ends (from 1) and its validation loss.

        Without a loss nothing changes before the next epoch begins: fairseq calls this so at the start of a training
        and on its resumption too, with the number of an epoch that has not ended.
        """
        if val_loss is not None:
            self._end(epoch, worse=self.best is not None and val_loss >= self.best)
        super().step(epoch, val_loss)
        return self.step_update(0)

    def _end(self, epoch: int, worse: bool) -> None:
        self.ended = epoch
        self.decaying = self.decaying or worse or 0 < self.cfg.decay_after_epoch <= epoch
        if self.decaying:
            self.lr *= self.cfg.lr_shrink

    def step_update(self, num_updates: int) -> float:
        """The rate does not change between epochs."""
        self.optimizer.set_lr(self.lr)
        return self.lr

    def state_dict(self) -> Dict[str, Any]:
        return {"best": self.best, "lr": self.lr, "decaying": self.decaying, "ended": self.ended}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self.lr, self.decaying = state_dict["lr"], state_dict["decaying"]
        self.ended = state_dict.get("ended")  # checkpoints of version 0.4 do not say
        self.optimizer.set_lr(self.lr)
