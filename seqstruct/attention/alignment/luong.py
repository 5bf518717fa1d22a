"""Global attention (Luong et al. 2015, sec. 3.1): softmax of the scores dot, general or concat over all keys.

dot: q . k_s, for keys of the queries' size; general: q . W k_s, which is Kim et al.'s (2017, appendix A.3) too; concat:
v . tanh(W [q; k_s]).  O(T S C) time (concat: and memory), O(S C) state.
Deviation: where the values' size is not the queries', a linear map brings the context to the queries' size.
"""

from __future__ import annotations

from seqstruct.attention.alignment.base import ScoredAttention
from seqstruct.attention.base import Site
from seqstruct.attention.registry import register_attention


@register_attention("luong", sites={Site.CROSS})
class LuongAttention(ScoredAttention):
    """One head, without scaling and without a projection of values."""
