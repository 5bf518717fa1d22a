"""Gated slots in chunks against their recurrence."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from seqstruct.ops.delta import gated_slots, naive
from tests.ops.delta.forms import LENGTHS, K, V, assert_alike, leaves, random


@LENGTHS
def test_slots_are_the_recurrence(length: int, generator: torch.Generator) -> None:
    log_decay = F.logsigmoid(3 * random(generator, length, 6))
    arguments = [random(generator, length, K), random(generator, length, K), random(generator, length, V)]
    arguments += [-torch.expm1(log_decay), log_decay, random(generator, 6, K + V)]
    inputs = leaves(arguments)
    assert_alike(gated_slots(*arguments), naive.gated_slots(*arguments), inputs)
