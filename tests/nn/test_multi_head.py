"""Against torch.nn.MultiheadAttention with its own weights, inside torch's layers, and with other mechanisms."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from seqstruct.nn import Mixer, MultiheadAttention

B, T, S, C, H = 3, 7, 5, 12, 3


def pair(generator, **options):
    """torch's attention and ours with the same weights, float64."""
    site = options.pop("site", "encoder_self")
    theirs = nn.MultiheadAttention(C, H, **options).double().eval()
    for parameter in theirs.parameters():
        parameter.data.uniform_(-0.6, 0.6, generator=generator)
    return theirs, MultiheadAttention.from_torch(theirs, site=site)


def drawn(generator, *shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def assert_same(theirs, ours, *inputs, **options):
    expected, found = theirs(*inputs, **options), ours(*inputs, **options)
    torch.testing.assert_close(found[0], expected[0])
    assert (found[1] is None) == (expected[1] is None)
    if expected[1] is not None:
        torch.testing.assert_close(found[1], expected[1])


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_self_attention_is_torch_s(generator, batch_first, bias):
    theirs, ours = pair(generator, batch_first=batch_first, bias=bias)
    x = drawn(generator, *((B, T, C) if batch_first else (T, B, C)))
    padding = torch.zeros(B, T, dtype=torch.bool)
    padding[0, 5:] = padding[2, :2] = True
    mask = torch.rand(T, T, generator=generator) < 0.3
    mask.fill_diagonal_(False)
    mask[:, 3] = False  # seen by all, padding or not
    floats = torch.zeros(T, T, dtype=torch.float64).masked_fill(mask, -torch.inf)
    for options in ({}, {"key_padding_mask": padding}, {"need_weights": False}, {"average_attn_weights": False},
                    {"attn_mask": mask}, {"attn_mask": mask, "key_padding_mask": padding},
                    {"attn_mask": floats, "need_weights": False},
                    {"attn_mask": mask.repeat(B * H, 1, 1), "key_padding_mask": padding}):
        assert_same(theirs, ours, x, x, x, **options)
    alone = x[0] if batch_first else x[:, 0]
    assert_same(theirs, ours, alone, alone, alone, key_padding_mask=padding[1])
    zero_or_inf = torch.zeros(B, T, dtype=torch.float64).masked_fill(padding, -torch.inf)
    assert_same(theirs, ours, x, x, x, key_padding_mask=zero_or_inf)


def test_attention_to_another_sequence_is_torch_s(generator):
    theirs, ours = pair(generator, batch_first=True, kdim=6, vdim=8, site="cross")
    query, key, value = drawn(generator, B, T, C), drawn(generator, B, S, 6), drawn(generator, B, S, 8)
    padding = torch.zeros(B, S, dtype=torch.bool)
    padding[1, 2:] = True
    mask = torch.zeros(T, S, dtype=torch.bool)
    mask[2:, 1] = True
    assert_same(theirs, ours, query, key, value, key_padding_mask=padding)
    assert_same(theirs, ours, query, key, value, key_padding_mask=padding, attn_mask=mask)


@pytest.mark.parametrize("queries, keys", [(3, 5), (5, 3)])
def test_is_causal_goes_by_the_mask_and_without_one_counts_from_the_first(generator, queries, keys):
    theirs, ours = pair(generator, batch_first=True, site="cross")
    query, memory = drawn(generator, B, queries, C), drawn(generator, B, keys, C)
    mask = torch.ones(queries, keys, dtype=torch.bool).triu(1)
    expected = theirs(query, memory, memory, attn_mask=mask)[0]
    for given in (None, mask, mask.expand(B * H, -1, -1)):
        torch.testing.assert_close(ours(query, memory, memory, attn_mask=given, is_causal=True)[0], expected)
    mask[0, 1] = False
    assert_same(theirs, ours, query, memory, memory, attn_mask=mask, is_causal=True)


def test_a_causal_mask_at_the_decoder_and_gradients(generator):
    theirs, ours = pair(generator, batch_first=True, site="decoder_self")
    x = drawn(generator, B, T, C).requires_grad_()
    causal = nn.Transformer.generate_square_subsequent_mask(T, dtype=torch.float64)
    assert_same(theirs, ours, x, x, x, attn_mask=causal, is_causal=True, need_weights=False)
    assert_same(theirs, ours, x, x, x, attn_mask=causal)
    (expected,) = torch.autograd.grad(theirs(x, x, x, attn_mask=causal)[0].square().sum(), x)
    (found,) = torch.autograd.grad(ours(x, x, x, is_causal=True)[0].square().sum(), x)
    torch.testing.assert_close(found, expected)
    with pytest.raises(ValueError, match="softmax at decoder_self is causal: expected the causal attn_mask"):
        ours(x, x, x)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_in_the_place_of_self_attn_of_torch_s_encoder(generator, norm_first, training):
    layer = nn.TransformerEncoderLayer(C, H, 20, dropout=0.0, batch_first=True, norm_first=norm_first).double()
    theirs = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).train(training)
    ours = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).train(training)
    for each in ours.layers:
        each.self_attn = MultiheadAttention.from_torch(each.self_attn)
    x, padding = drawn(generator, B, T, C), torch.zeros(B, T, dtype=torch.bool)
    padding[1, 4:] = True
    expected, found = (stack(x, src_key_padding_mask=padding) for stack in (theirs, ours))
    torch.testing.assert_close(found[~padding], expected[~padding])
    with torch.no_grad():
        torch.testing.assert_close(ours(x), theirs(x))
    for each in ours.layers:
        each.self_attn = MultiheadAttention(C, H, batch_first=True, plan="rfa(features=8)").double()
    assert ours(x, src_key_padding_mask=padding).isfinite().all()


@pytest.mark.parametrize("recorded", [True, False])
def test_in_an_encoder_that_was_built_for_nested_tensors(generator, recorded):
    layer = nn.TransformerEncoderLayer(C, 2, 20, dropout=0.0, batch_first=True).double()
    encoder = nn.TransformerEncoder(layer, 2).eval()
    assert encoder.use_nested_tensor
    x, padding = drawn(generator, B, T, C), torch.zeros(B, T, dtype=torch.bool)
    padding[1, 4:] = True
    with torch.set_grad_enabled(recorded):
        expected = encoder(x, src_key_padding_mask=padding)
        for each in reversed(encoder.layers):
            each.self_attn = MultiheadAttention.from_torch(each.self_attn)
            if not recorded and each is not encoder.layers[0]:
                with pytest.raises(ValueError, match="expected padded sequences, got nested ones"):
                    encoder(x, src_key_padding_mask=padding)
        found = encoder(x, src_key_padding_mask=padding)
    torch.testing.assert_close(found[~padding], expected[~padding])
    assert "out_proj" not in dict(encoder.layers[0].self_attn.named_children())


def test_in_torch_s_decoder(generator):
    layer = nn.TransformerDecoderLayer(C, H, 20, dropout=0.0, batch_first=True).double()
    x, memory = drawn(generator, B, T, C), drawn(generator, B, S, C)
    causal = nn.Transformer.generate_square_subsequent_mask(T, dtype=torch.float64)
    expected = layer(x, memory, tgt_mask=causal, tgt_is_causal=True)
    layer.self_attn = MultiheadAttention.from_torch(layer.self_attn, site="decoder_self")
    layer.multihead_attn = MultiheadAttention.from_torch(layer.multihead_attn, site="cross")
    torch.testing.assert_close(layer(x, memory, tgt_mask=causal, tgt_is_causal=True), expected)


def test_any_mechanism_is_the_mixer_s(generator):
    for plan, site in (("rfa(features=8)", "decoder_self"), ("gated_delta", "decoder_self"),
                       ("dependency", "encoder_self"), ("linear", "cross")):
        ours, mixer = MultiheadAttention(C, H, plan=plan, site=site).eval(), Mixer(plan, C, H, site=site)
        mixer.mechanism.load_state_dict(ours.mechanism.state_dict())
        x = drawn(generator, T, B, C).float()
        y = x.transpose(0, 1)
        output, weights = ours(x, x, x, is_causal=site == "decoder_self")
        memory = y if site == "cross" else None
        torch.testing.assert_close(output.transpose(0, 1), mixer.eval()(y, memory))
        assert output.shape == x.shape and (weights is None or weights.shape == (B, T, T))


def test_a_query_that_may_see_nothing_gets_zeros(generator):
    _, ours = pair(generator, batch_first=True)
    x = drawn(generator, B, T, C)
    mask = torch.zeros(T, T, dtype=torch.bool)
    mask[4] = True
    output, weights = ours(x, x, x, attn_mask=mask)
    assert not output[:, 4].any() and not weights[:, 4].any() and output.isfinite().all()
    assert not ours(x, x, x, key_padding_mask=torch.ones(B, T, dtype=torch.bool))[0].any()


def test_what_does_not_fit_is_refused(generator):
    x = drawn(generator, B, T, C).float()
    for option in ("add_bias_kv", "add_zero_attn"):
        with pytest.raises(ValueError, match="are not offered"):
            MultiheadAttention(C, H, **{option: True})
    ours = MultiheadAttention(C, H, batch_first=True, plan="linear")
    with pytest.raises(ValueError, match="linear at encoder_self takes no attn_mask; a causal one goes with site="):
        ours(x, x, x, attn_mask=torch.ones(T, T).triu(1).bool())
    assert ours(x, x, x, attn_mask=torch.zeros(T, T))[1] is None
    hashed = MultiheadAttention(C, H, batch_first=True, plan="lsh")
    with pytest.raises(ValueError, match="lsh at encoder_self takes no attn_mask"):
        hashed(x, x, x, attn_mask=torch.eye(T).bool())
    soft = MultiheadAttention(C, H, batch_first=True)
    with pytest.raises(ValueError, match="attn_mask: expected bool, or float of 0 and -inf alone"):
        soft(x, x, x, attn_mask=torch.ones(T, T))
    with pytest.raises(ValueError, match=r"attn_mask: expected \(7, 7\) or \(9, 7, 7\), got \(5, 7\)"):
        soft(x, x, x, attn_mask=torch.ones(5, T).bool())
    for what, given in (("queries", (x[..., 1:], x, x)), ("keys", (x, x[..., 1:], x)), ("values", (x, x, x[:, 1:]))):
        for mask in (None, torch.eye(T).bool()):
            with pytest.raises(ValueError, match=f"softmax: expected {what}"):
                soft(*given, attn_mask=mask)
    with pytest.raises(ValueError, match="softmax: expected queries"):
        soft(x[1:], x, x, attn_mask=torch.eye(T).bool())
    unlike = torch.zeros(B * H, T, T, dtype=torch.bool)
    unlike[1, 2, 3] = True
    with pytest.raises(ValueError, match="expected one that is equal in all heads"):
        soft(x, x, x, attn_mask=unlike)
    with pytest.raises(ValueError, match="of 2 or of 3 axes, got one of 4"):
        soft(x[None], x, x)
    with pytest.raises(ValueError, match="superposition_stack has no projection q_proj"):
        MultiheadAttention.from_torch(nn.MultiheadAttention(C, H), "superposition_stack(size=4)", "decoder_self")
    with pytest.raises(ValueError, match="delta has no projection q_proj that torch's biases fit"):
        MultiheadAttention.from_torch(nn.MultiheadAttention(C, H), "delta")
    assert MultiheadAttention.from_torch(nn.MultiheadAttention(C, H, bias=False), "delta").mechanism.name == "delta"
