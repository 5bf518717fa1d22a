"""Synthesizer (Tay et al. 2021): weights that are not made of products of queries and keys.

`dense`: a token's weights over the positions are a layer of its own input, softmax(W2 relu(W1 x)), for each head;
`random`: they are learned for each pair of positions, whatever stands there.  Positions count real tokens from 0.
O(T^2 C) time, dense O(T length C).  An encoder's attention; a sequence longer than `length` is a ValueError.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seqstruct.attention.base import Inputs, Reading, Shape, Site
from seqstruct.attention.memory.base import check_length
from seqstruct.attention.multi_head import MultiHeadAttention
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention
from seqstruct.ops.masking import mask_of, positions
from seqstruct.ops.softmax import masked_softmax, weighted_values

KINDS = ("dense", "random")


@register_attention("synthesizer", sites={Site.ENCODER_SELF})
class SynthesizerAttention(MultiHeadAttention):
    """Synthetic weights; of the projections of softmax attention the values' and the output's alone are used."""

    streaming = False
    drops_weights = True

    class Config(Options):
        kind: str = option("dense", among=KINDS)  # whether logits come from each query, or are parameters
        length: int = option(1024, least=1)  # tokens of the longest sequence

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        del self.q_proj, self.k_proj
        heads, dim = shape.num_heads, shape.head_dim
        if config.kind == "dense":
            self.hidden = nn.Linear(shape.embed_dim, shape.embed_dim)
            self.position_weight = nn.Parameter(torch.randn(heads, dim, config.length) * dim**-0.5)
            self.position_bias = nn.Parameter(torch.zeros(heads, 1, config.length))
        else:
            self.logits = nn.Parameter(torch.randn(heads, config.length, config.length))

    def parallel(self, inputs: Inputs, state: None) -> tuple[Reading, None]:
        """All tokens at once.  Raises ValueError past the last position."""
        query, key, value, padding_mask, need_weights, _ = inputs
        pad = mask_of(padding_mask, key)
        place = positions(pad).masked_fill(pad, 0)
        check_length(self.name, place, self.config.length)
        logits = self._logits(query, place)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        blind = pad.all(1)[:, None, None, None]
        weights = masked_softmax(logits, pad[:, None, None])
        values = self._heads(self.v_proj(value))
        context = weighted_values(weights, values, self.dropout_rate)
        output = self.out_proj(context.transpose(1, 2).flatten(2))
        return Reading(output.masked_fill(blind.squeeze(3), 0.0), weights if need_weights else None), None

    def _logits(self, query: Tensor, place: Tensor) -> Tensor:
        """B H T S, for inputs B T C at the positions B T."""
        if self.config.kind == "random":
            return self.logits[:, place.unsqueeze(2), place.unsqueeze(1)].transpose(0, 1)
        hidden = self._heads(self.hidden(query).relu())
        logits = hidden @ self.position_weight + self.position_bias  # B H T length
        return logits.gather(3, place[:, None, None].expand(-1, logits.size(1), logits.size(2), -1))
