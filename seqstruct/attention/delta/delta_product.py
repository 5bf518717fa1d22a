"""DeltaProduct: several steps of the delta rule for each token (Siems et al. 2025, sec. 3).

    S_{t,0} = a_t S_{t-1},   S_{t,j} = S_{t,j-1} + beta_tj k_tj (v_tj - S_{t,j-1}^T k_tj)^T,   S_t = S_{t,n}
    o_t = S_t^T q_t / sqrt(D)

The memory is times a product of n generalised Householder matrices, with `negative_eigenvalues` any rotation of n
dimensions: two steps make permutations of three elements.  a_t is Mamba-2's decay with `gate`, else 1.
O((T + n S) C D) time, O(C D) state.
Deviations: those of the base; beta's layer has a bias; products with queries are divided by sqrt(D), which the norm of
readings cancels.
"""

from __future__ import annotations

from torch import Tensor, nn

from seqstruct.attention.base import Shape, Site
from seqstruct.attention.delta.base import DeltaAttention
from seqstruct.attention.delta.gates import StepSize, Strength
from seqstruct.attention.option import option
from seqstruct.attention.registry import register_attention


@register_attention("delta_product", sites=Site)
class DeltaProductAttention(DeltaAttention):
    """The delta rule, n times a token."""

    class Config(DeltaAttention.Config):
        steps: int = option(2, least=1)  # n, keys and values that a token writes
        negative_eigenvalues: bool = False  # whether beta is in (0, 2), not (0, 1)
        gate: bool = False  # whether the memory decays before each token

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        self.steps = config.steps
        kept, repeats = config.steps * self.kv_heads * self.shape.head_dim, shape.num_heads // self.kv_heads
        self.k_proj = self._projection(shape.key_dim, kept, shape.slot.qk_norm, repeats)
        self.v_proj = self._projection(shape.value_dim, kept, False, repeats)
        for layer in (self.k_proj, self.v_proj):
            nn.init.xavier_uniform_(layer.weight)
        self.strength = Strength(shape.key_dim, config.steps * shape.num_heads, config.negative_eigenvalues)
        if config.gate:
            self.step_size = StepSize(shape.key_dim, shape.num_heads)

    def gates(self, key: Tensor) -> tuple[Tensor | None, Tensor]:
        return self.step_size(key)[0] if self.config.gate else None, self.strength(key)
