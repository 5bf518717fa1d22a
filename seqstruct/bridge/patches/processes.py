"""What fairseq gets wrong where several processes train, on CPUs with gloo above all."""

from __future__ import annotations

from typing import Any, Callable

import torch
from fairseq.distributed import utils as distributed
from fairseq.models import distributed_fairseq_model
from fairseq.trainer import Trainer

from seqstruct.bridge.patches.patch import patch


@patch(distributed, "all_gather_list")
def all_gather_list(original: Callable, data: Any, group: Any = None, max_size: int = 16384) -> list[Any]:
    """What processes tell each other is gathered in the memory of a GPU, where there is none too."""
    gathers, group = distributed.all_gather_list, distributed.get_global_group() if group is None else group
    size = max_size * distributed.get_world_size(group)
    if not torch.cuda.is_available() and getattr(gathers, "_buffer", torch.empty(0)).numel() < size:
        gathers._buffer, gathers._cpu_buffer = torch.ByteTensor(size), torch.ByteTensor(max_size)
    return original(data, group, max_size)


@patch(distributed_fairseq_model, "DistributedDataParallel")
def data_parallel(original: Callable, module: torch.nn.Module, **options: Any) -> Any:
    """The default --ddp-backend is given the number of a GPU, on CPUs too, which refuse it."""
    if all(parameter.device.type == "cpu" for parameter in module.parameters()):
        options.update(device_ids=None, output_device=None)
    return original(module, **options)


@patch(distributed, "_broadcast_object_slow")
def broadcast_object(_: Callable, obj: Any, src_rank: int, group: Any, dist_device: torch.device) -> Any:
    """A checkpoint that one process reads is loaded by the others as weights alone, which its options are not."""
    found = [obj]
    torch.distributed.broadcast_object_list(found, src_rank, group, dist_device)
    return found[0]


@patch(Trainer, "train_step")
def train_step(step: Callable, self: Trainer, samples: list[Any], *rest: Any, **named: Any) -> Any:
    """Where a process runs out of batches within an update, what it had of them is in the gradient, and in neither its
    divisor nor the log."""
    there = [sample for sample in samples if sample]
    return step(self, samples if self.is_fsdp or not there else there, *rest, **named)
