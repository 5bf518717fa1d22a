"""What fairseq needs mended before it runs on today's Python stack, done once when the plugin is imported."""

from __future__ import annotations

import argparse
import functools
import logging
import os
import sys
import types
import warnings
from typing import Any, Callable

import numpy
import torch
from fairseq.data import BucketPadLengthDataset, data_utils
from fairseq.tasks.fairseq_task import FairseqTask
from fairseq.trainer import Trainer

from seqstruct.bridge.patches import (
    adaptive_loss,
    decoding,
    dictionaries,
    dropout,
    endings,
    linear,
    loading,
    memory,
    optimization,
    processes,
    replace_unknown,
    requirements,
    resume,
    running_average,
    seeds,
)
from seqstruct.bridge.patches.patch import apply_patches, patch

NOISE = (
    r"hydra\.experimental\.(initialize|compose)\(\) is no longer experimental",
    r"\n'\w+' is validated against ConfigStore schema with the same name",
    r"\nThe version_base parameter is not specified",
    r"In 'config': Usage of deprecated keyword in package header",
    r"\nThe strict flag in the compose API is deprecated",
    r"'pin_memory' argument is set as true but",
    r"`torch\.cuda\.amp\.(autocast|GradScaler)\(args\.\.\.\)` is deprecated",
    r"torch\.cuda\.amp\.GradScaler is enabled, but CUDA is not available",
    r"Support for mismatched key_padding_mask and attn_mask is deprecated",
    r"__array__ implementation doesn't accept a copy keyword",
)


# each enters its patches in the list when it is imported
MENDING = (
    adaptive_loss, decoding, dictionaries, dropout, endings, linear, loading, memory, optimization, processes,
    replace_unknown, requirements, resume, running_average, seeds,
)


@functools.cache
def prepare_fairseq() -> None:
    """Make fairseq run on today's Python stack, load its own checkpoints safely, and be quiet about known noise.

    All patches of this folder are applied: `seqstruct.bridge.patches.patch.PATCHES` lists them, each with its defect.
    Raises nothing; a second call changes nothing.
    """
    if not hasattr(numpy, "compat"):  # gone in numpy 2; fairseq's block dataset reads it
        numpy.compat = types.SimpleNamespace(long=int)
    # stock parts without a dataclass leave a namespace in checkpoints; so weights_only=True stays on
    torch.serialization.add_safe_globals([argparse.Namespace])
    for message in NOISE:
        warnings.filterwarnings("ignore", message=message)
    # one of fairseq's models sets the level of all logging to DEBUG, and hydra then tells of its own state
    logging.getLogger("hydra.core.utils").setLevel(logging.INFO)
    # hydra prints a traceback by itself unless it is told to hand errors on
    os.environ["HYDRA_FULL_ERROR"] = "1"
    apply_patches()


@patch(Trainer, "__init__")
def initialize(original: Callable, self: Trainer, cfg: Any, *rest: Any, **named: Any) -> None:
    """The argparse front sets `tpu` whenever --bf16 is given, also where there is no torch_xla."""
    if cfg.common.bf16 and cfg.common.tpu and "torch_xla" not in sys.modules:
        cfg.common.tpu = False
    original(self, cfg, *rest, **named)


@patch(FairseqTask, "train_step")
def train_step(
    original: Callable, self: FairseqTask, sample: Any, model: Any, criterion: Any, optimizer: Any, update_num: int,
    *rest: Any, **named: Any,
) -> Any:
    """Models are told the number of updates, criterions are not; those that have `set_num_updates` are."""
    if hasattr(criterion, "set_num_updates"):
        criterion.set_num_updates(update_num)
    return original(self, sample, model, criterion, optimizer, update_num, *rest, **named)


@patch(BucketPadLengthDataset, "__init__")
def refuse_batch_buckets(*_: Any, **__: Any) -> None:
    """Buckets are of a type that numpy 2 does not have."""
    raise ValueError("--num-batch-buckets does not work with numpy 2 in this version of fairseq; leave it out")


@patch(data_utils, "batch_by_size")
def batch_by_size(original: Callable, indices: Any, *rest: Any, fixed_shapes: Any = None, **named: Any) -> Any:
    """The last batch of a set whose size is not a multiple of --required-batch-size-multiple is dropped."""
    indices = numpy.asarray(indices)
    batches = original(indices, *rest, fixed_shapes=fixed_shapes, **named)
    batched = sum(len(batch) for batch in batches)
    if fixed_shapes is None and batched < len(indices):
        return [*batches, indices[batched:]]
    return batches
