"""Segmentation attention: each query selects stretches of keys by a two-state CRF (Kim et al. 2017, sec. 3.1 and 4.2).

For one query, z_s in {0, 1} says whether key s is selected, and a selection has the score

    sum_s z_s q . k_s / sqrt(D) + sum_s b[z_s, z_(s+1)]

with four pairwise potentials b for each head.  The weight of a key is p(z_s = 1) / gamma, with gamma = (1 / lambda)
sum_s p(z_s = 1); `total` is the paper's lambda.  With b = 0 and without gamma this is `sigmoid`, whose parameters it
takes, so a trained sigmoid model is a start for it (footnote 6).  O(T S C) time, O(S C) state; the marginals take
O(H T S), calculated in float64.
Deviations: scaled products as the score, in place of the source's bilinear form, projections of values and output, and
many heads, as in `sigmoid`.  The potentials of a key depend on the input, and a penalty does not, so `score_l2` stands
for the l2 penalty on unary potentials (footnote 6): it is put on the parameters that they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from seqstruct.attention.base import Reading, Shape, Site
from seqstruct.attention.dot_product import DotProductAttention
from seqstruct.attention.option import option
from seqstruct.attention.registry import register_attention
from seqstruct.ops.dot_product import scaled_scores
from seqstruct.ops.linear_chain import chain_best_path, chain_marginals


class Potentials(NamedTuple):
    """unary: BHT S 2 and edge: BHT S-1 2 2, log space, float64; padding_mask: BHT S bool, True = padding, or None."""

    unary: Tensor
    edge: Tensor
    padding_mask: Tensor | None


class Structures(Mapping[str, Tensor]):
    """Tensors by name, each calculated when it is looked at: decoding asks for weights, which these come with, at every
    step, and looks at none.
    """

    def __init__(self, **calculations: Callable[[], Tensor]):
        self.calculations = calculations

    def __getitem__(self, name: str) -> Tensor:
        return self.calculations[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self.calculations)

    def __len__(self) -> int:
        return len(self.calculations)


@register_attention("segmentation", sites={Site.CROSS})
class SegmentationAttention(DotProductAttention):
    """Selection of stretches of keys.

    In evaluation, a reading with weights has in `extra`: marginals B T H S, p(z_s = 1), before normalisation, and
    best_selection B T H S long, the most probable selection: 1, 0, or -1 at padding.
    """

    @dataclass(frozen=True)
    class Config:
        """Options."""

        normalize: bool = True  # divide the marginals by gamma, so that a query's weights sum to `total`
        total: float = option(2.0, above=0)  # sum of a query's weights where they are normalised, the paper's lambda
        pairwise_l2: float = option(0.005, least=0)  # penalty: this times the pairwise potentials' sum of squares
        score_l2: float = option(0.0, least=0)  # the same, on the weights and biases of query and key projections

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        self.pairwise = nn.Parameter(torch.zeros(shape.num_heads, 2, 2))

    def penalty(self) -> Tensor | None:
        """The l2 penalties, or None if both are switched off."""
        penalties = []
        if self.config.pairwise_l2:
            penalties.append(self.config.pairwise_l2 * self.pairwise.square().sum())
        if self.config.score_l2:
            parameters = (*self.q_proj.parameters(), *self.k_proj.parameters())
            penalties.append(self.config.score_l2 * sum(p.square().sum() for p in parameters))
        return torch.stack(penalties).sum() if penalties else None

    def weights(self, query: Tensor, key: Tensor, visible: Tensor | None) -> Tensor:
        """B H T S, float32 at least, each 0 or more.  Raises ValueError, naming the place, on a score that is NaN."""
        score = scaled_scores(query, key)
        marginals = self._marginals(score, self._potentials(score, visible))
        if self.config.normalize:
            gamma = marginals.sum(-1, keepdim=True) / self.config.total
            marginals = marginals / gamma.clamp_min(torch.finfo(marginals.dtype).tiny)
        return marginals.to(score.dtype)

    def _attend(
        self, query: Tensor, key: Tensor, value: Tensor, visible: Tensor | None, causal: bool, need_weights: bool
    ) -> Reading:
        reading = super()._attend(query, key, value, visible, causal, need_weights)
        if not need_weights or self.training or key.size(2) == 0:
            return reading

        def score() -> Tensor:
            return scaled_scores(self._heads(self.q_proj(query)), key)

        def marginals() -> Tensor:
            found = self._marginals(score(), self._potentials(score(), visible))
            return found.to(reading.weights.dtype).transpose(1, 2)

        def best_selection() -> Tensor:
            found = chain_best_path(*self._potentials(score(), visible)).states
            return found.view(reading.weights.shape).transpose(1, 2)

        return reading._replace(extra=Structures(marginals=marginals, best_selection=best_selection))

    def _potentials(self, score: Tensor, visible: Tensor | None) -> Potentials:
        selected = score.double().flatten(0, 2)  # BHT S
        unary = torch.stack([torch.zeros_like(selected), selected], -1)
        _, H, T, S = score.shape
        pairwise = self.pairwise.double().view(1, H, 1, 1, 2, 2)
        edge = pairwise.expand(score.size(0), H, T, S - 1, 2, 2).flatten(0, 2)
        padding_mask = None if visible is None else ~visible.expand(score.shape).flatten(0, 2)
        return Potentials(unary, edge, padding_mask)

    def _marginals(self, score: Tensor, potentials: Potentials) -> Tensor:
        """B H T S, p(z_s = 1), float64."""
        try:
            return chain_marginals(*potentials).node[..., 1].view(score.shape)
        except ValueError:
            wrong = ~score.isfinite()
            if potentials.padding_mask is not None:
                wrong = wrong & ~potentials.padding_mask.view(score.shape)
            if not bool(wrong.any()):
                raise
            place = tuple(wrong.nonzero()[0].tolist())
            raise ValueError(
                f"{self.name}: the score is {score[place].item()} at [row, head, query, key] = {list(place)}"
            ) from None
