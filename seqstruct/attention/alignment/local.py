"""Local attention (Luong et al. 2015, sec. 3.2): a softmax over a window of source positions.

local_monotonic (local-m): the window of step t lies around source position t.
local_predictive (local-p): around p_t = S sigmoid(v . tanh(W q)), S the number of real keys, and the weights of the
window are multiplied by exp(-(s - p_t)^2 / (2 sigma^2)) with sigma = half_width / 2 (eq. 9 and 10).
A window has half_width positions on each side; where it holds no key nothing is read.  O(T S C) time, O(S C) state:
scores outside the window are calculated and dropped, which is faster here than gathering.
Deviation: where the values' size is not the queries', a linear map brings the context to the queries' size.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from seqstruct.attention.alignment.base import AlignmentMemory, ScoredAttention
from seqstruct.attention.base import Shape, Site
from seqstruct.attention.gate import wide_layers
from seqstruct.attention.option import option
from seqstruct.attention.registry import register_attention
from seqstruct.ops.masking import positions
from seqstruct.ops.softmax import gaussian, masked_softmax, within_window


class LocalAttention(ScoredAttention):
    """Softmax over a window; a subclass says where it lies."""

    class Config(ScoredAttention.Config):
        half_width: int = option(10, least=1)  # D, source positions on each side of the centre

    def _in_window(self, state: AlignmentMemory, query: Tensor, center: Tensor) -> Tensor:
        """B T S: softmax over the window around centers B T."""
        window = within_window(center, positions(state.padding), self.config.half_width)
        return masked_softmax(self.scores(state, query), state.padding[:, None] | ~window)


@register_attention("local_monotonic", sites={Site.CROSS})
class LocalMonotonicAttention(LocalAttention):
    """The window moves by one with each query."""

    def weights(self, state: AlignmentMemory, query: Tensor, position: Tensor | None) -> Tensor:
        if position is None:
            position = torch.arange(query.size(1), device=query.device).expand(query.shape[:2])
        return self._in_window(state, query, position)


@register_attention("local_predictive", sites={Site.CROSS})
class LocalPredictiveAttention(LocalAttention):
    """The query says where the window lies."""

    def __init__(self, config: LocalAttention.Config, shape: Shape):
        super().__init__(config, shape)
        size = shape.embed_dim
        self.position_hidden = nn.Linear(size, size, bias=False)
        self.position_weight = nn.Parameter(torch.empty(size).uniform_(-(size**-0.5), size**-0.5))

    def weights(self, state: AlignmentMemory, query: Tensor, position: Tensor | None) -> Tensor:
        """B T S, the Gaussian included, in float32 at least: rows sum to less than 1."""
        with torch.autocast(query.device.type, enabled=False):  # half types have no numbers between far positions
            hidden = wide_layers(self.position_hidden, query).tanh()
            share = (hidden @ self.position_weight.to(hidden.dtype)).sigmoid()  # B T
        center = share * (~state.padding).sum(1, keepdim=True)
        weights = self._in_window(state, query, center.detach())
        return weights * gaussian(center, positions(state.padding), self.config.half_width / 2)
