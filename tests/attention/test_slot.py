"""What slots ask of mechanisms, beside written-out definitions; the laws are in test_contract_slot.py."""

import cmath
import copy

import pytest
import torch
import torch.nn.functional as F

from seqstruct.attention import ATTENTIONS, Choice, Shape, Site, Slot, get_attention, make_config
from seqstruct.attention.multi_head import MultiHeadAttention
from seqstruct.ops.rotary import rotated
from tests.randomised import draw

DIM, HEADS = 16, 4
FULL = Slot(kv_heads=2, biases=False, qk_norm=True, rotary_base=100.0)
ROTATING = {
    "softmax", "sigmoid", "gated_softmax", "sliding_window", "dilated_window", "local_blocks", "bigbird", "retention",
}


def build(name, slot, site=Site.DECODER_SELF, **options):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        choice = Choice(name, make_config(name, options))
        return choice.build(Shape.of(site, DIM, HEADS, slot=slot)).double().eval()


def test_usual_slots_change_nothing(generator):
    """Parameters are those that were there before slots had options, drawn in the same order."""
    plain, asked = build("softmax", Slot()), build("softmax", Slot(short_conv=0, kv_heads=HEADS))
    assert {name for name, _ in plain.named_parameters()} == {
        f"{kind}_proj.{what}" for kind in ("q", "k", "v", "out") for what in ("weight", "bias")
    }
    for (name, one), (other_name, other) in zip(plain.named_parameters(), asked.named_parameters(), strict=True):
        assert name == other_name
        assert torch.equal(one, other)


def test_queries_and_keys_are_normed_then_turned_and_keys_shared(generator):
    """Head by head and pair by pair: RMS norm, rotation, then softmax over the keys of the query's group."""
    attention, x, size = build("softmax", FULL), draw(generator, 1, 5, DIM), DIM // HEADS
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.uniform_(-0.9, 0.9, generator=generator)
        query, key, value = (
            F.linear(x[0], layer.weight).unflatten(-1, (-1, size))
            for layer in (attention.q_proj, attention.k_proj, attention.v_proj)
        )  # T H D
        for heads, layer in ((query, attention.q_proj), (key, attention.k_proj)):
            heads /= (heads.square().mean(-1, keepdim=True) + 1e-6).sqrt()
            heads *= layer.norm.weight
        context = torch.zeros(5, HEADS, size, dtype=torch.float64)
        for h in range(HEADS):
            for t in range(5):
                scores = torch.zeros(t + 1, dtype=torch.float64)
                for s in range(t + 1):
                    for i in range(size // 2):
                        angle = (t - s) * 100.0 ** (-2 * i / size)
                        a, b = (complex(y[i], y[i + size // 2]) for y in (query[t, h], key[s, h // 2]))
                        scores[s] += (a * cmath.exp(1j * angle) * b.conjugate()).real / size**0.5
                context[t, h] = scores.softmax(0) @ value[: t + 1, h // 2]
        wanted = F.linear(context.flatten(1), attention.out_proj.weight)
        torch.testing.assert_close(attention(x, x, x)[0].output[0], wanted)


@pytest.mark.parametrize("name", sorted(n for n in ATTENTIONS if issubclass(get_attention(n), MultiHeadAttention)))
def test_grouped_heads_are_repeated_heads(name, generator):
    """A mechanism with fewer heads of keys and values has the numbers of one that holds each of them twice."""
    mechanism = get_attention(name)
    site = sorted(mechanism.sites)[0]
    options = {"clustering": {"allow_short": True}}.get(name, {})
    few, many = (build(name, slot, site, **options) for slot in (Slot(kv_heads=2), Slot()))
    state = dict(many.state_dict())
    steps = getattr(few, "steps", 1)
    for key, value in few.state_dict().items():
        if key.startswith(("k_proj", "v_proj")) and value.shape != state[key].shape:
            value = value.unflatten(0, (steps, 2, -1)).repeat_interleave(2, 1).flatten(0, 2)
        state[key] = value
    many.load_state_dict(state)
    x = draw(generator, 2, 9, DIM)
    with torch.no_grad():
        torch.testing.assert_close(few(x, x, x)[0].output, many(x, x, x)[0].output)


def test_decoding_holds_the_few_heads_alone(generator):
    x, sizes = draw(generator, 3, 5, DIM), {}
    for kv_heads in (1, 2, 4):
        attention = build("softmax", Slot(kv_heads=kv_heads))
        state = attention.write(attention.initial_state(3), x, x)
        sizes[kv_heads] = state.key[:, :, : int(state.length[0])].numel()
    assert sizes == {1: 3 * 5 * 4, 2: 3 * 5 * 8, 4: 3 * 5 * 16}


def test_what_a_convolution_adds_to_the_state(generator):
    x = draw(generator, 3, 5, DIM)
    plain, behind = build("delta", Slot()), build("delta", Slot(short_conv=4))
    memory = plain.write(plain.initial_state(3), x, x)
    state = behind.write(behind.initial_state(3), x, x)
    assert [part.shape for part in state.memory] == [part.shape for part in memory]
    assert state.key.shape == state.value.shape == (3, 4, DIM)
    assert torch.equal(state.key, x[:, 1:])


@pytest.mark.parametrize("site", [Site.DECODER_SELF, Site.ENCODER_SELF])
def test_a_mechanism_behind_a_convolution_reads_sums_of_neighbours(site, generator):
    behind, x = build("linear", Slot(short_conv=3), site), draw(generator, 2, 7, DIM)
    left = 2 if site is Site.DECODER_SELF else 1
    tokens = F.pad(x, (0, 0, left, 2 - left))
    mixed = x + sum(tokens[:, j : j + 7] * behind.weight[j] for j in range(3))
    with torch.no_grad():
        torch.testing.assert_close(behind(x, x, x)[0].output, behind.mechanism(mixed, mixed, mixed)[0].output)


def test_the_declared_mechanisms_rotate_and_no_others(generator):
    assert {name for name in ATTENTIONS if get_attention(name).rotates} == ROTATING
    for name in set(ATTENTIONS) - ROTATING:
        for site in get_attention(name).sites - {Site.CROSS}:
            with pytest.raises(ValueError, match=f"{name} takes no rotary positions"):
                build(name, Slot(rotary_base=10.0), site)


@pytest.mark.parametrize("name", sorted(ROTATING - {"gated_softmax", "retention"}))  # whose decays know order
def test_order_is_seen_by_rotation_alone(name, generator):
    """Without it a query that sees two tokens sees them as a set; with it their order shows."""
    site = sorted(get_attention(name).sites)[-1]
    x = draw(generator, 1, 3, DIM)
    outputs = []
    for slot in (Slot(), Slot(rotary_base=10.0)):
        attention = build(name, slot, site, **({"dilation": 1} if name == "dilated_window" else {}))
        with torch.no_grad():
            both = [attention(y, y, y)[0].output[:, 2] for y in (x, x[:, [1, 0, 2]])]
        outputs.append((both[0] - both[1]).abs().max())
    assert outputs[0] < 1e-12
    assert outputs[1] > 1e-4


@pytest.mark.parametrize("name", ["softmax", "sigmoid"])
def test_fewer_queries_than_keys_are_those_of_the_last_tokens(name, generator):
    attention, x = build(name, Slot(rotary_base=100.0), Site.ENCODER_SELF), draw(generator, 2, 7, DIM)
    visible = torch.rand(2, 1, 7, 7, generator=generator) < 0.6
    wanted = attention.masked(x, x, x, visible).output[:, 4:]
    for padding_mask in (None, torch.zeros(2, 7, dtype=torch.bool)):
        found = attention.masked(x[:, 4:], x, x, visible[:, :, 4:], padding_mask).output
        torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("name", sorted(n for n in ROTATING if Site.DECODER_SELF in get_attention(n).sites))
def test_all_queries_of_one_memory_stand_where_its_last_token_does(name, generator):
    attention, x = build(name, Slot(rotary_base=100.0)), draw(generator, 2, 5, DIM)
    mask = torch.tensor([[False] * 5, [True, False, True, False, False]])
    query = draw(generator, 2, 7, DIM)
    with torch.no_grad():
        for cells in (5, 3):  # as many queries as tokens, and more
            for padding in (None, mask[:, :cells]):
                state = attention.write(attention.initial_state(2), x[:, :cells], x[:, :cells], padding)
                for count in (2, cells, 7):
                    found = attention.read(state, query[:, :count]).output
                    alone = [attention.read(state, query[:, t : t + 1]).output for t in range(count)]
                    torch.testing.assert_close(found, torch.cat(alone, 1))


@pytest.mark.parametrize("name, site", [("normalized_softmax", site) for site in Site] + [("lsh", Site.DECODER_SELF)])
def test_half_modules_without_biases_have_numbers_beside_padding(name, site, generator):
    """Padding's keys are zeros there, which have no angle."""
    attention, x = build(name, Slot(biases=False), site).half(), draw(generator, 2, 4, DIM).half().requires_grad_()
    mask = torch.tensor([[False, False, True, True], [True] * 4])
    output = attention(x, x, x, mask)[0].output
    found = torch.autograd.grad(output.sum(), [x, *attention.parameters()])
    assert all(y.isfinite().all() for y in (output, *found))


def test_cross_attention_neither_rotates_nor_convolves():
    shape = Shape.of(Site.CROSS, DIM, HEADS, slot=Slot(kv_heads=2, rotary_base=10.0, short_conv=4))
    assert shape.slot == Slot(kv_heads=2)
    with pytest.raises(ValueError, match="cross-attention has no distances"):
        get_attention("softmax")(
            make_config("softmax", {}), Shape(DIM, DIM, DIM, HEADS, 0.0, Site.CROSS, False, Slot(rotary_base=10.0))
        )


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"kv_heads": 0}, "1 or more, not 0"),
        ({"kv_heads": 3}, "softmax: 4 heads are not a multiple of 3 heads of keys and values"),
        ({"rotary_base": 1.0}, "above 1, not 1.0"),
        ({"rotary_base": float("nan")}, "above 1, not nan"),
        ({"short_conv": -1}, "not -1"),
    ],
)
def test_limits(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        build("softmax", Slot(**options))


def test_odd_heads_do_not_rotate():
    with pytest.raises(ValueError, match="heads of even size, not 3"):
        get_attention("softmax")(
            make_config("softmax", {}), Shape.of(Site.DECODER_SELF, 6, 2, slot=Slot(rotary_base=10.0))
        )


def test_a_copy_of_a_module_behind_a_convolution_is_whole(generator):
    behind, x = build("softmax", Slot(short_conv=2)), draw(generator, 2, 5, DIM)
    assert torch.equal(copy.deepcopy(behind)(x, x, x)[0].output, behind(x, x, x)[0].output)


def test_retention_turns_as_published(generator):
    """o_t = sum over s <= t of g^(t - s) <rotated q_t, rotated k_s> v_s / sqrt(D), before the norm of readings."""
    attention, x = build("retention", Slot(rotary_base=100.0)), draw(generator, 1, 6, DIM)
    with torch.no_grad():
        written = attention._written(x, attention.k_proj(x), attention.v_proj(x), None)
        found, _ = attention.in_turn(attention.empty(1), attention._queries(attention.q_proj(x)), written)
        place = torch.arange(6).unsqueeze(0)
        layers = attention.q_proj, attention.k_proj, attention.v_proj
        query, key, value = (attention._heads(layer(x)) for layer in layers)
        scores = rotated(query, place, 100.0) @ rotated(key, place, 100.0).mT * (DIM // HEADS) ** -0.5
        rate = 1 - 2.0 ** (-5 - torch.arange(HEADS, dtype=torch.float64))
        decay = rate[:, None, None] ** (place.mT - place).clamp(min=0)
        torch.testing.assert_close(found, (scores * decay).tril() @ value)
