"""LUNA, linear unified nested attention (Ma et al. 2021; the workspace of Goyal et al. 2021): layers share a memory.

As read by Peng (2022), section 5.3.7: n vectors X~ handed on by the layer below attend to the tokens, which gives the
controls phi = softmax(X~ X^T) (eq. 5.9) and the slots K~ = phi K, V~ = phi V; the tokens then attend to the slots
(eq. 5.4).  What is handed on to the layer above is X~ plus what it read, V~ of all heads, normalised.  The lowest layer
starts from n learned vectors.
O((T + S) n C) time, O(n C) memory, n the number of slots.  All tokens have to be known: an encoder's attention.
Deviations: one projection of keys and values serves both attentions; products are scaled by the root of a head's size,
as in softmax attention; the memory handed on has no feed-forward part.
"""

from __future__ import annotations

from torch import Tensor, nn

from seqstruct.attention.base import Inputs, Reading, Shape, Site
from seqstruct.attention.multi_head import MultiHeadAttention
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention
from seqstruct.ops.softmax import softmax_attention, softmax_weights


@register_attention("luna", sites={Site.ENCODER_SELF})
class LunaAttention(MultiHeadAttention):
    """Attention from the memory to the tokens, then from the tokens to the memory; `Reading.carry` is B n C."""

    streaming = False
    carries = True
    hands_on = True

    class Config(Options):
        slots: int = option(16, least=1)  # n, size of the memory

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        self.tied = self.shared(config, shape)
        self.memory_proj = nn.Linear(shape.embed_dim, shape.embed_dim)
        self.pack_proj = nn.Linear(shape.embed_dim, shape.embed_dim)
        self.memory_norm = nn.LayerNorm(shape.embed_dim)
        for projection in (self.memory_proj, self.pack_proj):
            nn.init.xavier_uniform_(projection.weight)
            nn.init.zeros_(projection.bias)

    @classmethod
    def shared(cls, config: Config, shape: Shape) -> nn.Embedding:
        """The vectors that the lowest layer starts from, n x C."""
        memory = nn.Embedding(config.slots, shape.embed_dim)
        nn.init.normal_(memory.weight, std=shape.embed_dim**-0.5)
        return memory

    def parallel(self, inputs: Inputs, state: None) -> tuple[Reading, None]:
        """Both attentions.  Raises ValueError on a carry that is not B n C."""
        query, key, value, padding_mask, _, carry = inputs
        expected = (query.size(0), self.config.slots, self.shape.embed_dim)
        if carry is None:
            carry = self.tied.weight.expand(expected)
        elif not isinstance(carry, Tensor) or tuple(carry.shape) != expected:
            found = tuple(carry.shape) if isinstance(carry, Tensor) else type(carry).__name__
            raise ValueError(f"luna: expected a memory of shape {expected} from the layer below, got {found}")
        visible = None if padding_mask is None else ~padding_mask[:, None, None]
        keys, values = self._heads(self.k_proj(key)), self._heads(self.v_proj(value))
        phi = softmax_weights(self._heads(self.memory_proj(carry)), keys, visible).to(keys.dtype)  # B H n S
        slot_keys, slot_values = phi @ keys, phi @ values
        context = softmax_attention(self._heads(self.q_proj(query)), slot_keys, slot_values)
        output = self.out_proj(context.transpose(1, 2).flatten(2))
        packed = self.pack_proj(slot_values.transpose(1, 2).flatten(2))
        memory = self.memory_norm(carry + packed)
        if padding_mask is not None:
            output = output.masked_fill(padding_mask.all(1)[:, None, None], 0.0)
        return Reading(output, None, {}, memory), None
