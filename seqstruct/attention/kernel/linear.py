"""Linear attention (Katharopoulos et al. 2020, sec. 3.2 and eq. 7): weights are products of elu(x) + 1.

O((T + S) D C) time, O(D C) state, with D the size of a head.
Deviation: nothing is added to the denominator, which is positive wherever a key was written.
"""

from __future__ import annotations

from seqstruct.attention.base import Site
from seqstruct.attention.kernel.base import KernelAttention
from seqstruct.attention.registry import register_attention
from seqstruct.ops.memory import EluMap, FeatureMap


@register_attention("linear", sites=Site)
class LinearAttention(KernelAttention):
    """As many features as a head has dimensions."""

    @property
    def num_features(self) -> int:
        return self.shape.head_dim

    def feature_map(self, fixed: bool) -> FeatureMap:
        return EluMap()
