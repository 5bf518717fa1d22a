"""Dropout by kernels: which numbers it takes, and attention with it, against sums written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from seqstruct.attention.dropout import Dropout
from seqstruct.ops.compiled import usable
from seqstruct.ops.dropout import drop, kernel_drops
from seqstruct.ops.softmax import softmax_attention, weighted_values

TURNS = [(10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20)]


def threefry(key, blocks, rounds):
    """Words, 4 by block, of counters 0 to `blocks` - 1 (Salmon et al. 2011, sec. 4.2), in numpy."""
    mask = np.uint64(0xFFFFFFFF)
    keys = [np.uint64(k) for k in (key & 0xFFFFFFFF, key >> 32, 0, 0)]
    keys.append(np.uint64(0x1BD11BDA) ^ keys[0] ^ keys[1])
    words = [np.zeros(blocks, np.uint64) + k & mask for k in keys[:4]]
    words[0] = words[0] + np.arange(blocks, dtype=np.uint64) & mask
    for number in range(rounds):
        for word, turn in zip((0, 2), TURNS[number % 8], strict=True):
            partner = (word + (3 if number % 2 else 1)) % 4
            words[word] = words[word] + words[partner] & mask
            turned = words[partner] << np.uint64(turn) | words[partner] >> np.uint64(32 - turn)
            words[partner] = turned & mask ^ words[word]
        if number % 4 == 3:
            added = number // 4 + 1
            words = [word + keys[(added + i) % 5] & mask for i, word in enumerate(words)]
            words[3] = words[3] + np.uint64(added) & mask
    return np.stack(words)


@pytest.fixture()
def kernels(compiled):
    compiled(True)
    assert usable(torch.zeros(1))
    return torch.ops.seqstruct


def explicit(query, key, value, visible, causal, share, seed):
    """Attention by the definition, with the factors of dropout of all weights."""
    group = query.size(1) // key.size(1)
    key, value = (x.repeat_interleave(group, 1) for x in (key, value))
    scores = query @ key.transpose(2, 3) / math.sqrt(query.size(3))
    if causal:
        visible = torch.ones(scores.shape[2:], dtype=torch.bool).tril()
    seen = torch.ones_like(scores, dtype=torch.bool) if visible is None else visible.expand_as(scores)
    weights = scores.masked_fill(~seen, torch.finfo(scores.dtype).min).softmax(-1).masked_fill(~seen, 0.0)
    return weights * torch.ops.seqstruct.dropped(torch.ones_like(weights), share, seed) @ value


def with_gradients(form, tensors, *rest):
    output = form(*tensors, *rest)
    output = output if isinstance(output, torch.Tensor) else output[0]
    weight = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).view_as(output)
    return output, *torch.autograd.grad(output, tensors, weight)


def test_threefry_of_the_tests_gives_the_numbers_of_its_authors():
    assert [hex(word) for word in threefry(0, 1, 20)[:, 0]] == ["0x9c6ca96a", "0xe17eae66", "0xfc10ecd4", "0x5256a7d8"]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.999])
def test_what_is_dropped_is_threefry_s_choice(share, kernels):
    seed, count = 0x123456789ABCDEF, 64 * 20 + 7
    words = threefry(seed, 16 * 21, 12).reshape(4, 21, 16).transpose(1, 0, 2).reshape(-1)[:count]
    expected = torch.from_numpy((words >= int(share * 2**32)) / (1 - share))
    torch.testing.assert_close(kernels.dropped(torch.ones(count).double(), share, seed), expected, rtol=1e-15, atol=0)
    torch.testing.assert_close(kernels.dropped(torch.ones(count), share, seed), expected.float(), rtol=1e-6, atol=0)


def test_the_share_and_neighbours(kernels):
    """Of a million numbers: means within five deviations, of single ones and of pairs that lie apart."""
    count, share = 1_000_000, 0.1
    gone = kernels.dropped(torch.ones(count), share, 3) == 0
    other = kernels.dropped(torch.ones(count), share, 4) == 0
    pairs = [gone[apart:] & gone[:-apart] for apart in (1, 4, 16, 64, 4096)] + [gone & other]
    for found, wanted in [(gone, share), *((pair, share**2) for pair in pairs)]:
        spread = math.sqrt(wanted * (1 - wanted) * 4 / count)  # pairs overlap: at most four times the variance
        assert abs(found.double().mean() - wanted) < 5 * spread


@pytest.mark.parametrize("count", [1, 3])
def test_places_alone_decide(count, threads, kernels):
    whole = kernels.dropped(torch.ones(70_001), 0.3, 9)
    threads(count)
    assert torch.equal(kernels.dropped(torch.ones(70_001), 0.3, 9), whole)
    for count in (0, 1, 63, 64, 4097):
        assert torch.equal(kernels.dropped(torch.ones(count), 0.3, 9), whole[:count])


def test_it_goes_by_pytorch_s_generator(kernels):
    x = torch.ones(3, 5, 7, requires_grad=True)
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append(drop(x, 0.4))
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
    assert not torch.equal(drop(x, 0.4), drawn[2])
    (gradient,) = torch.autograd.grad(drawn[2].sum(), x, create_graph=True)
    assert torch.equal(gradient, drawn[2])
    layer = Dropout(0.4)
    torch.manual_seed(1)
    assert torch.equal(layer(x), drawn[0])
    assert layer.eval()(x) is x or torch.equal(layer(x), x)


def test_what_kernels_do_not_take(kernels, compiled):
    x = torch.ones(5, 7)
    assert kernel_drops(0.5, x, x)
    assert not kernel_drops(0.0, x) and not kernel_drops(1.0, x) and not kernel_drops(0.5, x.half())
    assert not kernel_drops(0.5, x, x.double())
    assert torch.equal(drop(x, 1.0), torch.zeros_like(x)) and torch.equal(drop(x, 0.0), x)
    assert drop(x.half(), 0.5).dtype == torch.half
    many = torch.func.vmap(lambda row: drop(row, 0.5), randomness="different")(x)
    assert set(many.unique().tolist()) <= {0.0, 2.0}
    compiled(False)
    torch.manual_seed(5)
    ours = drop(x, 0.5)
    torch.manual_seed(5)
    assert torch.equal(ours, F.dropout(x, 0.5))


@pytest.mark.parametrize("sight", ["all", "causal", "drawn", "padding", "nothing"])
@pytest.mark.parametrize("sizes", [(2, 4, 2, 5, 7, 3, 6), (1, 2, 2, 13, 13, 8, 8), (2, 3, 1, 70, 70, 16, 5),
                                   (1, 1, 1, 1, 1, 1, 1), (2, 2, 2, 33, 40, 32, 17)])
def test_attention_is_that_by_the_definition(sizes, sight, kernels, generator):
    B, H, J, T, S, D, E = sizes
    causal, visible = sight == "causal" and T == S, None
    query = torch.randn(T, B, H, D, generator=generator, dtype=torch.float64).permute(1, 2, 0, 3).requires_grad_()
    key = torch.randn(B, J, S, D, generator=generator, dtype=torch.float64, requires_grad=True)
    value = torch.randn(B, S, J, E, generator=generator, dtype=torch.float64).transpose(1, 2).requires_grad_()
    if sight == "drawn":
        visible = torch.rand(B, 1, T, S, generator=generator) < 0.6
        visible[0, 0, 0] = False
    if sight == "padding":
        visible = (torch.arange(S) < torch.randint(1, S + 1, (B, 1), generator=generator))[:, None, None]
    if sight == "nothing":
        visible = torch.zeros(1, 1, 1, 1, dtype=torch.bool)
    inputs, rest = (query, key, value), (visible, causal, 0.3, 5)
    expected = with_gradients(explicit, inputs, *rest)
    found = with_gradients(kernels.softmax_attention, inputs, *rest)
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-13)
    single = [x.detach().float().requires_grad_() for x in inputs]
    for ours, exact in zip(with_gradients(kernels.softmax_attention, single, *rest), expected, strict=True):
        assert (ours - exact).abs().max() <= 3e-6 * max(1.0, float(exact.detach().abs().max()))


@pytest.mark.parametrize("axes", [(7,), (5, 7), (2, 5, 1)])
def test_what_is_visible_may_have_fewer_axes(axes, kernels, generator):
    query, key, value = (torch.randn(3, 2, n, 4, generator=generator) for n in (5, 7, 7))
    visible = torch.rand(axes, generator=generator) < 0.7
    found = []
    for sight in (visible, visible.expand(3, 2, 5, 7)):
        torch.manual_seed(4)
        found.append(softmax_attention(query, key, value, sight, dropout=0.3))
    assert torch.equal(*found)


def test_gradients_by_differences(kernels, generator):
    inputs = [torch.randn(1, 2, n, 3, generator=generator, dtype=torch.float64).requires_grad_() for n in (5, 7, 7)]
    visible = torch.rand(1, 2, 5, 7, generator=generator) < 0.7
    assert torch.autograd.gradcheck(lambda *x: kernels.softmax_attention(*x, visible, False, 0.2, 3)[0], inputs)


def test_without_dropout_it_is_pytorch_s(kernels, generator):
    inputs = [torch.randn(2, 3, 40, 8, generator=generator, dtype=torch.float64).requires_grad_() for _ in range(3)]
    expected = with_gradients(lambda *x: F.scaled_dot_product_attention(*x, is_causal=True), inputs)
    found = with_gradients(kernels.softmax_attention, inputs, None, True, 0.0, 1)
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("sizes", [(0, 2, 5), (2, 2, 0)])
def test_empty(sizes, kernels):
    B, H, T = sizes
    x = torch.zeros(B, H, T, 4, requires_grad=True)
    output = softmax_attention(x, x, x, causal=True, dropout=0.5)
    output.sum().backward()
    assert output.shape == x.shape == x.grad.shape
    nothing = softmax_attention(torch.ones(1, 2, 3, 4), *torch.ones(2, 1, 2, 0, 4), dropout=0.5)
    assert torch.equal(nothing, torch.zeros(1, 2, 3, 4))


@pytest.mark.parametrize("strange", [math.nan, math.inf])
def test_what_is_no_number_spoils_its_own_rows(strange, kernels, generator):
    query, key, value = torch.randn(3, 1, 1, 5, 4, generator=generator).abs()
    query[0, 0, 2, 1] = strange
    output = softmax_attention(query, key, value, dropout=0.2)
    assert output[0, 0, 2].isnan().all()
    assert output[0, 0, [0, 1, 3, 4]].isfinite().all()


def test_large_scores(kernels, generator):
    """Weights of one and zero, and gradients without a NaN."""
    query, key, value = (300 * torch.randn(3, 1, 2, 13, 8, generator=generator)).unbind(0)
    inputs = [x.clone().requires_grad_() for x in (query, key, value)]
    exact = [x.double().requires_grad_() for x in (query, key, value)]
    rest = (None, True, 0.3, 8)
    output, *gradients = with_gradients(kernels.softmax_attention, inputs, *rest)
    torch.testing.assert_close(output.double(), with_gradients(explicit, exact, *rest)[0], rtol=1e-5, atol=1e-3)
    assert all(x.isfinite().all() for x in gradients)


def test_the_mean_over_seeds_is_attention_without_dropout(kernels, generator):
    query, key, value = torch.randn(3, 1, 2, 5, 4, generator=generator, dtype=torch.float64).unbind(0)
    found = torch.stack([kernels.softmax_attention(query, key, value, None, True, 0.25, n)[0] for n in range(4000)])
    expected = kernels.softmax_attention(query, key, value, None, True, 0.0, 0)[0]
    spread = found.std(0) / math.sqrt(len(found))
    assert ((found.mean(0) - expected).abs() < 6 * spread + 1e-12).all()


def test_weights_that_others_made_are_dropped_too(kernels, generator):
    torch.manual_seed(3)
    weights, value = torch.ones(2, 1, 4, 500), torch.eye(500).expand(2, 1, 500, 500)
    found = weighted_values(weights, value, 0.2)
    assert set(found.unique().tolist()) == {0.0, 1.25}
