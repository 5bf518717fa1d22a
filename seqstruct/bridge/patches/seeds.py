"""The seed that a trainer sets before each update."""

from __future__ import annotations

from typing import Any, Callable

import torch
from fairseq import utils

from seqstruct.bridge.patches.patch import patch


@patch(utils.set_torch_seed, "__init__")
def seed(original: Callable, self: Any, seed: int) -> None:
    """Where there is no accelerator PyTorch formats the stack for three of them, in case one is asked for: a third of a
    millisecond of each update, a twentieth of that of a small LSTM."""
    if utils.xm is not None or torch.accelerator.is_available():
        original(self, seed)
        return
    self.rng_state = utils.get_rng_state()
    torch.default_generator.manual_seed(seed)
