"""Attention along arcs against all trees of a few words, and scores against torch's own bidirectional LSTM."""

from __future__ import annotations

import math
import re

import pytest
import torch
from torch import Tensor, nn

from seqstruct.attention import Shape, Site, get_attention, make_config
from seqstruct.attention.trees.arc_scorer import ArcScorer
from seqstruct.ops.rows import Rows
from tests.ops.trees.enumeration import all_trees, indicators, scores_of
from tests.randomised import randomised

DIM = 6
SHAPE = Shape.of(Site.ENCODER_SELF, DIM)


def build(name: str, generator: torch.Generator, **options: object) -> nn.Module:
    return randomised(get_attention(name)(make_config(name, options), SHAPE).double().eval(), generator, 1.5)


def draw(generator: torch.Generator, batch: int = 3, length: int = 5) -> Tensor:
    return torch.randn(batch, length, DIM, generator=generator, dtype=torch.float64)


def parents_by_enumeration(arcs: Tensor, single_root: bool) -> tuple[Tensor, Tensor]:
    """p(word m has head h), n+1 n+1 [h, m], and the best heads, of one sentence's arcs."""
    trees = all_trees(arcs.size(0) - 1, True, single_root)
    score = scores_of(trees, arcs)
    return (score.softmax(0)[:, None, None] * indicators(trees)).sum(0), trees[score.argmax()]


@pytest.mark.parametrize("name", ["dependency", "soft_children"])
@pytest.mark.parametrize("options", [{}, {"root_token": True}, {"single_root": True, "bounded": False}])
def test_expected_values_are_those_of_all_trees(name: str, options: dict, generator: torch.Generator) -> None:
    attention = build(name, generator, hidden_size=3, score_size=4, **options)
    x = draw(generator)
    reading, _ = attention(x, x, x, need_weights=True)
    arcs = attention.scorer(x, Rows(None, None)).detach()
    own_root = not options.get("root_token")
    for row in range(len(x)):
        parents, heads = parents_by_enumeration(arcs[row], options.get("single_root", False))
        by_word = parents.t()[1:] if own_root else parents.t()
        torch.testing.assert_close(reading.extra["marginals"][row], by_word, rtol=1e-9, atol=1e-11)
        found = reading.extra["heads"][row]
        assert torch.equal(found if own_root else found[1:], heads)
        if not own_root:
            assert found[0] == -1
        of_tokens = by_word[:, 1:] if own_root else by_word
        if name == "soft_children":
            weights, expected = of_tokens.t(), of_tokens.t() @ x[row]
        else:
            weights, expected = of_tokens, of_tokens @ x[row]
            if own_root:
                expected = expected + by_word[:, :1] * attention.root_value
        torch.testing.assert_close(reading.weights[row, 0], weights, rtol=1e-9, atol=1e-11)
        torch.testing.assert_close(reading.output[row], expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("gradient, learns", [("pipeline", False), ("ste", True), ("spigot", True)])
def test_the_best_tree_with_a_surrogate_gradient(gradient: str, learns: bool, generator: torch.Generator) -> None:
    attention = build("dependency", generator, hidden_size=3, score_size=4, gradient=gradient, step_size=0.5)
    x = draw(generator)
    reading, _ = attention(x, x, x, need_weights=True)
    parents = torch.cat([attention.root_value.expand(len(x), 1, -1), x], 1)
    heads = reading.extra["heads"]
    expected = parents[torch.arange(len(x)).unsqueeze(1), heads]
    torch.testing.assert_close(reading.output, expected, rtol=1e-12, atol=1e-12)
    reading.output.square().sum().backward()
    moved = [p.grad is not None and bool(p.grad.abs().sum() > 0) for p in attention.scorer.parameters()]
    assert any(moved) is learns


def test_readings_of_padded_rows_stand_where_the_tokens_are(generator: torch.Generator) -> None:
    for options in ({}, {"root_token": True}):
        attention = build("dependency", generator, hidden_size=3, score_size=4, **options)
        x = draw(generator, 1, 5)
        filled = torch.cat([draw(generator, 1, 2), x], 1)
        mask = torch.tensor([[True, True, False, False, False, False, False]])
        alone, _ = attention(x, x, x, need_weights=True)
        padded, _ = attention(filled, filled, filled, mask, need_weights=True)
        own_root = not options
        marginals = padded.extra["marginals"][0]
        columns = [0, *range(3, 8)] if own_root else list(range(2, 7))
        torch.testing.assert_close(marginals[2:][:, columns], alone.extra["marginals"][0], rtol=1e-9, atol=1e-11)
        torch.testing.assert_close(padded.weights[0, 0, 2:, 2:], alone.weights[0, 0], rtol=1e-9, atol=1e-11)
        assert not marginals[:2].any() and not padded.weights[0, 0, :, :2].any()
        assert padded.extra["heads"][0].tolist() == [-1, -1, *alone.extra["heads"][0].tolist()]


@pytest.mark.parametrize("options", [{}, {"root_token": True}, {"single_root": True}])
def test_tree_probabilities_sum_to_one(options: dict, generator: torch.Generator) -> None:
    attention = build("dependency", generator, hidden_size=3, score_size=4, **options)
    trees = all_trees(4, True, options.get("single_root", False))
    heads = nn.functional.pad(trees, (1, 0), value=-1) if options.get("root_token") else trees
    x = draw(generator, 1, heads.size(1)).expand(len(trees), -1, -1)
    found = attention.log_likelihood(x, heads)
    assert found.exp().sum().item() == pytest.approx(1.0)
    padded = torch.cat([draw(generator, len(trees), 2), x], 1)
    mask = torch.zeros(padded.shape[:2], dtype=torch.bool)
    mask[:, :2] = True
    shifted = nn.functional.pad(heads, (2, 0), value=77)
    torch.testing.assert_close(attention.log_likelihood(padded, shifted, mask), found, rtol=1e-9, atol=1e-9)
    assert attention.log_likelihood(x[:, :0], heads[:, :0]).tolist() == [0.0] * len(trees)


def test_simple_attention_is_a_softmax_over_parents(generator: torch.Generator) -> None:
    attention = build("simple", generator, hidden_size=3, score_size=4)
    x = draw(generator)
    reading, _ = attention(x, x, x, need_weights=True)
    weights = attention.scorer(x, Rows(None, None)).softmax(1).transpose(1, 2)
    torch.testing.assert_close(reading.weights[:, 0], weights)
    torch.testing.assert_close(reading.output, weights @ x)


def test_scores_are_those_of_a_bidirectional_lstm(generator: torch.Generator) -> None:
    scorer = ArcScorer(DIM, 3, 4, bounded=True, root=False).double()
    lstm = nn.LSTM(DIM, 3, batch_first=True, bidirectional=True).double()
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    with torch.no_grad():
        for name in names:
            getattr(lstm, name).copy_(getattr(scorer.forward_lstm, name))
            getattr(lstm, f"{name}_reverse").copy_(getattr(scorer.backward_lstm, name))
    x, mask = draw(generator), torch.zeros(3, 5, dtype=torch.bool)
    mask[1, 3:] = mask[2, 1:] = True
    found = scorer(x, Rows.of(mask, 3, 5))
    for row, length in enumerate((5, 3, 1)):
        states = lstm(x[row : row + 1, :length])[0][0]
        parents, children = scorer.parent_layer(states), scorer.child_layer(states)
        units = torch.tanh(parents[:, None] + children[None])
        expected = torch.tanh(units @ scorer.score_weight)
        torch.testing.assert_close(found[row, :length, :length], expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_scores_under_autocast_are_those_without(dtype: torch.dtype, generator: torch.Generator) -> None:
    """Of float16 too, for which torch has no LSTM on processors."""
    scorer, x = ArcScorer(DIM, 3, 4, bounded=True, root=True), draw(generator).float()
    with torch.autocast("cpu", dtype):
        found = scorer(x, Rows(None, None))
    torch.testing.assert_close(found, scorer(x, Rows(None, None)), rtol=0, atol=0.02)
    assert all(g.isfinite().all() for g in torch.autograd.grad(found.square().sum(), list(scorer.parameters())))


@pytest.mark.parametrize("root_token", [False, True])
def test_hard_parents_are_the_given_ones(root_token: bool, generator: torch.Generator) -> None:
    attention = build("hard_parents", generator, root_token=root_token)
    x = draw(generator, 2, 4)
    heads = torch.tensor([[-1, 2, 0, 2] if root_token else [2, 0, 2, 3], [-1, 0, 1, 9] if root_token else [0, 1, 9, 9]])
    mask = torch.zeros(2, 4, dtype=torch.bool)
    mask[1, 3 if root_token else 2 :] = True
    reading, _ = attention(x, x, x, mask, need_weights=True, carry=heads)
    zero = torch.zeros(DIM, dtype=torch.float64)
    root = zero if root_token else attention.root_value
    if root_token:
        expected = [zero, x[0, 2], x[0, 0], x[0, 2]], [zero, x[1, 0], x[1, 1], zero]
    else:
        expected = [x[0, 1], root, x[0, 1], x[0, 2]], [root, x[1, 0], zero, zero]
    torch.testing.assert_close(reading.output, torch.stack([torch.stack(row) for row in expected]))
    assert reading.carry is heads
    assert torch.equal(reading.extra["heads"], heads.masked_fill(mask, -1))


def test_hard_parents_that_do_not_fit(generator: torch.Generator) -> None:
    attention = build("hard_parents", generator)
    x = draw(generator, 2, 3)
    with pytest.raises(ValueError, match="heads of an external parser"):
        attention(x, x, x)
    for heads, message in (
        ([[2, 0, 2], [0, 4, 1]], "row 1, word 2 has the head 4"),
        ([[2, 0, 2], [0, -1, 1]], "row 1, word 2 has the head -1"),
        ([[2, 0, 3], [0, 1, 1]], "row 0, word 3 has the head 3"),
    ):
        with pytest.raises(ValueError, match=message):
            attention(x, x, x, carry=torch.tensor(heads))
    with pytest.raises(ValueError, match="heads B S long"):
        attention(x, x, x, carry=torch.zeros(2, 3))


@pytest.mark.parametrize("root_token", [False, True])
def test_heads_of_another_shape_are_refused(root_token: bool, generator: torch.Generator) -> None:
    hard = build("hard_parents", generator, root_token=root_token)
    scored = build("dependency", generator, hidden_size=2, score_size=2, root_token=root_token)
    x = draw(generator, 3, 5)
    for shape in ((3, 4), (3, 6), (1, 5), (4, 5), (3,), (3, 5, 1)):
        heads = torch.zeros(shape, dtype=torch.long)
        message = re.escape(f"expected heads B S long, (3, 5), got {shape} torch.int64")
        with pytest.raises(ValueError, match=message):
            hard(x, x, x, carry=heads)
        with pytest.raises(ValueError, match=message):
            scored.log_likelihood(x, heads)
    with pytest.raises(ValueError, match=re.escape("long, (3, 0), got (3, 1)")):
        scored.log_likelihood(x[:, :0], torch.zeros(3, 1, dtype=torch.long))


@pytest.mark.parametrize("root_token", [False, True])
def test_one_token_and_rows_of_padding(root_token: bool, generator: torch.Generator) -> None:
    attention = build("dependency", generator, hidden_size=2, score_size=2, root_token=root_token)
    x = draw(generator, 2, 1)
    mask = torch.tensor([[False], [True]])
    reading, _ = attention(x, x, x, mask, need_weights=True)
    assert not reading.output[1].any()
    if root_token:
        assert not reading.output[0].any() and reading.extra["heads"].tolist() == [[-1], [-1]]
    else:
        torch.testing.assert_close(reading.output[0, 0], attention.root_value)
        assert reading.extra["heads"].tolist() == [[0], [-1]]


def test_what_is_no_number_is_refused_with_its_place(generator: torch.Generator) -> None:
    attention = build("dependency", generator, hidden_size=2, score_size=2)
    x = draw(generator)
    x[1, 2, 0] = math.nan
    with pytest.raises(ValueError, match=r"arcs: expected numbers or -inf, got nan at \[1, 0, 1\]"):
        attention(x, x, x)


def test_inputs_that_do_not_fit(generator: torch.Generator) -> None:
    attention = build("dependency", generator, hidden_size=2, score_size=2)
    x = draw(generator)
    with pytest.raises(ValueError, match=r"dependency: expected queries \(3, 5, 6\), got \(3, 2, 6\)"):
        attention(x[:, :2], x, x)
    with pytest.raises(ValueError, match="no state"):
        attention(x, x, x, state=())
    with pytest.raises(ValueError, match="embed_dim"):
        get_attention("simple")(make_config("simple", {}), Shape.of(Site.ENCODER_SELF, DIM, memory_dim=DIM + 1))
