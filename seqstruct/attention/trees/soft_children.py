"""Soft children under a distribution over dependency trees (Kim et al. 2017, sec. 3.2).

The output of token i is sum_j p(z_ij = 1) x_j, with the probabilities of `dependency`: the weights of a token sum to
its expected number of children, 0 for a leaf.  O(B S^3) time, O(B S^2 score_size) memory.
"""

from __future__ import annotations

from torch import Tensor

from seqstruct.attention.base import Site
from seqstruct.attention.registry import register_attention
from seqstruct.attention.trees.dependency import DependencyAttention


@register_attention("soft_children", sites={Site.ENCODER_SELF})
class SoftChildrenAttention(DependencyAttention):
    """The expected sum of each token's children; `marginals` and `heads` are those of `dependency`."""

    root_has_value = False

    def weights_and_sums(self, parents: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        children = parents[:, :, parents.size(2) - parents.size(1) :].transpose(1, 2)  # B S S, [b, token, child]
        return children, self.sum_values(children, value)
