"""Mechanisms as modules, for what the contract does not say."""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.attention import Attention, Shape, Site, get_attention, make_config

DIM, HEADS = 12, 3


def build(name: str, site: Site = Site.DECODER_SELF, **options) -> Attention:
    """In evaluation mode, float64, as it is constructed."""
    torch.manual_seed(5)
    return get_attention(name)(make_config(name, options), Shape.of(site, DIM, HEADS)).double().eval()


def inputs(generator: torch.Generator, length: int = 9) -> Tensor:
    return torch.randn(2, length, DIM, generator=generator, dtype=torch.float64)


def heads(x: Tensor) -> Tensor:
    return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)


def output(attention: Attention, x: Tensor) -> Tensor:
    return attention(x, x, x)[0].output
