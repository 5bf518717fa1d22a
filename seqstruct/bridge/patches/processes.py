"""What fairseq gets wrong where several processes train, on CPUs with gloo above all."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from typing import Any, Callable

import numpy
import torch
from fairseq.distributed import utils as distributed
from fairseq.models import distributed_fairseq_model
from fairseq.tasks.language_modeling import LanguageModelingTask
from fairseq.trainer import Trainer
from fairseq.utils import move_to_cpu

from seqstruct.bridge.patches.patch import patch

logger = logging.getLogger(__name__)


@patch(distributed, "call_main")
def call_main(call: Callable, cfg: Any, main: Callable, **named: Any) -> Any:
    """--write-checkpoints-asynchronously without iopath ends at once, with a status of success and nothing trained."""
    if cfg.checkpoint.write_checkpoints_asynchronously and find_spec("iopath") is None:
        raise ValueError("--write-checkpoints-asynchronously needs the package iopath, which is not installed")
    return call(cfg, main, **named)


@patch(distributed, "all_gather_list")
def all_gather_list(_: Callable, data: Any, group: Any = None, max_size: int = 16384) -> list[Any]:
    """What processes tell each other is gathered in the memory of a GPU, where there is none too, and fails where it
    is longer than a limit, as logs of many batches are."""
    group = distributed.get_global_group() if group is None else group
    found = [None] * distributed.get_world_size(group)
    torch.distributed.all_gather_object(found, move_to_cpu(data), group)
    return found


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


def evaluated(num_shards: int, shard_id: int) -> dict[str, int]:
    """The shard of the text that a process of fairseq-eval-lm evaluates: all of it where several were started, for the
    first one alone tells its result."""
    if (num_shards, shard_id) == (distributed.get_global_world_size(), distributed.get_global_rank()):
        num_shards, shard_id = 1, 0
    return {"num_shards": num_shards, "shard_id": shard_id}


@patch(LanguageModelingTask, "eval_lm_dataloader")
def eval_lm_dataloader(
    load: Callable, self: LanguageModelingTask, dataset: Any, *rest: Any, max_positions: int | None = None,
    num_shards: int = 1, shard_id: int = 0, **named: Any,
) -> Any:
    """Of several processes each evaluates a part of the text, and what the first one says of its own is the result; how
    much of the text is too long for the model, and in no perplexity, is not told.
    """
    if max_positions is not None:
        sizes = numpy.asarray(getattr(dataset, "sizes", ()))  # a stream has none: it is cut to segments
        long = sizes > max_positions
        if long.any():
            logger.warning("the perplexity is without %d of %d sequences, %d of %d tokens, that are longer than the "
                           "%d positions of the model",
                           long.sum(), len(sizes), sizes[long].sum(), sizes.sum(), max_positions)
    return load(self, dataset, *rest, max_positions=max_positions, **evaluated(num_shards, shard_id), **named)
