"""Quantization noise, which fairseq draws in the weights before a training pass, on projections of attention."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from seqstruct.bridge.layers import PROJECTIONS
from tests.models.building import dictionary_of, small_language_model

NOISE = {"quant_noise_pq": 0.5, "quant_noise_pq_block_size": 4}


@pytest.mark.parametrize("plan", ["softmax + t2r(features=3)", "abc_mlp(slots=3) + rfa", "gated_delta + retention"])
@pytest.mark.parametrize("options", [{}, {"ffn_chunks": 2}, {"short_conv": 2, "qk_norm": True}])
def test_projections_have_it(plan: str, options: dict[str, Any], generator: torch.Generator) -> None:
    model = small_language_model(dictionary_of("abcdefg"), decoder_self_attention=plan, **NOISE, **options)
    tokens = torch.randint(4, 11, (3, 6), generator=generator)
    places = (*PROJECTIONS, "fc1", "fc2")
    weights = {name: p for name, p in model.named_parameters() if name.split(".")[-2] in places and p.dim() == 2}
    assert len(weights) == 2 * len(places)
    for weight in weights.values():
        torch.nn.init.ones_(weight)
    model.eval()(tokens)
    assert all((weight == 1).all() for weight in weights.values())
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model.train()(tokens)
    for name, weight in weights.items():
        blocks = weight.unflatten(1, (-1, 4))
        assert set(weight.unique().tolist()) == {0.0, 2.0} and (blocks == blocks[..., :1]).all(), name
        assert 0.2 < float((weight == 0).float().mean()) < 0.8, name


@pytest.mark.parametrize("options, said", [
    ({"decoder_self_attention": "softmax + superposition_stack"},
     "--quant-noise-pq: decoder_self attention, layer 1: expected a mechanism with projections to put it on, q_proj, "
     "k_proj, v_proj, out_proj, got superposition_stack"),
    ({"decoder_self_attention": "lsh"}, "layer 0: expected .*, got lsh"),
    ({"decoder_self_attention": "rfa(unit_norm=False)"}, "layer 0: expected .*, got rfa"),
    ({"checkpoint_activations": True}, "--quant-noise-pq does not go with --checkpoint-activations"),
    ({"reversible": True}, "--quant-noise-pq does not go with --reversible"),
])
def test_where_it_would_be_left_out_or_drawn_twice(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        small_language_model(dictionary_of("abc"), **NOISE, **options)
