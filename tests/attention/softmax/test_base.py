"""Softmax attention equals fairseq's own in every mode; sigmoid weights are what they say."""

from __future__ import annotations

import pytest
import torch
from fairseq.modules import MultiheadAttention

from seqstruct.attention import Shape, Site
from seqstruct.attention.softmax.sigmoid import SigmoidAttention
from seqstruct.attention.softmax.softmax import SoftmaxAttention
from seqstruct.bridge.adapter import AttentionAdapter

BATCH, LENGTH, SOURCE, DIM, HEADS = 5, 7, 11, 12, 3


def pair(site: Site) -> tuple[MultiheadAttention, AttentionAdapter]:
    """fairseq's attention and ours with the same parameters, in evaluation."""
    shape = Shape.of(site, DIM, HEADS, memory_dim=10 if site is Site.CROSS else DIM)
    stock = MultiheadAttention(
        DIM,
        HEADS,
        kdim=shape.key_dim,
        vdim=shape.value_dim,
        self_attention=site is not Site.CROSS,
        encoder_decoder_attention=site is Site.CROSS,
    ).eval()
    ours = AttentionAdapter(SoftmaxAttention(SoftmaxAttention.Config(), shape), 0).eval()
    ours.mechanism.load_state_dict(stock.state_dict())
    return stock, ours


@pytest.mark.parametrize("site", list(Site))
@pytest.mark.parametrize("need_weights", ["none", "mean", "heads"])
@pytest.mark.parametrize("side", [None, "left", "right"])
def test_equals_fairseq(site: Site, need_weights: str, side: str | None, generator: torch.Generator) -> None:
    stock, ours = pair(site)
    x = torch.randn(LENGTH, BATCH, DIM, generator=generator)
    memory = torch.randn(SOURCE, BATCH, 10, generator=generator) if site is Site.CROSS else x
    mask = torch.zeros(BATCH, memory.size(0), dtype=torch.bool)
    if side == "left" and site is not Site.DECODER_SELF:
        mask[1, :4] = True
    elif side:
        mask[1, -2:] = True
    causal = torch.full((LENGTH, LENGTH), float("-inf")).triu(1) if site is Site.DECODER_SELF else None
    options = {
        "key_padding_mask": mask if side else None,
        "attn_mask": causal,
        "need_weights": need_weights != "none",
        "need_head_weights": need_weights == "heads",
        "static_kv": site is Site.CROSS,
    }
    wanted, wanted_weights = stock(x, memory, memory, **options)
    found, weights = ours(x, memory, memory, **options)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6)
    if need_weights == "none":
        assert weights is None
        return
    if need_weights == "heads" and site is not Site.CROSS:
        weights = weights.mean(0)  # there fairseq gives the mean over heads, asked for or not
    torch.testing.assert_close(weights, wanted_weights, rtol=0, atol=1e-6)


@pytest.mark.parametrize("site", [Site.DECODER_SELF, Site.CROSS])
def test_equals_fairseq_step_by_step(site: Site, generator: torch.Generator) -> None:
    stock, ours = pair(site)
    x = torch.randn(LENGTH, BATCH, DIM, generator=generator)
    memory = torch.randn(SOURCE, BATCH, 10, generator=generator) if site is Site.CROSS else x
    mask = torch.zeros(BATCH, SOURCE, dtype=torch.bool)
    mask[2, :3] = True
    static = site is Site.CROSS
    states: tuple[dict, dict] = ({}, {})
    with torch.no_grad():
        for t in range(LENGTH):
            now = memory if static else x[t : t + 1]
            results = [
                module(
                    x[t : t + 1],
                    now,
                    now,
                    key_padding_mask=mask if static else None,
                    incremental_state=state,
                    static_kv=static,
                    need_weights=True,
                )
                for module, state in zip((stock, ours), states, strict=True)
            ]
            for wanted, found in zip(*results, strict=True):
                torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6)


def test_sigmoid_weights_are_independent(generator: torch.Generator) -> None:
    attention = SigmoidAttention(SigmoidAttention.Config(bias=-1.5), Shape.of(Site.ENCODER_SELF, DIM, HEADS)).eval()
    x = torch.randn(BATCH, LENGTH, DIM, generator=generator)
    reading, _ = attention(x, x, x, need_weights=True)
    query, key, value = (
        projection(x).view(BATCH, LENGTH, HEADS, DIM // HEADS)
        for projection in (attention.q_proj, attention.k_proj, attention.v_proj)
    )
    weights = torch.sigmoid(torch.einsum("bthd,bshd->bhts", query, key) / (DIM // HEADS) ** 0.5 - 1.5)
    torch.testing.assert_close(reading.weights, weights)
    expected = attention.out_proj(torch.einsum("bhts,bshd->bthd", weights, value).flatten(2))
    torch.testing.assert_close(reading.output, expected)


def test_heads_must_divide_the_size() -> None:
    with pytest.raises(ValueError, match="12 is not a multiple of 5 heads"):
        SoftmaxAttention(SoftmaxAttention.Config(), Shape.of(Site.ENCODER_SELF, 12, 5))
