"""Random feature attention (Peng 2022, sec. 4.3 and appendix A): products of random features estimate a kernel.

Gaussian features: queries and keys of norm 1 and w = sigma o w~ make the weights estimate a Gaussian kernel of
sigma o (q - k), which is softmax over sigma^2 q . k where sigma is the same in all dimensions.  With
`unit_norm=False` the keys carry exp(|sigma o k|^2 / 2) (eq. 4.10), kept in range by a running maximum that cancels:
softmax over (sigma o q) . (sigma o k).
Arc-cosine features: relu(w . x), without that factor.
sigma is learned, one vector a head (eq. 4.9).  The gate (eq. 4.8) is one scalar a head and step, made from the key's
input; at sites that read all keys at once it decays keys by their distance from the last.
Random vectors: a pool of matrices, drawn once and kept in checkpoints; in training every head draws one of them in each
pass (appendix A.2), otherwise head h has matrix h (modulo the pool).  A memory that is handed on, step by step or from
segment to segment, is written and read with those fixed matrices, in training too.
The estimate of the denominator is not positive by construction: sines and cosines may give small or negative ones
where a query is far from all keys, and a query whose denominator is close to 0 has a reading and gradients without
bound: training breaks.  `floor` stands in for estimates below it.  Its default is the released code's, 1
(github.com/Noahs-ARK/RFA), where an equal key weighs 0.64 with 64 frequencies and 1.28 with 128; here one weighs 1 in
Gaussian and, to begin with, 1/2 in arc-cosine features, however many.  The thesis's equations have none: floor=0.
O((T + S) N C) time, O(N C) state, N the size of the feature map.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqstruct.attention.base import Shape, Site
from seqstruct.attention.gate import Gate, wide_layers
from seqstruct.attention.kernel.base import KernelAttention, wide
from seqstruct.attention.multi_head import HeadProjection
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention
from seqstruct.ops.memory import ArccosMap, FeatureMap, GaussianMap

KERNELS = ("gaussian", "arccos")
FLOOR = 1.0  # the released code's; eq. 4.10 has none


@register_attention("rfa", sites=Site)
class RandomFeatureAttention(KernelAttention):
    """Random features with a learned variance, and a gate."""

    class Config(Options):
        features: int = option(64, least=1)  # N, size of a head's feature map; even for gaussian (half are sines)
        kernel: str = option("gaussian", among=KERNELS)  # the kernel that the features approximate
        sigma: float = option(1.0, above=0)  # initial value of the learned sigma; larger is sharper
        unit_norm: bool = True  # whether queries and keys are scaled to norm 1; False is eq. 4.10
        gate: bool = False  # whether a learned gate decays the memory (eq. 4.8)
        pool: int = option(200, least=1)  # random matrices that training draws from
        floor: float = option(FLOOR, least=0)  # least denominator, 1 being the weight of an equal key; 0 for none

        def __post_init__(self) -> None:
            if self.kernel == "gaussian" and self.features % 2:
                raise ValueError(f"rfa: gaussian features are sines and cosines, an even number, not {self.features}")
            if not self.unit_norm and self.floor not in (0, FLOOR):
                raise ValueError(f"rfa: a floor of {self.floor} needs unit_norm; without it there is none")

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        rows = config.features // 2 if config.kernel == "gaussian" else config.features
        self.sigma = nn.Parameter(torch.full((shape.num_heads, shape.head_dim), float(config.sigma)))
        self.register_buffer("projections", torch.randn(config.pool, rows, shape.head_dim))
        if config.gate:
            self.gate_layer = Gate(shape.key_dim, shape.num_heads)

    @property
    def floor(self) -> float:
        """0 without unit_norm, where weights have no common scale."""
        return self.config.floor if self.config.unit_norm else 0.0

    def feature_map(self, fixed: bool) -> FeatureMap:
        """Random features, with the heads' fixed matrices or freshly drawn ones."""
        pool, heads = self.projections.size(0), self.shape.num_heads
        if fixed or not self.training:
            rows = torch.arange(heads, device=self.projections.device) % pool
        else:
            rows = torch.randint(pool, (heads,))  # as with dropout, the trainer's seed decides
        sigma = wide(self.sigma)
        projection = self.projections[rows.to(self.projections.device, non_blocking=True)] * sigma.unsqueeze(1)  # H M D

        if self.config.kernel == "arccos":
            return ArccosMap(projection, self.config.unit_norm)
        return GaussianMap(projection, self.config.unit_norm, sigma)

    def projected(self, layer: nn.Linear, x: Tensor) -> Tensor:
        """In float32 at least with `unit_norm=False`: denominators are small differences there of large numbers."""
        if self.config.unit_norm:
            return super().projected(layer, x)
        with torch.autocast(x.device.type, enabled=False):
            projected = wide_layers(layer, x)
            if isinstance(layer, HeadProjection):
                projected = layer.normed_and_repeated(projected)
            return self._heads(projected)

    def gates(self, key: Tensor) -> tuple[Tensor, Tensor] | None:
        if not self.config.gate:
            return None
        logits = self.gate_layer(key).transpose(1, 2)
        return F.logsigmoid(logits), torch.sigmoid(-logits)
