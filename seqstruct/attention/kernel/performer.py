"""Performer, FAVOR+ (Choromanski et al. 2021, sec. 2.3 and 2.4): positive random features estimate softmax.

Features exp(w . x - |x|^2 / 2) of x = q D^-1/4 and k D^-1/4 make the weights estimate softmax over q . k / sqrt(D);
the hyperbolic variant adds those of -w.  The rows w are Gaussian, orthogonal in blocks of D, independent in each head,
and drawn anew after `redraw` passes in training; evaluation uses the last draw.  A pass that goes on from a memory
never redraws, nor does one that the backward pass repeats (activation checkpointing).
O((T + S) N C) time, O(N C) state, N the size of the feature map.
Deviations: exponents are kept in range by a running maximum over keys, which cancels exactly and looks at no future
key; no constant is added to the features.  A query whose products with all keys are below 1e-31 of the largest
possible (queries and keys of norms in the tens) reads zeros.
Averaged checkpoints mix draws: average checkpoints of one draw, or train with redraw=0.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.attention.base import Shape, Site
from seqstruct.attention.kernel.base import KernelAttention, wide
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention
from seqstruct.ops.memory import FeatureMap, PositiveMap, orthogonal_projection


@register_attention("performer", sites=Site)
class PerformerAttention(KernelAttention):
    """Positive orthogonal random features."""

    class Config(Options):
        features: int = option(64, least=1)  # N, size of a head's feature map; even for hyperbolic
        hyperbolic: bool = False  # whether features come in pairs, of w and -w
        orthogonal: bool = True  # whether random vectors are orthogonal in blocks; False draws them independently
        redraw: int = option(1000, least=0)  # passes in training between draws; 0 keeps the first draw

        def __post_init__(self) -> None:
            if self.hyperbolic and self.features % 2:
                raise ValueError(f"performer: hyperbolic features come in pairs, not {self.features}")

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        self.register_buffer("seed", torch.randint(2**31, (), device="cpu"))  # on the meta device it would be no number
        self.register_buffer("passes", torch.zeros((), dtype=torch.long))  # in training, without a memory handed in
        self.register_buffer("projection", self._draw(0))

    def feature_map(self, fixed: bool) -> FeatureMap:
        """Positive features; counts a pass in training, none that the backward pass repeats, and redraws in time."""
        counts = self.training and not fixed and self.config.redraw > 0
        if counts and torch._C._current_graph_task_id() == -1:  # of the backward pass that runs
            draw, since = divmod(int(self.passes), self.config.redraw)
            if draw and not since:
                self.projection = self._draw(draw).to(self.projection)  # passes before go back through the last one
            self.passes += 1
        return PositiveMap(wide(self.projection), self.shape.head_dim**-0.25, self.config.hyperbolic)

    def _draw(self, draw: int) -> Tensor:
        """H M D, the same for the same seed and number on every device and worker."""
        generator = torch.Generator("cpu").manual_seed(int(self.seed) + draw)
        heads, dim = self.shape.num_heads, self.shape.head_dim
        rows = self.config.features // 2 if self.config.hyperbolic else self.config.features
        with torch.device("cpu"):
            if self.config.orthogonal:
                return torch.stack([orthogonal_projection(rows, dim, generator) for _ in range(heads)])
            return torch.randn(heads, rows, dim, generator=generator)
