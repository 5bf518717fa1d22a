"""What attention between blocks of an encoder's tokens shares: the way into blocks and back."""

from __future__ import annotations

from torch import Tensor

from seqstruct.attention.base import Inputs, Reading
from seqstruct.attention.multi_head import MultiHeadAttention
from seqstruct.ops.masking import mask_of
from seqstruct.ops.memory import Layout, from_blocks, layout, to_blocks


class BlockAttention(MultiHeadAttention):
    """Multi-head attention over blocks of `size` tokens; a subclass says which blocks see which.

    All tokens have to be known.  Padding takes no place in a block.  There are no weights to show or to drop:
    `dropout` of the shape is not used.
    """

    streaming = False

    def attend(self, query: Tensor, key: Tensor, value: Tensor, place: Layout, x: Tensor) -> Tensor:
        """B H J P D, for queries, keys and values of that shape and the inputs x: B 1 J P C."""
        raise TypeError(f"{type(self).__name__} defines no attention between blocks")

    def parallel(self, inputs: Inputs, state: None) -> tuple[Reading, None]:
        query, key, value, padding_mask, *_ = inputs
        place = layout(mask_of(padding_mask, key), self.config.size)
        turned = [self._rotated(self._heads(x), padding_mask) for x in (self.q_proj(query), self.k_proj(key))]
        blocks = [to_blocks(x, place) for x in (*turned, self._heads(self.v_proj(value)))]
        context = from_blocks(self.attend(*blocks, place, to_blocks(query.unsqueeze(1), place)), place)
        output = self.out_proj(context.transpose(1, 2).flatten(2))
        if padding_mask is not None:
            output = output.masked_fill(padding_mask.unsqueeze(-1), 0.0)
        return Reading(output), None
