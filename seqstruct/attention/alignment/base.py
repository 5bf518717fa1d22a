"""What the attention of recurrent translation models shares: one head, scores of whole vectors, values as they are."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from seqstruct.attention.base import Attention, Reading, Shape
from seqstruct.attention.option import Options, option
from seqstruct.ops.masking import clear_padding, mask_of
from seqstruct.ops.softmax import additive_scores, masked_softmax, weighted_values


class AlignmentMemory(NamedTuple):
    """key: B S K, as the score needs it; value: B S value_dim; padding: B S bool, True = padding."""

    key: Tensor
    value: Tensor
    padding: Tensor


class DotScore(nn.Module):
    """query . key.  Raises ValueError if their sizes differ."""

    def __init__(self, query_size: int, key_size: int):
        super().__init__()
        if query_size != key_size:
            raise ValueError(f"the score 'dot' needs keys of the queries' size, {query_size}, not {key_size}")
        self.key_size = key_size

    def prepare(self, key: Tensor) -> Tensor:
        """What is kept of keys B S key_size, B S K."""
        return key

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """B T S for queries B T query_size and prepared keys B S K."""
        return query.to(key.dtype) @ key.transpose(1, 2)


class GeneralScore(DotScore):
    """query . W key, W a bilinear map."""

    def __init__(self, query_size: int, key_size: int):
        super().__init__(query_size, query_size)
        self.key_proj = nn.Linear(key_size, query_size, bias=False)

    def prepare(self, key: Tensor) -> Tensor:
        return self.key_proj(key)


class AdditiveScore(nn.Module):
    """v . tanh(W query + U key), which is v . tanh(W [query; key]) too."""

    def __init__(self, query_size: int, key_size: int, size: int):
        super().__init__()
        self.key_size = size
        self.query_proj = nn.Linear(query_size, size, bias=False)
        self.key_proj = nn.Linear(key_size, size, bias=False)
        self.weight = nn.Parameter(torch.empty(size).uniform_(-(size**-0.5), size**-0.5))

    def prepare(self, key: Tensor) -> Tensor:
        return self.key_proj(key)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """B T S for queries B T query_size and prepared keys B S K."""
        return additive_scores(self.query_proj(query).to(key.dtype), key, self.weight.to(key.dtype))


class AlignmentAttention(Attention):
    """Values weighted by a softmax of scores; a subclass sets `score`, or says which scores or weights there are.

    Values pass as they are; where their size is not embed_dim, a linear map without bias brings the context to it,
    unless a subclass says that it `projects` nothing.
    """

    State = AlignmentMemory
    drops_weights = True
    projects: ClassVar[bool] = True
    score: nn.Module

    def __init__(self, config, shape: Shape):
        super().__init__(config, shape)
        fits = shape.value_dim == shape.embed_dim or not self.projects
        self.out_proj = nn.Identity() if fits else nn.Linear(shape.value_dim, shape.embed_dim, bias=False)

    def weights(self, state: AlignmentMemory, query: Tensor, position: Tensor | None) -> Tensor:
        """B T S, 0 at padding: of queries B T C at positions B T, from 0 on where they are not given."""
        return masked_softmax(self.scores(state, query), state.padding[:, None])

    def key_size(self) -> int:
        """K, the size of what is kept of a key."""
        return self.score.key_size

    def prepare(self, key: Tensor) -> Tensor:
        """What is kept of keys B S key_dim: B S K."""
        return self.score.prepare(key)

    def scores(self, state: AlignmentMemory, query: Tensor) -> Tensor:
        """B T S, of queries B T C, padding included."""
        return self.score(query, state.key)

    def initial_state(self, batch_size: int) -> AlignmentMemory:
        like = next(self.parameters(), torch.zeros(()))
        return AlignmentMemory(
            like.new_zeros(batch_size, 0, self.key_size()),
            like.new_zeros(batch_size, 0, self.shape.value_dim),
            torch.zeros(batch_size, 0, dtype=torch.bool, device=like.device),
        )

    def write(
        self, state: AlignmentMemory, key: Tensor, value: Tensor, padding_mask: Tensor | None = None
    ) -> AlignmentMemory:
        key, value = clear_padding(padding_mask, key, value)
        added = AlignmentMemory(self.prepare(key), value, mask_of(padding_mask, key))
        if state.padding.size(1) == 0:
            return added
        return AlignmentMemory(*(torch.cat(parts, 1) for parts in zip(state, added, strict=True)))

    def read(
        self, state: AlignmentMemory, query: Tensor, position: Tensor | None = None, *, need_weights: bool = False
    ) -> Reading:
        """Contexts for queries B T C; position: as `weights`."""
        if state.padding.size(1) == 0:
            return Reading(torch.zeros_like(query), query.new_zeros(len(query), 1, query.size(1), 0))
        weights = self.weights(state, query, position)
        context = weighted_values(weights, state.value, self.dropout_rate)
        return Reading(self.out_proj(context), weights[:, None] if need_weights else None)


class ScoredAttention(AlignmentAttention):
    """By a score of Luong et al. (2015, sec. 3.1); concat is additive, of the queries' size."""

    class Config(Options):
        score: str = option("general", among=("dot", "general", "concat"))  # of a query and a key

    def __init__(self, config: Config, shape: Shape):
        """Raises ValueError if the score dot does not fit."""
        super().__init__(config, shape)
        sizes = shape.embed_dim, shape.key_dim
        if config.score == "concat":
            self.score = AdditiveScore(*sizes, shape.embed_dim)
        else:
            self.score = (DotScore if config.score == "dot" else GeneralScore)(*sizes)
