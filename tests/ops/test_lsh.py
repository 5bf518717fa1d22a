"""Attention in buckets against its definition."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from seqstruct.attention import Shape, Site, get_attention, make_config
from seqstruct.ops.lsh import bucket_attention, hash_buckets, share_a_bucket


def case(generator: torch.Generator, length: int, rounds: int = 3) -> tuple[Tensor, ...]:
    query, key, value = (
        torch.randn(2, 3, length, 6, generator=generator, dtype=torch.float64).requires_grad_() for _ in range(3)
    )
    rotations = torch.randn(3, rounds, 6, 4, generator=generator, dtype=torch.float64)
    return query, key, value, hash_buckets(query, rotations)


def definition(query: Tensor, key: Tensor, value: Tensor, buckets: Tensor, causal: bool, padding: Tensor) -> Tensor:
    visible = (share_a_bucket(buckets, buckets) > 0) & ~padding[:, None, None]
    if causal:
        visible = visible.tril()
    return F.scaled_dot_product_attention(query, key, value, attn_mask=visible)


def largest(buckets: Tensor) -> int:
    return max(int(row.bincount().max()) for row in buckets.flatten(0, 2))


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("side", ["none", "left", "right"])
def test_chunks_are_exact_where_every_bucket_fits(causal: bool, side: str, generator: torch.Generator) -> None:
    length = 41
    query, key, value, buckets = case(generator, length)
    padding = torch.zeros(2, length, dtype=torch.bool)
    if side != "none":
        padding[1, slice(0, 9) if side == "left" else slice(-9, None)] = True
    chunk = largest(buckets)
    assert chunk < length
    found = bucket_attention(query, key, value, buckets, chunk, causal, None if side == "none" else padding)
    wanted = definition(query, key, value, buckets, causal, padding)
    real = ~padding[:, None, :, None]
    torch.testing.assert_close(found * real, wanted.nan_to_num() * real)
    pull = torch.randn(found.shape, generator=generator, dtype=torch.float64) * real
    gradients = [torch.autograd.grad((x * pull).sum(), [query, key, value]) for x in (found, wanted.nan_to_num())]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


def test_a_hash_looks_at_angles_alone(generator: torch.Generator) -> None:
    query, *_ = case(generator, 9)
    rotations = torch.randn(3, 5, 6, 4, generator=generator, dtype=torch.float64)
    assert torch.equal(hash_buckets(query, rotations), hash_buckets(3.5 * query, rotations))


@pytest.mark.parametrize("site", [Site.ENCODER_SELF, Site.DECODER_SELF])
def test_the_layer_in_chunks_is_the_layer(site: Site, generator: torch.Generator) -> None:
    x = torch.randn(2, 50, 12, generator=generator, dtype=torch.float64)
    layers = []
    for chunk in (40, 50):
        torch.manual_seed(3)
        config = make_config("lsh", {"chunk": chunk, "buckets": 6, "rounds": 2})
        layers.append(get_attention("lsh")(config, Shape.of(site, 12, 3)).double().eval())
    assert largest(hash_buckets(layers[0]._heads(layers[0].q_proj(x)), layers[0].rotations)) <= 40
    torch.testing.assert_close(*(layer(x, x, x)[0].output for layer in layers))


@pytest.mark.parametrize("options", [{"rounds": 0}, {"buckets": 3}, {"buckets": 0}, {"chunk": 0}])
def test_bad_options_are_refused(options: dict) -> None:
    with pytest.raises(ValueError, match="lsh: "):
        make_config("lsh", options)
