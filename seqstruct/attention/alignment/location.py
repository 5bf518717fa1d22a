"""Location-based attention (Luong et al. 2015, sec. 3.1, eq. 8): weights come from the query alone.

Weights are softmax over s of row s of W q, for source positions s from 0; the rows of a shorter source are used, and
keys from `length` on are not seen, as in the source.  O(T (S + length) C) time, O(S C) state.
Deviation: where the values' size is not the queries', a linear map brings the context to the queries' size.
"""

from __future__ import annotations

from torch import Tensor, nn

from seqstruct.attention.alignment.base import AlignmentAttention, AlignmentMemory
from seqstruct.attention.base import Shape, Site
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention
from seqstruct.ops.masking import positions
from seqstruct.ops.softmax import masked_softmax


@register_attention("location", sites={Site.CROSS})
class LocationAttention(AlignmentAttention):
    """One score for each source position."""

    class Config(Options):
        length: int = option(128, least=1)  # source positions that have a score

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        self.position_proj = nn.Linear(shape.embed_dim, config.length, bias=False)

    def key_size(self) -> int:
        """0: nothing is kept of a key."""
        return 0

    def prepare(self, key: Tensor) -> Tensor:
        return key.new_empty(*key.shape[:-1], 0)  # a view would keep the keys

    def scores(self, state: AlignmentMemory, query: Tensor) -> Tensor:
        """B T length, of queries alone."""
        return self.position_proj(query)

    def weights(self, state: AlignmentMemory, query: Tensor, position: Tensor | None) -> Tensor:
        index = positions(state.padding)
        unseen = state.padding | (index >= self.config.length)
        rows = index.clamp_max(self.config.length - 1)[:, None].expand(-1, query.size(1), -1)
        return masked_softmax(self.scores(state, query).gather(2, rows), unseen[:, None])
