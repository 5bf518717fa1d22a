"""DeltaNet: fast weights that are corrected (Schlag et al. 2021, sec. 4.2; chunked as in Yang et al. 2024, sec. 3).

    S_t = S_{t-1} + beta_t k_t (v_t - S_{t-1}^T k_t)^T = (I - beta_t k_t k_t^T) S_{t-1} + beta_t k_t v_t^T
    o_t = S_t^T q_t / sqrt(D)

What the memory holds for a key is replaced, to the share beta_t in (0, 1), by the new value.  SiLU and norm 1 are those
of Yang et al. (sec. 3.3).  With `negative_eigenvalues` beta_t is in (0, 2), so that I - beta k k^T also reflects: a
state that changes sign, which parity needs (Grazzi et al. 2025, sec. 4).
O((T + S) C D) time, O(C D) state.
Deviations: those of the base; beta's layer has a bias.
"""

from __future__ import annotations

from torch import Tensor

from seqstruct.attention.base import Shape, Site
from seqstruct.attention.delta.base import DeltaAttention
from seqstruct.attention.delta.gates import Strength
from seqstruct.attention.registry import register_attention


@register_attention("delta", sites=Site)
class DeltaRuleAttention(DeltaAttention):
    """The delta rule without decay."""

    class Config(DeltaAttention.Config):
        negative_eigenvalues: bool = False  # whether beta is in (0, 2), not (0, 1)

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        self.strength = Strength(shape.key_dim, shape.num_heads, config.negative_eigenvalues)

    def gates(self, key: Tensor) -> tuple[None, Tensor]:
        return None, self.strength(key)
