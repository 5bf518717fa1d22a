"""Segmentation attention: each query selects stretches of keys by a two-state CRF (Kim et al. 2017, sec. 4.2 and A.3).

For a query h' and keys h_s, z_s in {0, 1} says whether key s is selected, and a selection has the score

    sum_s z_s h_s W h' + sum_s b[z_s, z_(s+1)]

with one bilinear map W and four pairwise potentials b.  The weight of a key is p(z_s = 1) / gamma, with gamma =
(1 / lambda) sum_s p(z_s = 1); `total` is the paper's lambda.  Where scores are so low that float64 cannot hold gamma,
probabilities are those among the selections of some key, which make the same weights.
`segmentation(pairwise=False, normalize=False)` has no b and is the source's sigmoid attention, of the same W: a trained
one is a start for the whole (footnote 6).
O(T S C) time, O(S C) state; the marginals take O(T S), calculated in float64.
Deviations: where the values' size is not the queries', a linear map brings the context to it.  The potentials of a key
depend on the input, and a penalty does not, so `score_l2` stands for the l2 penalty on unary potentials (footnote 6):
it is put on W.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqstruct.attention.alignment.base import AlignmentAttention, AlignmentMemory, GeneralScore
from seqstruct.attention.base import Reading, Shape, Site
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention
from seqstruct.ops.chains import chain_best_path, chain_marginals
from seqstruct.ops.masking import host_looks, some
from seqstruct.ops.softmax import masked_softmax

BEFORE_AND_AFTER = [0, 1, 0]  # of each of three states, whether a key is selected
IMPOSSIBLE = [[False, False, True], [True, False, False], [True, False, False]]  # steps between them
SMALLEST_SUM = 1e-250  # of probabilities that are still summed among all selections, the empty one with them


class Potentials(NamedTuple):
    """unary: BT S C and edge: BT S-1 C C, log space, float64; padding_mask: BT S bool, True = padding, or None.

    C: 2 states, or 3 where some key is known to be selected: none is yet, it is, it is not and one was.
    """

    unary: Tensor
    edge: Tensor
    padding_mask: Tensor | None


class Structures(Mapping[str, Tensor]):
    """What an attention's methods say of queries, each calculated when it is looked at: decoding asks for weights,
    which these come with, at every step, and looks at none.
    """

    NAMES: ClassVar = ("marginals", "best_selection")

    def __init__(self, attention: SegmentationAttention, state: AlignmentMemory, query: Tensor):
        self.attention, self.state, self.query = attention, state, query

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.NAMES:
            raise KeyError(name)
        return getattr(self.attention, name)(self.state, self.query)

    def __iter__(self) -> Iterator[str]:
        return iter(self.NAMES)

    def __len__(self) -> int:
        return len(self.NAMES)


@register_attention("segmentation", sites={Site.CROSS})
class SegmentationAttention(AlignmentAttention):
    """Selection of stretches of keys, by one head.

    In evaluation, a reading with weights has `marginals` and `best_selection` in `extra`.
    """

    class Config(Options):
        normalize: bool = True  # divide the marginals by gamma, so that a query's weights sum to `total`
        total: float = option(2.0, above=0)  # sum of a query's weights where they are normalised, the paper's lambda
        pairwise: bool = True  # potentials of neighbours; without them keys are selected independently
        pairwise_l2: float = option(0.005, least=0)  # penalty: this times the pairwise potentials' sum of squares
        score_l2: float = option(0.0, least=0)  # the same, on the bilinear map of the scores

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        self.score = GeneralScore(shape.embed_dim, shape.key_dim)
        self.pairwise = nn.Parameter(torch.zeros(2, 2)) if config.pairwise else None

    def check_saved(self, names: Collection[str]) -> None:
        """Raises ValueError for the parameters of scaled products, which no bilinear map can stand for."""
        if "pairwise" in names and "q_proj.weight" in names:
            raise ValueError(
                f"the checkpoint's {self.name} scores by scaled products of projections with biases, where this one "
                "has a bilinear map (Kim et al. 2017, appendix A.3), which cannot stand for them: train the model anew"
            )

    def penalty(self) -> Tensor | None:
        penalties = []
        if self.config.pairwise_l2 and self.pairwise is not None:
            penalties.append(self.config.pairwise_l2 * self.pairwise.square().sum())
        if self.config.score_l2:
            penalties.append(self.config.score_l2 * self.score.key_proj.weight.square().sum())
        return torch.stack(penalties).sum() if penalties else None

    def weights(self, state: AlignmentMemory, query: Tensor, position: Tensor) -> Tensor:
        """B T S, each 0 or more.  Raises ValueError, naming the place, on a score that is NaN."""
        score, padding = self.scores(state, query), state.padding
        if not self.config.normalize:
            return self._probabilities(score, padding).to(score.dtype)
        return (self.config.total * self._shares(score, padding)).to(score.dtype)

    def read(
        self, state: AlignmentMemory, query: Tensor, position: Tensor | None = None, *, need_weights: bool = False
    ) -> Reading:
        """As `AlignmentAttention`; where weights are wanted in evaluation, with structures in `extra`."""
        reading = super().read(state, query, position, need_weights=need_weights)
        if not need_weights or self.training or state.padding.size(1) == 0:
            return reading
        return reading._replace(extra=Structures(self, state, query))

    def marginals(self, state: AlignmentMemory, query: Tensor) -> Tensor:
        """B T 1 S, p(z_s = 1), before normalisation."""
        return self._probabilities(self.scores(state, query), state.padding).to(query.dtype).unsqueeze(2)

    def best_selection(self, state: AlignmentMemory, query: Tensor) -> Tensor:
        """B T 1 S long, the most probable selection: 1, 0, or -1 at padding."""
        score = self.scores(state, query)
        return chain_best_path(*self._potentials(score, state.padding)).states.view(score.shape).unsqueeze(2)

    def _potentials(self, score: Tensor, padding: Tensor, given_some: bool = False) -> Potentials:
        B, T, S = score.shape
        selected = score.double().flatten(0, 1)  # BT S
        pairwise = selected.new_zeros(2, 2) if self.pairwise is None else self.pairwise.double()
        unary = torch.stack([torch.zeros_like(selected), selected], -1)
        rows = padding[:, None].expand(B, T, S).flatten(0, 1)
        if given_some:
            impossible = torch.tensor(IMPOSSIBLE, device=score.device)
            pairwise = pairwise[BEFORE_AND_AFTER][:, BEFORE_AND_AFTER].masked_fill(impossible, -torch.inf)
            first, last = (~rows).long(), (~rows).long().flip(1)
            first, last = first * first.cumsum(1) == 1, (last * last.cumsum(1) == 1).flip(1)
            neither = torch.zeros_like(first)
            unary = unary[..., BEFORE_AND_AFTER].masked_fill(torch.stack([last, neither, first], -1), -torch.inf)
        return Potentials(unary, pairwise.expand(B * T, S - 1, *pairwise.shape), rows if some(padding) else None)

    def _shares(self, score: Tensor, padding: Tensor) -> Tensor:
        """B T S, of each key in the sum of all probabilities to be selected; 0 where there is none to select."""
        if self._independent(score, padding):
            return masked_softmax(F.logsigmoid(score.double()), padding[:, None])
        if host_looks(score):
            marginals = self._probabilities(score, padding)
            total = marginals.sum(-1, keepdim=True)
            if not some(total < SMALLEST_SUM):
                return marginals / total
        marginals = self._probabilities(score, padding, given_some=True)
        return marginals / marginals.sum(-1, keepdim=True).clamp_min(0.5)  # 1 or more where some key can be selected

    def _independent(self, score: Tensor, padding: Tensor) -> bool:
        """Whether keys are selected independently, as far as one may look, by numbers."""
        return self.pairwise is None and not (host_looks(score) and some(~score.isfinite() & ~padding[:, None]))

    def _probabilities(self, score: Tensor, padding: Tensor, given_some: bool = False) -> Tensor:
        """B T S, of keys to be selected, float64; given_some: among selections of one key or more, by the chain."""
        if not given_some and self._independent(score, padding):
            return score.double().sigmoid().masked_fill(padding[:, None], 0.0)
        potentials = self._potentials(score, padding, given_some)
        if torch.compiler.is_compiling():
            return chain_marginals(*potentials).node[..., 1].view(score.shape)
        try:
            return chain_marginals(*potentials).node[..., 1].view(score.shape)
        except ValueError:
            wrong = ~(score.isfinite() | padding[:, None])
            if not bool(wrong.any()):
                raise
            place = tuple(wrong.nonzero()[0].tolist())
            raise ValueError(
                f"{self.name}: the score is {score[place].item()} at [row, query, key] = {list(place)}"
            ) from None
