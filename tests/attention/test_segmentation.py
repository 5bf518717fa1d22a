"""Segmentation attention against all selections of a few keys, and against sigmoid attention."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from seqstruct.attention import Shape, Site
from seqstruct.attention.segmentation import SegmentationAttention
from seqstruct.attention.sigmoid import SigmoidAttention
from seqstruct.ops.dot_product import scaled_scores

BATCH, QUERIES, SOURCE, DIM, MEMORY, HEADS = 2, 3, 5, 6, 7, 2
SHAPE = Shape.of(Site.CROSS, DIM, HEADS, memory_dim=MEMORY)


def build(generator: torch.Generator, **options: object) -> SegmentationAttention:
    attention = SegmentationAttention(SegmentationAttention.Config(**options), SHAPE).double().eval()
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.uniform_(-1.5, 1.5, generator=generator)
    return attention


def draw(generator: torch.Generator, source: int = SOURCE) -> tuple[Tensor, Tensor]:
    query = torch.randn(BATCH, QUERIES, DIM, generator=generator, dtype=torch.float64)
    return query, torch.randn(BATCH, source, MEMORY, generator=generator, dtype=torch.float64)


def scores_of(attention: SegmentationAttention, query: Tensor, memory: Tensor) -> Tensor:
    return scaled_scores(attention._heads(attention.q_proj(query)), attention._heads(attention.k_proj(memory)))


def by_enumeration(score: Tensor, pairwise: Tensor) -> tuple[Tensor, Tensor]:
    """Marginals and the best selection of one query's scores S."""
    selections = torch.tensor(list(itertools.product((0, 1), repeat=len(score))))
    total = (selections * score).sum(1) + pairwise[selections[:, :-1], selections[:, 1:]].sum(1)
    return (total.softmax(0)[:, None] * selections).sum(0), selections[total.argmax()]


@pytest.mark.parametrize("source", [SOURCE, 1])
@pytest.mark.parametrize("normalize", [True, False])
def test_weights_and_structures_are_those_of_all_selections(
    source: int, normalize: bool, generator: torch.Generator
) -> None:
    attention = build(generator, normalize=normalize, total=3.0)
    query, memory = draw(generator, source)
    reading, _ = attention(query, memory, memory, need_weights=True)
    score = scores_of(attention, query, memory)
    for b, h, t in itertools.product(range(BATCH), range(HEADS), range(QUERIES)):
        marginals, best = by_enumeration(score[b, h, t], attention.pairwise[h])
        torch.testing.assert_close(reading.extra["marginals"][b, t, h], marginals, rtol=1e-10, atol=1e-12)
        assert torch.equal(reading.extra["best_selection"][b, t, h], best)
        weights = marginals / marginals.sum() * 3.0 if normalize else marginals
        torch.testing.assert_close(reading.weights[b, h, t], weights, rtol=1e-10, atol=1e-12)
    assert attention(query, memory, memory)[0].extra == {}
    assert attention.train()(query, memory, memory, need_weights=True)[0].extra == {}


def test_without_pairwise_potentials_it_is_sigmoid_attention(generator: torch.Generator) -> None:
    """And it takes a trained sigmoid model's parameters: all but the pairwise ones, which start at 0."""
    sigmoid = SigmoidAttention(SigmoidAttention.Config(), SHAPE).double().eval()
    own = SegmentationAttention(SegmentationAttention.Config(normalize=False), SHAPE).double().eval()
    assert own.load_state_dict(sigmoid.state_dict(), strict=False) == (["pairwise"], [])
    query, memory = draw(generator)
    mask = torch.zeros(BATCH, SOURCE, dtype=torch.bool)
    mask[1, 3:] = True
    found, wanted = (a(query, memory, memory, mask, need_weights=True)[0] for a in (own, sigmoid))
    torch.testing.assert_close(found.output, wanted.output, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(found.weights, wanted.weights, rtol=1e-12, atol=1e-12)
    assert (found.extra["best_selection"][1, :, :, 3:] == -1).all()


def test_far_scores_stay_numbers(generator: torch.Generator) -> None:
    attention = build(generator).float()
    query, memory = (x.float() for x in draw(generator))
    for scale in (1e2, 1e4):
        weights = attention(scale * query, memory, memory, need_weights=True)[0].weights
        assert weights.isfinite().all()
        assert ((weights.sum(-1) - 2).abs() < 1e-5).logical_or(weights.sum(-1) == 0).all()


def test_penalty(generator: torch.Generator) -> None:
    pairwise = build(generator)
    torch.testing.assert_close(pairwise.penalty(), 0.005 * pairwise.pairwise.square().sum())
    assert build(generator, pairwise_l2=0.0).penalty() is None
    both = build(generator, pairwise_l2=0.5, score_l2=0.25)
    parts = [both.q_proj.weight, both.q_proj.bias, both.k_proj.weight, both.k_proj.bias]
    expected = 0.5 * both.pairwise.square().sum() + 0.25 * sum(p.square().sum() for p in parts)
    torch.testing.assert_close(both.penalty(), expected)


def test_what_is_no_number_is_refused_with_its_place(generator: torch.Generator) -> None:
    attention = build(generator)
    query, memory = draw(generator)
    memory[1, 3, 0] = math.nan
    with pytest.raises(ValueError, match=r"the score is nan at \[row, head, query, key\] = \[1, 0, 0, 3\]"):
        attention(query, memory, memory)
    mask = torch.zeros(BATCH, SOURCE, dtype=torch.bool)
    mask[1, 3:] = True
    clean = memory.clone()
    clean[1, 3] = 0.0
    masked = attention.weights(
        attention._heads(attention.q_proj(query)), attention._heads(attention.k_proj(memory)), ~mask[:, None, None]
    )
    assert masked.isfinite().all()
