"""Bounded memories as modules: what the contract does not say."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from seqstruct.attention import Attention, Shape, Site, get_attention, make_config, parse_choices
from seqstruct.ops.memory.bounded_memory import LOWEST
from seqstruct.ops.memory.clustering import k_means
from tests.attention.building import DIM, HEADS, build, heads, inputs, output

POSITIONAL = [
    ("linformer", {"slots": 4, "length": 9}),
    ("mean_pool", {"slots": 3, "stride": 3}),
]
FAMILY = [
    ("abc_mlp", {"slots": 4}),
    ("abc_random", {"slots": 4}),
    ("clustering", {"slots": 4}),
    ("linformer", {"slots": 4}),
    ("local_to_global", {"slots": 4}),
    ("mean_pool", {"slots": 4}),
]


@pytest.mark.parametrize("name, options", FAMILY)
def test_bfloat16_parameters_keep_a_float32_memory(name: str, options: dict, generator) -> None:
    attention = build(name, **options).bfloat16()
    x = inputs(generator).bfloat16()
    reading, state = attention(x, x, x, state=attention.initial_state(2))
    assert reading.output.dtype == torch.bfloat16
    assert all(part.dtype == torch.float32 for part in state.memory)


@pytest.mark.parametrize("name, options", FAMILY)
def test_parameters_of_softmax_attention_are_taken_over(name: str, options: dict) -> None:
    missing = build(name, **options).load_state_dict(build("softmax").state_dict(), strict=False)
    assert not missing.unexpected_keys
    assert not any("proj" in key for key in missing.missing_keys)


@pytest.mark.parametrize("name", ["abc_mlp", "linformer"])
def test_controls_are_shared_by_the_layers_of_a_site(name: str) -> None:
    shape = Shape.of(Site.DECODER_SELF, DIM, HEADS)
    first, second = parse_choices(name, 2, Site.DECODER_SELF)
    tied = get_attention(name).shared(first.config, shape)
    layers = [choice.build(shape, tied) for choice in (first, second)]
    assert layers[0].tied is layers[1].tied is tied
    assert tied.weight is dict(layers[1].named_parameters())["tied.weight"]


@pytest.mark.parametrize("activation", ["exp", "sigmoid", "relu"])
@pytest.mark.parametrize("gate", [False, True])
def test_learned_control_step_by_step(activation: str, gate: bool, generator) -> None:
    """The second form of section 5.4, with sums and totals decayed by the gate as in equation 4.8."""
    attention, x = build("abc_mlp", slots=4, activation=activation, gate=gate), inputs(generator)
    function = {"exp": torch.exp, "sigmoid": torch.sigmoid, "relu": torch.relu}[activation]
    weights = function(heads(attention.tied(x)))
    query, key, value = (heads(layer(x)) for layer in (attention.q_proj, attention.k_proj, attention.v_proj))
    stay = attention.gate_layer(x).sigmoid().mT[..., None, None] if gate else torch.ones(2, 3, 9, 1, 1)
    enter = 1 - stay if gate else stay
    keys = values = totals = 0.0
    expected = []
    for t in range(x.size(1)):
        new = enter[:, :, t] * weights[:, :, t].unsqueeze(-1)  # B H n 1
        keys = stay[:, :, t] * keys + new * key[:, :, t, None]
        values = stay[:, :, t] * values + new * value[:, :, t, None]
        totals = stay[:, :, t] * totals + new
        logits = (keys / totals).nan_to_num() @ query[:, :, t, :, None] / math.sqrt(4)
        share = logits.masked_fill(totals == 0, -1e30).softmax(2)
        expected.append(attention.out_proj((share * (values / totals).nan_to_num()).sum(2).flatten(1)))
    torch.testing.assert_close(output(attention, x), torch.stack(expected, 1))


def test_mean_pooling_attends_to_means_of_runs(generator) -> None:
    attention, x = build("mean_pool", Site.ENCODER_SELF, slots=5, stride=3), inputs(generator)
    query, key, value = (heads(layer(x)) for layer in (attention.q_proj, attention.k_proj, attention.v_proj))
    pooled = [y.unflatten(2, (3, 3)).mean(3) for y in (key, value)]
    context = F.scaled_dot_product_attention(query, *pooled)
    torch.testing.assert_close(output(attention, x), attention.out_proj(context.transpose(1, 2).flatten(2)))


def test_global_tokens_are_all_that_is_attended_to(generator) -> None:
    attention, x = build("local_to_global", Site.ENCODER_SELF, slots=2, stride=4), inputs(generator)
    query = heads(attention.q_proj(x))
    key, value = (heads(layer(x[:, [0, 4]])) for layer in (attention.k_proj, attention.v_proj))
    context = F.scaled_dot_product_attention(query, key, value)
    torch.testing.assert_close(output(attention, x), attention.out_proj(context.transpose(1, 2).flatten(2)))


def attended(attention: Attention, x: Tensor, members: Tensor) -> Tensor:
    """Attention to means of keys and values, which go into clusters by members: B H S n, 0 or 1."""
    query, key, value = (heads(layer(x)) for layer in (attention.q_proj, attention.k_proj, attention.v_proj))
    counts = members.sum(2).unsqueeze(-1)
    keys, values = ((members.mT @ y) / counts.clamp(min=1) for y in (key, value))
    visible = (counts > 0).transpose(2, 3).expand(-1, -1, x.size(1), -1)
    context = F.scaled_dot_product_attention(query, keys, values, attn_mask=visible)
    return attention.out_proj(context.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("iterations", [0, 3])
def test_clusters_of_all_keys_are_those_of_k_means(iterations: int, generator) -> None:
    """An offset of all keys, and so of nearly all directions, changes no cluster."""
    attention, x = build("clustering", Site.ENCODER_SELF, slots=4, iterations=iterations), inputs(generator, 31)
    for _ in range(2):
        members = F.one_hot(k_means(heads(attention.k_proj(x)), 4, iterations), 4).double()
        assert (members.sum(2) > 0).all()
        torch.testing.assert_close(output(attention, x), attended(attention, x, members))
        attention.k_proj.bias.data += 100.0
    with pytest.raises(ValueError, match="clustering at encoder_self: all keys are written at once"):
        attention.write(attention.write(attention.initial_state(2), x, x), x, x)


def test_clusters_of_a_prefix_are_of_one_direction(generator) -> None:
    """Once the mean of the keys before is taken off: later keys, and padding, are of no account."""
    attention, x = build("clustering", slots=4), inputs(generator)
    key, found = heads(attention.k_proj(x)), output(attention, x)
    before = torch.stack([key[:, :, :t].mean(2) if t else 0 * key[:, :, 0] for t in range(9)], 2)
    members = F.one_hot(((key - before) @ attention.directions.mT).argmax(-1), 4).double()
    for t in range(9):
        expected = attended(attention, x[:, : t + 1], members[:, :, : t + 1])
        torch.testing.assert_close(found[:, t], expected[:, -1])


@pytest.mark.parametrize("site", list(Site))
def test_an_offset_leaves_no_cluster_idle(site: Site, generator) -> None:
    attention = build("clustering", site, slots=32)
    x = inputs(generator, 400) + 10 * torch.randn(DIM, generator=generator, dtype=torch.float64)
    state = attention.write(attention.initial_state(2), x, x)
    assert (state.memory.log_total > LOWEST).double().mean() > 0.9


def test_random_slots_are_in_checkpoints_and_repeat(generator) -> None:
    attention, x = build("abc_random", slots=3, period=4), inputs(generator, 8)
    torch.manual_seed(6)
    other = get_attention("abc_random")(attention.config, attention.shape).double().eval()
    other.load_state_dict(attention.state_dict())
    assert torch.equal(output(other, x), output(attention, x))
    twice = attention.control(x, heads(x), torch.arange(8).expand(2, -1))
    assert torch.equal(twice[:, :, :4], twice[:, :, 4:])


@pytest.mark.parametrize("site", list(Site))
@pytest.mark.parametrize("name, options", POSITIONAL)
def test_a_sequence_beyond_the_last_slot_is_refused(name: str, options: dict, site: Site, generator) -> None:
    attention, x = build(name, site, **options), inputs(generator, 10)
    assert output(attention, x[:, :9]).isfinite().all()
    with pytest.raises(ValueError, match=f"{name}: a sequence of 10 tokens.*9"):
        output(attention, x)
    short = torch.zeros(2, 10, dtype=torch.bool)
    short[:, -1] = True
    assert attention(x, x, x, short)[0].output.isfinite().all()
    state = attention.initial_state(2)
    state = attention.write(state, x[:, :9], x[:, :9])
    with pytest.raises(ValueError, match=f"{name}: a sequence of 10 tokens"):
        attention.write(state, x[:, 9:], x[:, 9:])


def test_more_clusters_than_tokens_are_refused(generator) -> None:
    x = inputs(generator, 3)
    with pytest.raises(ValueError, match="clustering: 3 tokens for 4 clusters"):
        output(build("clustering", Site.ENCODER_SELF, slots=4), x)
    assert output(build("clustering", Site.ENCODER_SELF, slots=4, allow_short=True), x).isfinite().all()
    assert output(build("clustering", slots=4), x).isfinite().all()


def test_luna_attends_twice_and_hands_its_memory_on(generator) -> None:
    attention, x = build("luna", Site.ENCODER_SELF, slots=4), inputs(generator)
    memory = torch.randn(2, 4, DIM, generator=generator, dtype=torch.float64)
    for carry in (None, memory):
        given = attention.tied.weight.expand(2, -1, -1) if carry is None else carry
        query, key, value = (heads(layer(x)) for layer in (attention.q_proj, attention.k_proj, attention.v_proj))
        phi = (heads(attention.memory_proj(given)) @ key.mT / 2).softmax(-1)
        context = (query @ (phi @ key).mT / 2).softmax(-1) @ (phi @ value)
        reading, _ = attention(x, x, x, carry=carry)
        torch.testing.assert_close(reading.output, attention.out_proj(context.transpose(1, 2).flatten(2)))
        packed = attention.pack_proj((phi @ value).transpose(1, 2).flatten(2))
        torch.testing.assert_close(reading.carry, attention.memory_norm(given + packed))
    with pytest.raises(ValueError, match=r"luna: .*\(2, 4, 12\).*\(2, 3, 12\)"):
        attention(x, x, x, carry=memory[:, :3])


@pytest.mark.parametrize("site, slots", [(Site.DECODER_SELF, 40), (Site.ENCODER_SELF, 80)])
def test_a_window_as_long_as_the_sequence_is_softmax_attention(site: Site, slots: int, generator) -> None:
    window, softmax, x = build("sliding_window", site, slots=slots), build("softmax", site), inputs(generator, 37)
    window.load_state_dict(softmax.state_dict())
    torch.testing.assert_close(output(window, x), output(softmax, x))


@pytest.mark.parametrize("slots, left, right", [(1, 0, 0), (2, 1, 0), (5, 2, 2), (32, 16, 15)])
@pytest.mark.parametrize("dilation", [1, 2, 3])
@pytest.mark.parametrize("empty", [False, True])
def test_a_window_at_an_encoder_looks_both_ways(
    slots: int, left: int, right: int, dilation: int, empty: bool, generator
) -> None:
    """Against a mask over all pairs, padding in the middle; slots beyond either end weigh exp(0) if they count."""
    attention = build("dilated_window", Site.ENCODER_SELF, slots=slots, dilation=dilation, empty_slots=empty)
    x, padding = inputs(generator, 107), torch.zeros(2, 107, dtype=torch.bool)
    padding[1, 3:100:4] = True
    found = attention(x, x, x, padding)[0].output
    for row in range(2):
        own = x[row : row + 1, ~padding[row]]
        query, key, value = (heads(layer(own)) for layer in (attention.q_proj, attention.k_proj, attention.v_proj))
        place = torch.arange(own.size(1))
        apart = place - place.unsqueeze(1)
        band = (apart >= -left * dilation) & (apart <= right * dilation) & (apart % dilation == 0)
        weights = (query @ key.mT / 2).exp() * band
        total = weights.sum(-1, keepdim=True) + float(empty) * (slots - band.sum(-1, keepdim=True))
        expected = attention.out_proj((weights / total @ value).transpose(1, 2).flatten(2))
        torch.testing.assert_close(found[row, ~padding[row]], expected[0])




@pytest.mark.parametrize(
    "name, options, message",
    [
        ("luna", {"slots": 0}, "slots is 1 or more"),
        ("abc_mlp", {"activation": "tanh"}, "exp, sigmoid, relu"),
        ("abc_random", {"period": 0}, "period is 1 or more"),
        ("dilated_window", {"dilation": 0}, "dilation is 1 or more"),
        ("linformer", {"length": 0}, "length is 1 or more"),
        ("local_to_global", {"stride": 0}, "stride is 1 or more"),
        ("mean_pool", {"stride": 0}, "stride is 1 or more"),
    ],
)
def test_bad_options_are_refused(name: str, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: .*{message}"):
        make_config(name, options)
