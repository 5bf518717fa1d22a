"""The kernel family as modules: what the contract does not say."""

from __future__ import annotations

import copy
from unittest.mock import Mock

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from seqstruct.attention import Attention, Shape, Site, get_attention, make_config
from seqstruct.ops.memory import linear_attention
from seqstruct.ops.memory.linear_attention import pairs_cost_less
from seqstruct.testing.cases import stepwise
from tests.attention.building import DIM, HEADS, build, heads, inputs, output

FAMILY = [("linear", {}), ("rfa", {"gate": True}), ("rfa", {"unit_norm": False}), ("performer", {}), ("t2r", {})]


@pytest.mark.parametrize("name, options", FAMILY)
def test_denominators_are_shown_the_same_in_both_forms(name: str, options: dict, generator) -> None:
    attention, x = build(name, **options), inputs(generator)
    parallel, stepped = (form(attention, x, x, x)[0].extra for form in (type(attention).forward, stepwise))
    assert parallel["denominator"].shape == (2, 9, HEADS)
    torch.testing.assert_close(parallel["denominator"], stepped["denominator"])


@pytest.mark.parametrize("name, options", FAMILY)
def test_bfloat16_parameters_keep_a_float32_memory(name: str, options: dict, generator) -> None:
    attention = build(name, **options).bfloat16()
    x = inputs(generator).bfloat16()
    reading, state = attention(x, x, x, state=attention.initial_state(2))
    assert reading.output.dtype == torch.bfloat16
    assert all(part.dtype == torch.float32 for part in state)


@pytest.mark.parametrize("site", [Site.ENCODER_SELF, Site.DECODER_SELF])
@pytest.mark.parametrize("autocast", [False, True])
def test_features_without_unit_norm_survive_bfloat16(site: Site, autocast: bool, generator) -> None:
    """Readings are quotients of small differences, which queries and keys rounded to 8 bits would make noise."""
    torch.manual_seed(0)
    shape = Shape.of(site, 64, 4)
    rfa = get_attention("rfa")(make_config("rfa", {"features": 512, "unit_norm": False, "floor": 0.0}), shape).eval()
    x = torch.randn(3, 50, 64, generator=generator).bfloat16()
    exact = copy.deepcopy(rfa.bfloat16()).double()
    expected = output(exact, x.double())
    if autocast:
        rfa, x = exact.float(), x.float()
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        found = output(rfa, x)
    assert (found.double() - expected).abs().max() < 0.05 * expected.abs().max()


BOTH_WAYS = [("linear", {}), *(("rfa", options) for options in ({}, {"unit_norm": False}, {"kernel": "arccos"})),
             ("performer", {}), ("t2r", {})]


@pytest.mark.parametrize("queries, keys", [(2, 3), (0, 3), (4, 0), (1, 2), (13, 2)])
@pytest.mark.parametrize("name, options", BOTH_WAYS)
def test_short_sequences_are_read_by_pairs(
    name: str, options: dict, queries: int, keys: int, generator, monkeypatch
) -> None:
    """One pass from the empty memory against a pass that writes the memory and reads it."""
    attention = build(name, Site.CROSS, **options)
    assert pairs_cost_less(queries, keys, attention.num_features, DIM // HEADS)
    query, key = (inputs(generator, length).requires_grad_() for length in (queries, keys))
    padding = torch.zeros(2, keys, dtype=torch.bool)
    padding[1, : 2 if keys == 3 else keys] = True
    by_pairs, results = Mock(wraps=linear_attention.read_pairs), []
    monkeypatch.setattr(linear_attention, "read_pairs", by_pairs)
    for state in (None, attention.initial_state(2)):
        reading, _ = attention(query, key, key, padding, state)
        assert by_pairs.call_count == 1
        leaves = [query, key, *(p for p in attention.parameters() if p.requires_grad)]
        loss = reading.output.square().sum()
        gradients = torch.autograd.grad(loss, leaves, allow_unused=True, materialize_grads=True)
        results.append([reading.output, reading.extra["denominator"], *gradients])
    torch.testing.assert_close(*results, rtol=1e-10, atol=1e-12)


def test_long_sequences_are_read_through_the_memory(generator, monkeypatch) -> None:
    attention = build("linear", Site.ENCODER_SELF)
    assert not pairs_cost_less(9, 9, attention.num_features, DIM // HEADS)
    monkeypatch.setattr(linear_attention, "read_pairs", None)
    assert output(attention, inputs(generator)).isfinite().all()


def test_parameters_of_softmax_attention_are_taken_over() -> None:
    softmax = build("softmax").state_dict()
    build("linear").load_state_dict(softmax)
    for name, own in (("rfa", {"sigma", "projections"}), ("t2r", {"feature_weight", "feature_bias"})):
        missing = build(name).load_state_dict(softmax, strict=False)
        assert not missing.unexpected_keys
        assert set(missing.missing_keys) == own


@pytest.mark.parametrize("unit_norm", [True, False])
def test_many_features_give_the_kernel_they_estimate(unit_norm: bool, generator) -> None:
    """Gaussian in sigma o (q - k) for unit vectors; the exponential of (sigma o q) . (sigma o k) by equation 4.10."""
    attention = build("rfa", features=160000, pool=1, unit_norm=unit_norm, floor=0.0)
    with torch.no_grad():
        attention.sigma.uniform_(0.4, 1.2, generator=generator)
        x = inputs(generator, 5) / 2
        query, key = (heads(layer(x)) for layer in attention_layers(attention))
        if unit_norm:
            query, key = F.normalize(query, dim=-1), F.normalize(key, dim=-1)
        query, key = query * attention.sigma[:, None], key * attention.sigma[:, None]
        logits = -torch.cdist(query, key).square() / 2 if unit_norm else query @ key.mT
        weights = logits.masked_fill(~torch.ones(5, 5, dtype=torch.bool).tril(), -torch.inf).softmax(-1)
        expected = attention.out_proj((weights @ heads(attention.v_proj(x))).transpose(1, 2).flatten(2))
        torch.testing.assert_close(output(attention, x), expected, rtol=0, atol=0.02)


def attention_layers(attention: Attention) -> tuple:
    return attention.q_proj, attention.k_proj


@pytest.mark.parametrize("orthogonal", [True, False])
@pytest.mark.parametrize("hyperbolic", [True, False])
def test_many_positive_features_give_softmax_attention(orthogonal: bool, hyperbolic: bool, generator) -> None:
    performer = build("performer", features=20000, orthogonal=orthogonal, hyperbolic=hyperbolic)
    softmax = build("softmax")
    performer.load_state_dict(softmax.state_dict(), strict=False)
    x = inputs(generator, 5) / 2
    with torch.no_grad():
        torch.testing.assert_close(output(performer, x), output(softmax, x), rtol=0, atol=0.02)


def test_performers_redraw_in_training_as_the_seed_says(generator) -> None:
    attention, x = build("performer", redraw=2), inputs(generator)
    first = output(attention, x)
    attention.train()
    copy = build("performer", redraw=2).train()
    seen = [output(attention, x) for _ in range(5)]
    assert torch.equal(seen[0], first) and torch.equal(seen[1], first)
    assert torch.equal(seen[2], seen[3])
    assert not torch.allclose(seen[1], seen[2]) and not torch.allclose(seen[3], seen[4])
    attention(x, x, x, state=attention.initial_state(2))
    assert int(attention.passes) == 5
    assert torch.equal(output(attention.eval(), x), seen[4])
    copy.load_state_dict(attention.state_dict())
    assert torch.equal(output(copy, x), output(attention.train(), x))
    assert torch.equal(output(copy, x), output(attention, x))


def test_passes_before_a_redraw_go_back_through_their_own_draw(generator) -> None:
    """As of layers that are one module: some run before the redraw, some after, and one backward pass follows."""
    attention, x = build("performer", redraw=1).train(), inputs(generator)[:1, :1].requires_grad_()
    apart = copy.deepcopy(attention)
    together = [output(attention, x).square().sum() for _ in range(3)]
    (gradient,) = torch.autograd.grad(sum(together), x)
    alone = [torch.autograd.grad(output(apart, x).square().sum(), x)[0] for _ in range(3)]
    torch.testing.assert_close(gradient, sum(alone))


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_pass_that_the_backward_pass_repeats_is_not_counted(reentrant, generator) -> None:
    attention, x = build("performer", redraw=1).train(), inputs(generator).requires_grad_()
    output(attention, x)  # before each pass from now on it redraws
    plain = copy.deepcopy(attention)
    expected = output(plain, x)
    repeated = checkpoint(lambda y: output(attention, y), x, use_reentrant=reentrant)
    assert torch.equal(repeated, expected)
    repeated.square().sum().backward()
    (gradient,) = torch.autograd.grad(expected.square().sum(), x)
    assert torch.equal(x.grad, gradient)
    assert int(attention.passes) == int(plain.passes) == 2 and torch.equal(attention.projection, plain.projection)


def test_a_performer_may_keep_its_draw(generator) -> None:
    attention, x = build("performer", redraw=0).train(), inputs(generator)
    assert torch.equal(output(attention, x), output(attention, x))


@pytest.mark.parametrize("factor", [4, 40])
def test_large_inputs_do_not_overflow_a_performer(factor: int, generator) -> None:
    attention = build("performer").float()
    x = (factor * inputs(generator)).float().requires_grad_()
    result = output(attention, x)
    assert result.isfinite().all()
    assert torch.autograd.grad(result.sum(), x)[0].isfinite().all()
    if factor == 4:
        exact = output(attention.double(), x.double())
        torch.testing.assert_close(result.double(), exact, rtol=1e-3, atol=1e-3)


def test_learned_features_are_a_layer_with_relu(generator) -> None:
    attention, x = build("t2r", Site.ENCODER_SELF, features=7), inputs(generator)
    with torch.no_grad():
        attention.feature_bias.uniform_(-0.5, 0.5, generator=generator)
        query, key = (
            F.relu(torch.einsum("bhtd,hnd->bhtn", heads(layer(x)), attention.feature_weight) + attention.feature_bias)
            for layer in attention_layers(attention)
        )
        weights = query @ key.mT
        context = (weights / weights.sum(-1, keepdim=True)).nan_to_num() @ heads(attention.v_proj(x))
        torch.testing.assert_close(output(attention, x), attention.out_proj(context.transpose(1, 2).flatten(2)))


def test_the_gate_is_a_scalar_a_head_and_step(generator) -> None:
    """Equation 4.8, step by step."""
    attention = build("rfa", gate=True, floor=0.0)
    x = inputs(generator)
    gate = attention.gate_layer(x).sigmoid().transpose(1, 2)
    features = attention.feature_map(True)
    query, key = (features(heads(layer(x)))[0] for layer in attention_layers(attention))
    value = heads(attention.v_proj(x))
    memory = total = 0.0
    expected = []
    for t in range(x.size(1)):
        g = gate[:, :, t, None]
        memory = g[..., None] * memory + (1 - g[..., None]) * key[:, :, t, :, None] * value[:, :, t, None]
        total = g * total + (1 - g) * key[:, :, t]
        read = (query[:, :, t, None] @ memory).squeeze(2) / (query[:, :, t] * total).sum(-1, keepdim=True)
        expected.append(attention.out_proj(read.flatten(1)))
    torch.testing.assert_close(output(attention, x), torch.stack(expected, 1))


@pytest.mark.parametrize("kernel", ["gaussian", "arccos"])
@pytest.mark.parametrize("site", [Site.DECODER_SELF, Site.ENCODER_SELF])
def test_denominators_are_one_at_least_unless_told_otherwise(kernel: str, site: Site, generator) -> None:
    """The released code's floor; equations 4.5 to 4.7 where it is 0."""
    x = inputs(generator, 9 if site is Site.DECODER_SELF else 2)
    for options, least in (({}, 1.0), ({"floor": 0.0}, 0.0), ({"floor": 2.5}, 2.5)):
        attention = build("rfa", site, kernel=kernel, **options)
        with torch.no_grad():
            features = attention.feature_map(True)
            query, key = (features(heads(layer(x)))[0] for layer in attention_layers(attention))
            weights = query @ key.mT
            weights = weights.tril() if site is Site.DECODER_SELF else weights
            total = weights.sum(-1, keepdim=True)
            assert (total < 1).any()
            context = weights @ heads(attention.v_proj(x)) / (total.clamp(min=least) if least else total)
            torch.testing.assert_close(output(attention, x), attention.out_proj(context.transpose(1, 2).flatten(2)))


def test_without_unit_norm_there_is_no_floor(generator) -> None:
    x = inputs(generator)
    plain, same = (build("rfa", unit_norm=False, **options) for options in ({}, {"floor": 0.0}))
    assert plain.floor == same.floor == 0
    assert torch.equal(output(plain, x), output(same, x))


def test_sigma_may_be_a_whole_number() -> None:
    whole, same = build("rfa", sigma=2), build("rfa", sigma=2.0)
    assert torch.equal(whole.sigma, same.sigma)


def test_training_draws_from_the_pool_and_evaluation_does_not(generator) -> None:
    attention, x = build("rfa", pool=4), inputs(generator)
    fixed = output(attention, x)
    assert torch.equal(output(attention, x), fixed)
    attention.train()
    torch.manual_seed(1)
    drawn = [output(attention, x) for _ in range(3)]
    assert not torch.allclose(drawn[0], drawn[1])
    torch.manual_seed(1)
    assert torch.equal(output(attention, x), drawn[0])
    resumed = attention(x, x, x, state=attention.initial_state(2))[0].output
    torch.testing.assert_close(resumed, fixed)
    stepped = stepwise(attention, x, x, x)[0].output
    torch.testing.assert_close(stepped, fixed)


def test_a_pool_of_one_is_the_same_in_training(generator) -> None:
    attention, x = build("rfa", pool=1), inputs(generator)
    fixed = output(attention, x)
    torch.testing.assert_close(output(attention.train(), x), fixed)


def test_random_matrices_are_in_checkpoints(generator) -> None:
    attention, x = build("rfa", pool=4), inputs(generator)
    torch.manual_seed(6)
    other = get_attention("rfa")(attention.config, attention.shape).double().eval()
    assert not torch.equal(other.projections, attention.projections)
    other.load_state_dict(attention.state_dict())
    assert torch.equal(output(other, x), output(attention, x))
