"""Monotone alignment as attention: a query's key is the last of an alignment of all queries so far (Kim et al. 2017).

As structured attention (section 3) with the alignments a_0 <= a_1 <= ... <= a_t of queries with keys as structures,
scanned as Raffel et al. (2017, section 2.2) do: from the key of the query before on, each key is stopped at or passed,

    p(a_0 .. a_t | query t) ~ prod_{t' < t} [ pass .. pass stop_{a_t'} ]  pass .. pass exp(score(query t, key a_t))
    stop_s = sigmoid(w . key_s + b),  pass_s = 1 - stop_s

The chances to stop depend on keys alone, and of scores only the query's own count: a reading is a function of the
memory, the query and its position, and the step form is the parallel form; the softmax of `luong` has
alignments of the keys as its prior.  The sums over alignments are prefixes of `seqstruct.distributions.Alignment`.
O(T S C) time, O(S C) state, and O((t + S) t) more for the alignments of the queries up to t, which every step of
decoding takes anew.
Deviations: Raffel et al.'s probabilities to stop depend on the query, and on no prior; where the values' size is not
the queries', a linear map brings the context to it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from seqstruct.attention.alignment.base import AlignmentMemory, ScoredAttention
from seqstruct.attention.base import Shape, Site
from seqstruct.attention.registry import register_attention
from seqstruct.distributions import Alignment
from seqstruct.ops.opaque import opaque
from seqstruct.ops.softmax import masked_softmax


@register_attention("alignment_crf", sites={Site.CROSS})
class AlignmentCRFAttention(ScoredAttention):
    """Softmax over keys whose prior is where monotone alignments have come by now."""

    def __init__(self, config: ScoredAttention.Config, shape: Shape):
        super().__init__(config, shape)
        self.stop = nn.Linear(shape.key_dim, 1)

    def key_size(self) -> int:
        """That of the score, and the logit of stopping."""
        return self.score.key_size + 1

    def prepare(self, key: Tensor) -> Tensor:
        return torch.cat([self.score.prepare(key), self.stop(key)], -1)

    def scores(self, state: AlignmentMemory, query: Tensor) -> Tensor:
        return self.score(query, state.key[..., :-1])

    def weights(self, state: AlignmentMemory, query: Tensor, position: Tensor | None) -> Tensor:
        scores = self.scores(state, query)
        prior = _prior_at(state.key[..., -1], state.padding, position, query.size(1))
        return masked_softmax(scores + prior, state.padding[:, None]).to(scores.dtype)

    def prior(self, state: AlignmentMemory, queries: int) -> Tensor:
        """B queries S, log-weights of the alignments of the queries before each that have come to a key; float64."""
        return _prior(state.key[..., -1], state.padding, queries)


def _fake_prior(logit: Tensor, padded: Tensor, position: Tensor | None, queries: int) -> Tensor:
    return logit.new_empty(logit.size(0), queries, logit.size(1), dtype=torch.float64)


@opaque(_fake_prior)
def _prior_at(logit: Tensor, padded: Tensor, position: Tensor | None, queries: int) -> Tensor:
    """B T S, the rows of `_prior` for T queries, at positions B T where these are given."""
    if position is None:
        return _prior(logit, padded, queries)
    found = _prior(logit, padded, int(position.max()) + 1 if position.numel() else 1)
    return found.gather(1, position.unsqueeze(2).expand(-1, -1, found.size(2)))


def _prior(logit: Tensor, padded: Tensor, queries: int) -> Tensor:
    """As `AlignmentCRFAttention.prior`, for logits of stopping B S."""
    logit = logit.double()
    stop = logsigmoid(logit).masked_fill(padded, -torch.inf)
    onward = logsigmoid(-logit).masked_fill(padded, 0.0).roll(1, 1)  # past the key before
    steps = torch.stack([stop, torch.full_like(stop, -torch.inf), onward], -1)  # B S 3
    paths = Alignment(steps.unsqueeze(1).expand(-1, max(queries, 1), -1, -1), kind="edit")
    return paths.prefixes()[:, :queries]
