"""The delta rule's kernel against the recurrence, where sizes, strides and gradients are awkward."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from seqstruct.ops.compiled import usable
from seqstruct.ops.delta import gated_delta_rule, gated_slots, naive, write

SIZES = [(1, 1, 1, 1, 1), (2, 3, 13, 5, 7), (1, 2, 70, 33, 17), (2, 1, 40, 16, 70), (1, 1, 9, 130, 3)]  # B H T K V
KINDS = ["delta", "sums", "gated", "channels", "two steps"]


@pytest.fixture()
def kernels(compiled):
    compiled(True)
    assert usable(torch.zeros(1))


def arguments(kind, sizes, dtype, generator):
    """As `gated_delta_rule` takes them: queries and keys are views of B T H K, values of B H V T."""
    B, H, T, K, V = sizes
    steps = 2 if kind == "two steps" else 1

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)

    query = draw(B, T, H, K).transpose(1, 2)
    key = F.normalize(draw(B, T * steps, H, K), dim=-1).transpose(1, 2)
    value, memory = draw(B, H, V, T * steps).mT, draw(B, H, K, V)
    beta = None if kind == "sums" else (2 * draw(B, H, T * steps, 2).sigmoid())[..., 0]
    decay = None if kind in ("delta", "sums") else -draw(B, H, T, *([K] if kind == "channels" else [])).exp()
    return [query, key, value, decay, beta, memory], steps


def with_gradients(form, given, steps, parts=(0, 1)):
    """Results, and gradients of a weighted sum of these parts of them."""
    leaves = [None if x is None else x.detach().requires_grad_() for x in given]
    results = form(*leaves, steps)
    total = sum((results[i] * torch.linspace(-1, 2, results[i].numel()).view(results[i].shape)).sum() for i in parts)
    inputs = [x for x in leaves if x is not None]
    gradients = torch.autograd.grad(total, inputs, allow_unused=True)
    return *results, *(torch.zeros_like(x) if g is None else g for x, g in zip(inputs, gradients, strict=True))


@pytest.mark.parametrize("parts", [(0, 1), (0,), (1,)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", SIZES)
def test_it_is_the_recurrence(sizes, kind, parts, kernels, generator):
    given, steps = arguments(kind, sizes, torch.float64, generator)
    found = with_gradients(gated_delta_rule, given, steps, parts)
    expected = with_gradients(naive.gated_delta_rule, given, steps, parts)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_writing_alone(kind, kernels, generator):
    given, steps = arguments(kind, (2, 3, 13, 5, 7), torch.float64, generator)
    _, *rest, memory = given
    leaves = [None if x is None else x.detach().requires_grad_() for x in (memory, *rest)]
    found, expected = write(*leaves, steps), naive.gated_delta_rule(given[0], *leaves[1:], leaves[0], steps)[1]
    inputs = [x for x in leaves if x is not None]
    gradients = [torch.autograd.grad(x.square().sum(), inputs) for x in (found, expected)]
    torch.testing.assert_close((found, *gradients[0]), (expected, *gradients[1]), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_single_precision_at_length(kind, kernels, generator):
    """Against double precision: errors of rounding, in the gradients too, though those of decays are long sums."""
    given, steps = arguments(kind, (1, 2, 700, 16, 8), torch.float64, generator)
    exact = with_gradients(naive.gated_delta_rule, given, steps)
    found = with_gradients(gated_delta_rule, [None if x is None else x.float() for x in given], steps)
    for ours, theirs in zip(found, exact, strict=True):
        assert (ours - theirs).abs().max() <= 3e-5 * theirs.abs().max()


def test_threads_share_heads(kernels, threads, generator):
    given, steps = arguments("gated", (3, 3, 40, 8, 8), torch.float32, generator)
    found = []
    for count in (1, 4):
        threads(count)
        found.append(with_gradients(gated_delta_rule, given, steps))
    assert all(torch.equal(x, y) for x, y in zip(*found, strict=True))


def test_decays_that_leave_nothing(kernels, generator):
    """No number that is none, and no gradient where nothing is left."""
    for kind in ("gated", "channels"):
        given, steps = arguments(kind, (1, 2, 20, 4, 3), torch.float32, generator)
        given[3][:, :, 7] = -torch.inf
        results = with_gradients(gated_delta_rule, given, steps)
        assert all(x.isfinite().all() for x in results)
        assert not results[5][:, :, 7].any() and results[5][:, :, 8].any()


def test_batches_and_channels_of_none(kernels):
    for shape in ((0, 2, 5, 3), (2, 0, 5, 3), (2, 2, 5, 0)):
        x = torch.zeros(shape, requires_grad=True)
        readings, memory = gated_delta_rule(x, x, x, None, x.sum(-1))
        (readings.sum() + memory.sum()).backward()
        assert readings.shape == x.grad.shape == x.shape


def test_transforms_go_through_pytorch(kernels, generator):
    given, steps = arguments("delta", (2, 1, 5, 3, 3), torch.float64, generator)
    query, key, value, _, beta, memory = given
    rows = torch.func.vmap(lambda q: gated_delta_rule(q[None], key[:1], value[:1], None, beta[:1], memory[:1])[0][0])
    expected = [gated_delta_rule(q[None], key[:1], value[:1], None, beta[:1], memory[:1])[0][0] for q in query]
    torch.testing.assert_close(rows(query), torch.stack(expected))


@pytest.mark.parametrize("parts", [(0, 1), (0,), (1,)])
@pytest.mark.parametrize("decays", [True, False])
@pytest.mark.parametrize("sizes", SIZES)
def test_gated_slots_are_those_of_chunks(sizes, decays, parts, both, generator):
    """Of all slots, and of those that are not blank."""
    B, H, T, N, K = sizes

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    query, key, value = draw(B, T, H, K).transpose(1, 2), draw(B, H, K, T).mT, draw(B, H, T, 2 * K)[..., ::2]
    decay = F.logsigmoid(3 * draw(B, H, T, N)) if decays else None
    given = [query, key, value, draw(B, H, T, N).sigmoid(), decay, draw(B, H, N, 2 * K)]
    for blank in (None, (torch.arange(N) > torch.arange(T).unsqueeze(1)).expand(B, H, -1, -1)):
        found, wanted = both(lambda blank=blank: with_gradients(gated_slots, given, blank, parts))
        torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-10)
