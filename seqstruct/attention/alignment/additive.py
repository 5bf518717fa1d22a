"""Additive attention, the alignment model of RNNsearch (Bahdanau et al. 2015, sec. 3.1 and appendix A.1.2).

Weights are softmax over s of v . tanh(W q + U k_s).  O(T S (K + C)) time, O(T S K) memory, O(S (K + C)) state.
Deviation: where the keys' size is not the queries' (two directions of an encoder), a linear map brings the context to
the queries' size.
"""

from __future__ import annotations

from seqstruct.attention.alignment.base import AdditiveScore, AlignmentAttention
from seqstruct.attention.base import Shape, Site
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention


@register_attention("additive", sites={Site.CROSS})
class AdditiveAttention(AlignmentAttention):
    """A feed-forward network of one hidden layer gives the scores."""

    class Config(Options):
        size: int = option(0, least=0)  # K, of the hidden layer; 0 for the queries' size

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        self.score = AdditiveScore(shape.embed_dim, shape.key_dim, config.size or shape.embed_dim)
