"""What the memories of the delta rule's family are, beyond the laws of all mechanisms."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from seqstruct.attention import ATTENTIONS, Shape, Site, get_attention, make_config
from seqstruct.attention.delta.base import DeltaAttention, Entries
from seqstruct.ops.delta import naive
from seqstruct.testing.cases import Case, build, inputs

EXACT = {"rtol": 1e-9, "atol": 1e-10}
NAMES = sorted(name for name, cls in ATTENTIONS.items() if issubclass(cls, DeltaAttention))
FAMILY = pytest.mark.parametrize("name", NAMES)


@FAMILY
def test_both_directions_are_two_passes_summed(name: str, generator: torch.Generator) -> None:
    """With the norm of readings and the output gate taken away: readings of a text and of the text turned around."""
    one, both = (build(Case(name, options, Site.ENCODER_SELF), generator) for options in ({}, {"bidirectional": True}))
    both.load_state_dict(one.state_dict())
    query, _ = inputs(Case(name, {}, Site.ENCODER_SELF), generator, length=40)
    readings = []
    for attention in (one, both):
        joined = attention._joined
        attention._joined = lambda found, gate, joined=joined: readings.append(found) or joined(found, gate)
    one(query, query, query)
    one(query.flip(1), query.flip(1), query.flip(1))
    both(query, query, query)
    torch.testing.assert_close(readings[2], readings[0] + readings[1].flip(2), **EXACT)


@FAMILY
def test_both_directions_are_for_encoders(name: str) -> None:
    config = make_config(name, {"bidirectional": True})
    for site in get_attention(name).sites - {Site.ENCODER_SELF}:
        with pytest.raises(ValueError, match=f"bidirectional is for encoder_self, not {site.value}"):
            get_attention(name)(config, Shape.of(site, 8, 2))
    attention = get_attention(name)(config, Shape.of(Site.ENCODER_SELF, 8, 2))
    with pytest.raises(TypeError, match="from both ends"):
        attention.initial_state(3)


@FAMILY
def test_cross_reads_what_the_last_token_left(name: str, generator: torch.Generator) -> None:
    """The last reading left to right is the reading of the whole, by the same query."""
    if Site.CROSS not in get_attention(name).sites:
        return
    cross, own = (
        get_attention(name)(make_config(name, {}), Shape.of(site, 6, 2)).double()
        for site in (Site.CROSS, Site.ENCODER_SELF)
    )
    own.load_state_dict(cross.state_dict())
    x = torch.randn(3, 40, 6, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(cross(x[:, -1:], x, x)[0].output, own(x, x, x)[0].output[:, -1:], **EXACT)


def written_of(attention: DeltaAttention, x: Tensor) -> Entries:
    return attention._written(x, attention.k_proj(x), attention.v_proj(x), None)


def build_as_published(name: str, **options) -> DeltaAttention:
    with torch.random.fork_rng():
        torch.manual_seed(5)
        return get_attention(name)(make_config(name, options), Shape.of(Site.DECODER_SELF, 6, 2)).double()


@pytest.mark.parametrize("name", ["delta", "gated_delta", "delta_product", "kda", "gla", "retention", "ssd"])
def test_readings_are_the_published_recurrence_of_what_is_written(name: str, generator: torch.Generator) -> None:
    attention = build_as_published(name)
    x = torch.randn(2, 40, 6, generator=generator, dtype=torch.float64)
    written: Entries = written_of(attention, x)
    asked, gate = attention._asked(x)
    readings, _ = naive.gated_delta_rule(attention._queries(asked), *written, None, attention.steps)
    wanted = attention.out_proj(attention._joined(readings, gate))
    torch.testing.assert_close(attention(x, x, x)[0].output, wanted, **EXACT)


@pytest.mark.parametrize("place", [0, 2, 7])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_input_gates_of_padding_are_not_seen(place: int, bidirectional: bool, generator: torch.Generator) -> None:
    """Where b_i is great and w_i . x brings tokens back to it, and nothing can be held beside the gate of zeros."""
    attention = build(Case("mlstm", {"bidirectional": bidirectional}, Site.ENCODER_SELF), generator)
    dim = attention.shape.embed_dim
    attention.input_layer.bias.data.fill_(800.0)
    attention.input_layer.weight.data.zero_()[:, 0] = -1
    x = torch.randn(2, 7, dim, generator=generator, dtype=torch.float64)
    x[..., 0] = 800
    padded = torch.cat([x[:, :place], torch.zeros_like(x[:, :1]), x[:, place:]], 1)
    mask = torch.arange(8).expand(2, -1) == place
    found = attention(padded, padded, padded, mask)[0].output
    torch.testing.assert_close(found[~mask].view(2, 7, dim), attention(x, x, x)[0].output, **EXACT)


def test_strengths_and_decays_begin_in_their_ranges(generator: torch.Generator) -> None:
    x = torch.randn(2, 300, 6, generator=generator, dtype=torch.float64)
    for negative, most in ((False, 1.0), (True, 2.0)):
        beta = written_of(build_as_published("delta", negative_eigenvalues=negative), x).strength
        assert 0 < beta.min() < 0.4 * most < 0.6 * most < beta.max() < most
    for name in ("gated_delta", "kda", "ssd", "gla", "gsa", "mlstm", "retention"):
        log_decay = written_of(build_as_published(name), x).log_decay
        assert log_decay.max() < 0
        assert log_decay.exp().mean() > 0.5
    fixed = written_of(build_as_published("retention"), x).log_decay[0, :, 0].exp()
    torch.testing.assert_close(1 - fixed, torch.tensor([1 / 32, 1 / 64], dtype=torch.float64), **EXACT)


def test_a_key_written_again_has_its_last_value() -> None:
    """With beta 1 the delta rule is a dictionary; sums of outer products hold the sum of what was written."""
    key = torch.eye(4, dtype=torch.float64)[[0, 1, 0, 2, 1]][None, None]
    value = torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0]], dtype=torch.float64)[None, None]
    attention = build_as_published("delta")
    ones = torch.ones(1, 1, 5, dtype=torch.float64)
    empty = attention.State(torch.zeros(1, 1, 4, 1, dtype=torch.float64))
    memory = attention.written_to(empty, Entries(key, value, None, ones)).memory
    assert memory.flatten().tolist() == [3.0, 5.0, 4.0, 0.0]


def test_two_steps_of_one_token_are_two_tokens(generator: torch.Generator) -> None:
    """delta_product without a gate writes what delta writes for twice as many tokens."""
    twice, x = build_as_published("delta_product"), torch.randn(2, 40, 6, generator=generator, dtype=torch.float64)
    written = written_of(twice, x)
    once = build_as_published("delta").written_to(twice.initial_state(2), written)
    torch.testing.assert_close(twice.written_to(twice.initial_state(2), written).memory, once.memory, **EXACT)


def test_reflections_track_parity(generator: torch.Generator) -> None:
    """beta 2 for ones and 0 for zeros: what was written at first changes its sign with each one, however long."""
    bits = torch.randint(2, (1, 1, 200), generator=generator).double()
    attention = build_as_published("delta", negative_eigenvalues=True)
    key = torch.zeros(1, 1, 200, 4, dtype=torch.float64)
    key[..., 0] = 1
    start = attention.State(torch.eye(4, dtype=torch.float64)[None, None, :, :1])
    readings, _ = attention.in_turn(start, key, Entries(key, 0 * key[..., :1], None, 2 * bits))
    torch.testing.assert_close(readings[0, 0, :, 0], (-1) ** bits[0, 0].cumsum(0), **EXACT)


def test_two_steps_of_a_token_track_permutations_of_three(generator: torch.Generator) -> None:
    """delta_product: each permutation is at most two swaps, and each swap a reflection, a step with beta 2."""
    swaps = [[], [(0, 1)], [(0, 2)], [(1, 2)], [(0, 1), (1, 2)], [(1, 2), (0, 1)]]
    word = torch.randint(len(swaps), (200,), generator=generator).tolist()
    key, beta = torch.zeros(1, 1, 400, 3, dtype=torch.float64), torch.zeros(1, 1, 400, dtype=torch.float64)
    order, wanted = [0, 1, 2], []
    for token, letter in enumerate(word):
        for step, (a, b) in enumerate(swaps[letter]):
            row = 2 * token + step
            key[..., row, a], key[..., row, b], beta[..., row] = 0.5**0.5, -(0.5**0.5), 2
            order[a], order[b] = order[b], order[a]
        wanted.append(list(order))
    attention = build_as_published("delta_product", negative_eigenvalues=True)
    start = attention.State(torch.tensor([0.0, 1, 2], dtype=torch.float64).view(1, 1, 3, 1))
    for place in range(3):  # what stands there after each token
        query = torch.eye(3, dtype=torch.float64)[place].expand(1, 1, 200, 3)
        readings, _ = attention.in_turn(start, query, Entries(key, 0 * key[..., :1], None, beta))
        expected = torch.tensor([now[place] for now in wanted], dtype=torch.float64)
        torch.testing.assert_close(readings[0, 0, :, 0], expected, **EXACT)
