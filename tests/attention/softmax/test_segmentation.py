"""Segmentation attention against all selections of a few keys, and against sigmoid attention."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from seqstruct.attention import Shape, Site
from seqstruct.attention.softmax.segmentation import SegmentationAttention
from tests.randomised import randomised

BATCH, QUERIES, SOURCE, DIM, MEMORY = 2, 3, 5, 6, 7
SHAPE = Shape.of(Site.CROSS, DIM, memory_dim=MEMORY)


def build(generator: torch.Generator, **options: object) -> SegmentationAttention:
    attention = SegmentationAttention(SegmentationAttention.Config(**options), SHAPE).double().eval()
    return randomised(attention, generator, 1.5)


def draw(generator: torch.Generator, source: int = SOURCE) -> tuple[Tensor, Tensor]:
    query = torch.randn(BATCH, QUERIES, DIM, generator=generator, dtype=torch.float64)
    return query, torch.randn(BATCH, source, MEMORY, generator=generator, dtype=torch.float64)


def scores_of(attention: SegmentationAttention, query: Tensor, memory: Tensor) -> Tensor:
    """h_s W h', written out."""
    return torch.einsum("bsk,ck,btc->bts", memory, attention.score.key_proj.weight, query)


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
    for b, t in itertools.product(range(BATCH), range(QUERIES)):
        marginals, best = by_enumeration(score[b, t], attention.pairwise)
        torch.testing.assert_close(reading.extra["marginals"][b, t, 0], marginals, rtol=1e-10, atol=1e-12)
        assert torch.equal(reading.extra["best_selection"][b, t, 0], best)
        weights = marginals / marginals.sum() * 3.0 if normalize else marginals
        torch.testing.assert_close(reading.weights[b, 0, t], weights, rtol=1e-10, atol=1e-12)
    context = attention.out_proj(reading.weights[:, 0] @ memory)
    torch.testing.assert_close(reading.output, context, rtol=1e-10, atol=1e-12)
    assert attention(query, memory, memory)[0].extra == {}
    assert attention.train()(query, memory, memory, need_weights=True)[0].extra == {}


def test_it_adds_four_parameters_to_one_bilinear_map() -> None:
    """Section 4.2; where keys and values have the queries' size there is nothing else."""
    attention = SegmentationAttention(SegmentationAttention.Config(), Shape.of(Site.CROSS, DIM, num_heads=2))
    shapes = {name: tuple(parameter.shape) for name, parameter in attention.named_parameters()}
    assert shapes == {"score.key_proj.weight": (DIM, DIM), "pairwise": (2, 2)}


def test_without_pairwise_potentials_it_is_sigmoid_attention(generator: torch.Generator) -> None:
    """And a trained sigmoid model is a start for it: it lacks the pairwise potentials alone, which start at 0."""
    options = {"normalize": False, "pairwise": False}
    sigmoid = build(generator, **options)
    own = SegmentationAttention(SegmentationAttention.Config(normalize=False), SHAPE).double().eval()
    assert own.load_state_dict(sigmoid.state_dict(), strict=False) == (["pairwise"], [])
    query, memory = draw(generator)
    mask = torch.zeros(BATCH, SOURCE, dtype=torch.bool)
    mask[1, 3:] = True
    found, wanted = (a(query, memory, memory, mask, need_weights=True)[0] for a in (own, sigmoid))
    independent = scores_of(own, query, memory).sigmoid().masked_fill(mask[:, None], 0.0)[:, None]
    torch.testing.assert_close(wanted.weights, independent, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(found.weights, wanted.weights, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(found.output, wanted.output, rtol=1e-12, atol=1e-12)
    for reading in (found, wanted):
        selected = (scores_of(own, query, memory) > 0).long().masked_fill(mask[:, None], -1)
        assert torch.equal(reading.extra["best_selection"][:, :, 0], selected)


def test_far_scores_stay_numbers(generator: torch.Generator) -> None:
    attention = build(generator).float()
    attention.score.key_proj.weight.data.abs_()
    query, memory = (x.float().abs().requires_grad_() for x in draw(generator))
    for scale in (1e2, 1e4, -1e4):
        weights = attention(scale * query, memory, memory, need_weights=True)[0].weights
        assert all(x.isfinite().all() for x in torch.autograd.grad(weights[..., 0].sum(), [query, memory]))
        torch.testing.assert_close(weights.sum(-1), torch.full_like(weights[..., 0], 2.0), rtol=0, atol=1e-5)


@pytest.mark.parametrize("below", [50.0, 700.0, 1e5])
@pytest.mark.parametrize("pairwise", [True, False])
def test_far_below_0_the_weights_are_those_of_single_keys(
    pairwise: bool, below: float, generator: torch.Generator
) -> None:
    """More than one key is next to impossible; neighbours that are not selected differ for the first and the last."""
    attention = build(generator, pairwise=pairwise)
    score = torch.randn(3, 4, 7, generator=generator, dtype=torch.float64, requires_grad=True)
    padding = torch.zeros(3, 7, dtype=torch.bool)
    padding[0, 5:] = padding[1, :2] = padding[2] = True
    far = (score - below).detach().requires_grad_()
    shares = attention._shares(far, padding)
    single = score + 0.0
    if pairwise:
        (none, enter), (leave, _) = attention.pairwise.detach()
        single = score + (enter + leave - none - none)
        for row, first, last in ((0, 0, 4), (1, 2, 6)):
            single[row, :, first] -= enter - none
            single[row, :, last] -= leave - none
    expected = single.masked_fill(padding[:, None], -1e9).softmax(-1).masked_fill(padding[:, None], 0.0)
    torch.testing.assert_close(shares, expected, rtol=1e-10, atol=1e-12)
    factor = torch.randn(3, 4, 7, generator=generator, dtype=torch.float64)
    (ours,), (theirs,) = (torch.autograd.grad((x * factor).sum(), y) for x, y in ((shares, far), (expected, score)))
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


def test_shares_among_selections_of_some_key_are_those_among_all(generator: torch.Generator) -> None:
    attention, score = build(generator), torch.randn(2, 3, 6, generator=generator, dtype=torch.float64)
    padding = torch.tensor([[False] * 4 + [True] * 2, [True] + [False] * 5])
    every, some = (attention._probabilities(score, padding, given) for given in (False, True))
    torch.testing.assert_close(*(x / x.sum(-1, keepdim=True) for x in (every, some)), rtol=1e-12, atol=1e-12)


def test_penalty(generator: torch.Generator) -> None:
    pairwise = build(generator)
    torch.testing.assert_close(pairwise.penalty(), 0.005 * pairwise.pairwise.square().sum())
    assert build(generator, pairwise_l2=0.0).penalty() is None
    both = build(generator, pairwise_l2=0.5, score_l2=0.25)
    expected = 0.5 * both.pairwise.square().sum() + 0.25 * both.score.key_proj.weight.square().sum()
    torch.testing.assert_close(both.penalty(), expected)
    assert build(generator, pairwise=False).penalty() is None


@pytest.mark.parametrize("pairwise", [True, False])
def test_what_is_no_number_is_refused_with_its_place(pairwise: bool, generator: torch.Generator) -> None:
    attention = build(generator, pairwise=pairwise)
    query, memory = draw(generator)
    memory[1, 3, 0] = math.nan
    with pytest.raises(ValueError, match=r"the score is nan at \[row, query, key\] = \[1, 0, 3\]"):
        attention(query, memory, memory)
    mask = torch.zeros(BATCH, SOURCE, dtype=torch.bool)
    mask[1, 3:] = True
    assert attention(query, memory, memory, mask, need_weights=True)[0].weights.isfinite().all()


def test_a_checkpoint_of_scaled_products_is_refused(generator: torch.Generator) -> None:
    attention = build(generator)
    old = {f"{name}_proj.{kind}" for name in ("q", "k", "v", "out") for kind in ("weight", "bias")}
    with pytest.raises(ValueError, match="has a bilinear map .*train the model anew"):
        attention.check_saved(old | {"pairwise"})
    attention.check_saved(old)  # of softmax: swapped, as any
    attention.check_saved(attention.state_dict())
