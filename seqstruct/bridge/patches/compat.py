"""What fairseq needs mended before it runs on today's Python stack, done once when the plugin is imported."""

from __future__ import annotations

import argparse
import functools
import logging
import sys
import types
import warnings
from typing import Any

import numpy
import torch

from seqstruct.bridge import checkpoints, earlier_plans, failures, requirements, swapped_attention
from seqstruct.bridge.patches import beam_search, dictionaries, replace_unknown, resume, running_average

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


@functools.cache
def prepare_fairseq() -> None:
    """Make fairseq run on numpy 2, load its own checkpoints safely, accept --bf16, and be quiet about known noise.

    * numpy 2 dropped `numpy.compat`, which fairseq's block dataset reads.
    * Stock parts without a dataclass leave an `argparse.Namespace` in checkpoints; it becomes a safe global, so that
      `weights_only=True` stays on.
    * A resumed run goes on exactly as an unbroken one (`seqstruct.bridge.patches.resume`).
    * Models and dictionaries that do not belong together are refused (`seqstruct.bridge.patches.dictionaries`).
    * Attention that is swapped in a trained model gives a warning (`seqstruct.bridge.swapped_attention`).
    * Checkpoints that cannot be loaded are named, with the reason (`seqstruct.bridge.checkpoints`).
    * Plans in checkpoints of earlier versions keep their meaning (`seqstruct.bridge.earlier_plans`).
    * A running average of the parameters is of the whole model (`seqstruct.bridge.patches.running_average`).
    * Unknown words can be replaced by the source words attended to (`seqstruct.bridge.patches.replace_unknown`).
    * A checkpoint of a preset that lacks options which its model has gained since has their defaults.
    * Beam search spares work that its choices do not need (`seqstruct.bridge.patches.beam_search`).
    * Criterions that have `set_num_updates` are told the number of updates before each training step.
    * The argparse front sets `tpu` whenever --bf16 is given; the trainer unsets it where there is no torch_xla.
    * Upstream drops the last batch of any set, also of one to translate, whose size is not a multiple of
      --required-batch-size-multiple (8 by default); it is kept.
    * What does not go together is refused before it is built (`seqstruct.bridge.requirements`).
    * A command that fails ends with one sentence and leaves nothing behind (`seqstruct.bridge.failures`).
    """
    if not hasattr(numpy, "compat"):
        numpy.compat = types.SimpleNamespace(long=int)
    torch.serialization.add_safe_globals([argparse.Namespace])
    for message in NOISE:
        warnings.filterwarnings("ignore", message=message)
    # one of fairseq's models sets the level of all logging to DEBUG, and hydra then tells of its own state
    logging.getLogger("hydra.core.utils").setLevel(logging.INFO)
    resume.install()
    dictionaries.install()
    swapped_attention.install()
    earlier_plans.install()
    checkpoints.install()
    running_average.install()
    beam_search.install()
    replace_unknown.install()
    _tell_criterions_the_update()
    _complete_older_checkpoints()
    _allow_bf16()
    _refuse_batch_buckets()
    _keep_the_last_batch()
    requirements.install()
    failures.install()


def _allow_bf16() -> None:
    from fairseq.trainer import Trainer

    original = Trainer.__init__

    @functools.wraps(original)
    def initialize(self: Any, cfg: Any, *rest: Any, **named: Any) -> None:
        if cfg.common.bf16 and cfg.common.tpu and "torch_xla" not in sys.modules:
            cfg.common.tpu = False
        original(self, cfg, *rest, **named)

    Trainer.__init__ = initialize


def _tell_criterions_the_update() -> None:
    from fairseq.tasks.fairseq_task import FairseqTask

    original = FairseqTask.train_step

    @functools.wraps(original)
    def train_step(self: Any, sample: Any, model: Any, criterion: Any, optimizer: Any, update_num: int, *rest: Any,
                   **named: Any) -> Any:
        if hasattr(criterion, "set_num_updates"):
            criterion.set_num_updates(update_num)
        return original(self, sample, model, criterion, optimizer, update_num, *rest, **named)

    FairseqTask.train_step = train_step


def _complete_older_checkpoints() -> None:
    from fairseq import models
    from omegaconf import OmegaConf, open_dict

    original = models.build_model

    @functools.wraps(original)
    def build_model(cfg: Any, task: Any, from_checkpoint: bool = False) -> Any:
        name = models.ARCH_MODEL_NAME_REGISTRY.get(getattr(cfg, "_name", None))
        config = models.MODEL_DATACLASS_REGISTRY.get(name)
        own = config is not None and config.__module__.startswith("seqstruct.")
        if own and from_checkpoint and OmegaConf.is_config(cfg):
            defaults = OmegaConf.to_container(OmegaConf.structured(config), resolve=False)
            with open_dict(cfg):
                for option, default in defaults.items():
                    if option not in cfg:
                        cfg[option] = default
        return original(cfg, task, from_checkpoint)

    models.build_model = build_model


def _refuse_batch_buckets() -> None:
    from fairseq.data import BucketPadLengthDataset

    def refuse(self: Any, *_: Any, **__: Any) -> None:
        raise ValueError("--num-batch-buckets does not work with numpy 2 in this version of fairseq; leave it out")

    BucketPadLengthDataset.__init__ = refuse


def _keep_the_last_batch() -> None:
    from fairseq.data import data_utils

    original = data_utils.batch_by_size

    @functools.wraps(original)
    def batch_by_size(indices: Any, *rest: Any, fixed_shapes: Any = None, **named: Any) -> Any:
        indices = numpy.asarray(indices)
        batches = original(indices, *rest, fixed_shapes=fixed_shapes, **named)
        batched = sum(len(batch) for batch in batches)
        if fixed_shapes is None and batched < len(indices):
            return [*batches, indices[batched:]]
        return batches

    data_utils.batch_by_size = batch_by_size
