"""Retention (Sun et al. 2023, sec. 2.1 and 2.2): a sum of outer products that decays at fixed rates.

    S_t = g S_{t-1} + k_t v_t^T,   o_t = S_t^T q_t / sqrt(D),   g = 1 - 2^(-5 - h) in head h = 0, 1, ...

Readings are divided by their root mean square in each head and times SiLU of a projection of the query's input.
O(T C D) time, O(C D) state.  Not at cross-attention, where fixed rates would forget a source's beginning.
Where the slot has rotary positions queries and keys turn by theirs, as in eq. 3 to 5; the memory is kept as the last
token sees it, turned on with each token, so that no position is in the state.
Deviations: those of the base; no rotation where the slot asks for none; the norm of readings takes no mean off and has
learned factors; the denominators of sec. 2.1, which it cancels, are left out.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from seqstruct.attention.base import Site
from seqstruct.attention.delta.base import DeltaAttention, Entries, FastWeights
from seqstruct.attention.registry import register_attention
from seqstruct.ops.rotary import rotated


@register_attention("retention", sites=(Site.ENCODER_SELF, Site.DECODER_SELF))
class RetentionAttention(DeltaAttention):
    """Decays of the heads without parameters."""

    activated = normed = False
    output_gate = staticmethod(F.silu)
    rotates = True

    def gates(self, key: Tensor) -> tuple[Tensor, None]:
        dtype = torch.promote_types(key.dtype, torch.float32)
        head = torch.arange(self.shape.num_heads, dtype=dtype, device=key.device)
        return torch.log1p(-(2 ** (-5 - head))).expand(*key.shape[:2], -1), None

    def written_to(self, state: FastWeights, written: Entries) -> FastWeights:
        """The memory after all keys."""
        if self.shape.slot.rotary_base is None:
            return super().written_to(state, written)
        place, written = self._placed(written)
        return self._seen_by_the_last(super().written_to(state, written), place)

    def in_turn(self, state: FastWeights, query: Tensor, written: Entries) -> tuple[Tensor, FastWeights]:
        """All readings, and the memory after the last key."""
        if self.shape.slot.rotary_base is None:
            return super().in_turn(state, query, written)
        place, written = self._placed(written)
        readings, state = super().in_turn(state, rotated(query, place, self.shape.slot.rotary_base), written)
        return readings, self._seen_by_the_last(state, place)

    def _placed(self, written: Entries) -> tuple[Tensor, Entries]:
        """B S, tokens up to each place, of which padding alone does not decay; and keys turned by these positions."""
        place = (written.log_decay[:, 0] < 0).cumsum(1)
        return place, written._replace(key=rotated(written.key, place, self.shape.slot.rotary_base))

    def _seen_by_the_last(self, state: FastWeights, place: Tensor) -> FastWeights:
        if not place.size(1):
            return state
        return FastWeights(rotated(state.memory.mT, -place[:, -1:], self.shape.slot.rotary_base).mT)
