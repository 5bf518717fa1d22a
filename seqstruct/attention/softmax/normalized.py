"""Softmax attention between queries and keys of norm 1 (Peng 2022, sec. 4.5.2, NS-attn): what random features aim at.

Weights are softmax over (sigma o q) . (sigma o k), q and k over their norms, sigma learned, one vector a head, in place
of the temperature.  Where sigma is the same in all dimensions this is the limit of `rfa` with Gaussian features; the
parameter has its name and shape there, so that a model trained with one can be evaluated with the other.
O(T S C) time, O(S C) state.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seqstruct.attention.base import Shape, Site
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention
from seqstruct.attention.softmax.softmax import SoftmaxAttention
from seqstruct.ops.softmax import by_angle


@register_attention("normalized_softmax", sites=Site)
class NormalizedSoftmaxAttention(SoftmaxAttention):
    """Softmax over all visible keys, by angle.

    sigma may weigh the two dimensions of a pair differently, so that products of turned queries and keys would depend
    on more than their distance: no rotary positions.
    """

    rotates = False
    holds_groups = False

    class Config(Options):
        sigma: float = option(1.0, above=0)  # initial value of the learned sigma; larger is sharper

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        self.sigma = nn.Parameter(torch.full((shape.num_heads, shape.head_dim), float(config.sigma)))

    def weights(self, query: Tensor, key: Tensor, visible: Tensor | None) -> Tensor:
        return super().weights(*self._normalized(query, key), visible)

    def context(self, query: Tensor, key: Tensor, value: Tensor, visible: Tensor | None, causal: bool) -> Tensor:
        return super().context(*self._normalized(query, key), value, visible, causal)

    def _normalized(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        # The kernels divide by the root of the head's size.
        square = self.sigma.to(query.dtype).square().unsqueeze(1) * query.size(-1) ** 0.5
        return by_angle(query) * square, by_angle(key)
