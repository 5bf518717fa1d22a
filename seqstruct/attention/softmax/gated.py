"""Softmax attention over keys and values that decay (Peng 2022, eq. A.2): what RFA's gate would be there.

At step t key and value of token i are both scaled by (1 - g_i) times the product of g_j over i < j <= t, g the gate of
eq. 4.8, one learned scalar a head and step.  A key that has decayed to nothing does not leave the softmax: its logit is
0, its value 0.
All steps are computed at once, by scaling logits and weights, where the thesis goes through them one after another.
O(T S C) time and O(H T S) memory, without a fused kernel; O(S C) state.
Deviation: products of queries and keys are scaled by the root of a head's size, as in softmax attention.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from seqstruct.attention.base import Attention, Reading, Shape, Site
from seqstruct.attention.gate import Gate
from seqstruct.attention.registry import register_attention
from seqstruct.attention.softmax.base import Cache, DotProductAttention
from seqstruct.ops.masking import causal_mask
from seqstruct.ops.softmax import softmax_weights


@register_attention("gated_softmax", sites={Site.DECODER_SELF})
class GatedSoftmaxAttention(DotProductAttention):
    """Softmax over all keys up to now, which decay.

    In the cache keys and values have one column more.  With L_i the sum of log g_j over j <= i it is log(1 - g_i) - L_i
    of keys and L_i of values, in float32 at least.
    """

    rotates = True

    def __init__(self, config: Attention.Config, shape: Shape):
        super().__init__(config, shape)
        self.gate_layer = Gate(shape.key_dim, shape.num_heads)

    def initial_state(self, batch_size: int) -> Cache:
        empty = super().initial_state(batch_size)
        columns = empty.key.new_empty(*empty.key.shape[:3], empty.key.size(3) + 1)
        return empty._replace(key=columns, value=columns)

    def _keys_and_values(
        self, key: Tensor, value: Tensor, padding_mask: Tensor | None, before: Cache | None
    ) -> tuple[Tensor, Tensor]:
        keys, values = super()._keys_and_values(key, value, padding_mask, before)
        with torch.autocast(key.device.type, enabled=False):
            logits = self.gate_layer(key).transpose(1, 2)  # B H S
            log_gate = F.logsigmoid(logits)
            if padding_mask is not None:
                log_gate = log_gate.masked_fill(padding_mask.unsqueeze(1), 0.0)
            level = log_gate.cumsum(-1)
            held = None if before is None else self._held(before).value
            if held is not None and held.size(2):
                level = level + held[:, :, -1, -1:]
            entry = F.logsigmoid(-logits) - level
        return torch.cat([keys, entry.unsqueeze(-1)], -1), torch.cat([values, level.unsqueeze(-1)], -1)

    def _attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        visible: Tensor | None,
        causal: bool,
        need_weights: bool,
        padding: Tensor | None,
    ) -> Reading:
        if key.size(2) == 0:
            return super()._attend(query, key, value, visible, causal, need_weights, padding)
        steps, used = query.size(1), key.size(2)
        keys, entry, values, level = key[..., :-1], key[..., -1:], value[..., :-1], value[..., -1:]
        if causal:
            visible = causal_mask(steps, used, query.device)[None, None]
        # each query at its own step, the last ones of the cache, where it must not see later keys; else at the last
        paired = visible is not None and visible.size(-2) == steps
        now = level[:, :, used - steps :] if paired else level[:, :, -1:]  # B H T 1
        decay = (entry.transpose(-1, -2) + now).clamp(max=0.0).exp()  # B H T S; above 0 for later keys alone
        queries = self._rotated(self._heads(self.q_proj(query)), padding, together=not paired).to(keys.dtype)
        weights = softmax_weights(queries, keys, visible, decay)
        context = self._apply_weights(weights * decay, values)
        output = self.out_proj(context.transpose(1, 2).flatten(2).to(query.dtype))
        if visible is not None:
            output = output.masked_fill(~visible.any(-1)[:, 0, :, None], 0.0)  # the bias too: nothing was read
        return Reading(output, weights if need_weights else None)
