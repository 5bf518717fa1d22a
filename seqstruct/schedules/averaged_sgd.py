"""Adam or SGD first, averaged SGD from some epoch on: the optimizer `averaged_sgd`, the schedule `averaging_switch`.

Merity et al. (2018, section 3) begin with SGD and average its iterates (Polyak and Juditsky 1992) from the epoch in
which the validation loss is not the least of all but the last n (NT-ASGD); Peng (2022, appendix D.1) begins with Adam
and averages after 40 epochs.

The model holds the average wherever it is looked at, in validation and in checkpoints, and the iterate from the
clearing of the gradients to the step.  The checkpoint of the optimizer has the iterate, so that a resumed run goes on
exactly.  Deviation: the learning rate is not rescaled by the length of a segment, whose loss is a mean of its tokens.

fairseq's types are read at run time: no postponed annotations here.
"""

from dataclasses import dataclass
from typing import Any, Dict, List, Optional

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.optim import FairseqOptimizer, register_optimizer
from fairseq.optim.lr_scheduler import FairseqLRScheduler, register_lr_scheduler
from omegaconf import II

from seqstruct.bridge.options import flag

FIRST = ("adam", "sgd")


@dataclass
class AveragedSGDConfig(FairseqDataclass):
    """Options of the optimizer."""

    first: ChoiceEnum(FIRST) = flag("adam", "before the switch: adam as torch sets it by default, or sgd")
    weight_decay: float = flag(1.2e-6, "factor of the squared weights' half, 0 or more")
    lr: List[float] = II("optimization.lr")


@register_optimizer("averaged_sgd", dataclass=AveragedSGDConfig)
class AveragedSGD(FairseqOptimizer):
    """The first optimizer until `start_averaging` is called."""

    def __init__(self, cfg: AveragedSGDConfig, params: Any):
        """Raises ValueError on several learning rates or a negative weight decay."""
        super().__init__(cfg)
        if len(cfg.lr) != 1 or cfg.weight_decay < 0:
            raise ValueError(
                "averaged_sgd: expected one learning rate and a weight decay of 0 or more, got "
                f"{list(cfg.lr)} and {cfg.weight_decay}"
            )
        kind = torch.optim.Adam if str(cfg.first) == "adam" else torch.optim.SGD
        self._parameters = list(params)
        self._optimizer = kind(self._parameters, **self.optimizer_config)
        self.averaging = False
        self._count = 0  # iterates averaged
        self._others: List[torch.Tensor] = []  # the iterate while the model holds the average, and the other way round
        self._model_holds_average = False

    @property
    def optimizer_config(self) -> Dict[str, Any]:
        """Overrides of what a checkpoint holds."""
        return {"lr": self.cfg.lr[0], "weight_decay": self.cfg.weight_decay}

    @property
    def supports_flat_params(self) -> bool:
        """Yes: each number is treated by itself."""
        return True

    def start_averaging(self, lr: float) -> None:
        """SGD at this rate from now on; the average begins with the next step."""
        self.averaging = True
        self._optimizer = torch.optim.SGD(self._parameters, lr=lr, weight_decay=self.cfg.weight_decay)

    def zero_grad(self) -> None:
        """Clear the gradients; the model takes up the iterate, which they are to be taken at."""
        super().zero_grad()
        if self._model_holds_average:
            self._exchange()

    def step(self, closure: Any = None, scale: float = 1.0, groups: Any = None) -> None:
        """One step of the iterate; with averaging the model takes up the average of the iterates.

        Raises ValueError if the model still holds the average: fairseq's wrappers for half precision do not clear the
        gradients here, so that these were not taken at the iterate.
        """
        if self._model_holds_average:
            raise ValueError("averaged_sgd averages in single precision alone: leave out --fp16, --bf16 and --amp")
        super().step(closure, scale, groups)
        if not self.averaging:
            return
        self._count += 1
        if self._count == 1:
            self._others = [p.detach().clone() for p in self._parameters]
        for average, p in zip(self._others, self._parameters, strict=True):
            average.lerp_(p.detach(), 1 / self._count)
        self._exchange()

    def _exchange(self) -> None:
        for i, p in enumerate(self._parameters):
            p.data, self._others[i] = self._others[i], p.data
        self._model_holds_average = not self._model_holds_average

    def state_dict(self) -> Dict[str, Any]:
        return {
            "optimizer": self._optimizer.state_dict(),
            "averaging": self.averaging,
            "count": self._count,
            "others": [x.clone() for x in self._others],
            "model_holds_average": self._model_holds_average,
        }

    def load_state_dict(self, state_dict: Dict[str, Any], optimizer_overrides: Optional[Dict[str, Any]] = None) -> None:
        """Go on from a checkpoint, whose model has been loaded."""
        if state_dict["averaging"] and not self.averaging:
            self.start_averaging(self.cfg.lr[0])
        self._count, self._model_holds_average = state_dict["count"], state_dict["model_holds_average"]
        self._others = [
            x.to(p.device, p.dtype) for x, p in zip(state_dict["others"], self._parameters, strict=False)
        ]
        super().load_state_dict(state_dict["optimizer"], optimizer_overrides)


@dataclass
class AveragingSwitchConfig(FairseqDataclass):
    """Options of the schedule; the learning rate is constant but for the switch."""

    switch_epoch: int = flag(40, "average after this epoch; 0: not by a number of epochs")
    nonmonotone: int = flag(
        0, "n of NT-ASGD: average once the validation loss is above the least of all but the last n; 0: not by the loss"
    )
    averaged_lr: float = flag(30.0, "learning rate after the switch, > 0")
    lr: List[float] = II("optimization.lr")


@register_lr_scheduler("averaging_switch", dataclass=AveragingSwitchConfig)
class AveragingSwitch(FairseqLRScheduler):
    """Tells the optimizer `averaged_sgd` when to begin averaging."""

    steps_on_validation = True

    def __init__(self, cfg: AveragingSwitchConfig, optimizer: Any):
        """Raises ValueError with another optimizer or options out of range."""
        super().__init__(cfg, optimizer)
        if not isinstance(optimizer, AveragedSGD):
            raise ValueError("averaging_switch: expected --optimizer averaged_sgd")
        if cfg.switch_epoch < 0 or cfg.nonmonotone < 0 or cfg.averaged_lr <= 0:
            raise ValueError(
                "averaging_switch: expected switch-epoch and nonmonotone of 0 or more and averaged-lr above 0, got "
                f"{cfg.switch_epoch}, {cfg.nonmonotone} and {cfg.averaged_lr}"
            )
        self.losses: List[float] = []

    def step_begin_epoch(self, epoch: int) -> None:
        """Begin averaging if the epochs before are enough."""
        if 0 < self.cfg.switch_epoch < epoch:
            self._switch()

    def step(self, epoch: int, val_loss: Optional[float] = None) -> float:
        """Look at the validation loss of the epoch that ends (from 1)."""
        super().step(epoch, val_loss)
        if val_loss is not None:
            n = self.cfg.nonmonotone
            if 0 < n < len(self.losses) and val_loss > min(self.losses[:-n]):
                self._switch()
            self.losses.append(val_loss)
        return self.optimizer.get_lr()

    def step_update(self, num_updates: int) -> float:
        """The rate that is given, also where the optimizer's checkpoint had another one."""
        self.optimizer.set_lr(self.cfg.averaged_lr if self.optimizer.averaging else self.cfg.lr[0])
        return self.optimizer.get_lr()

    def _switch(self) -> None:
        if not self.optimizer.averaging:
            self.optimizer.start_averaging(self.cfg.averaged_lr)

    def state_dict(self) -> Dict[str, Any]:
        """What `load_state_dict` takes up again; the optimizer knows whether it averages."""
        return {"best": self.best, "losses": list(self.losses)}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self.losses = list(state_dict["losses"])
