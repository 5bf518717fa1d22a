"""Against torch's layers with their own weights, step by step, and with norms and activations of today."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from seqstruct.nn import MultiheadAttention, Slot, TransformerBlock, select_rows
from tests.randomised import randomised

B, T, S, C, H = 3, 7, 5, 12, 3


def attention(mixer, theirs, site):
    mixer.mechanism.load_state_dict(MultiheadAttention.from_torch(theirs, site=site).mechanism.state_dict())


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_with_softmax_it_is_torch_s_layer(generator, norm_first, activation):
    theirs = nn.TransformerDecoderLayer(C, H, 20, 0.0, activation, batch_first=True, norm_first=norm_first)
    theirs = randomised(theirs, generator, 0.5).double().eval()
    ours = TransformerBlock("softmax", C, H, ffn_dim=20, cross="softmax", activation=activation,
                            norm_first=norm_first).double().eval()
    attention(ours.mixer, theirs.self_attn, "decoder_self")
    attention(ours.cross, theirs.multihead_attn, "cross")
    for own, other in zip((*ours.norms, ours.fc1, ours.fc2), (theirs.norm1, theirs.norm2, theirs.norm3, theirs.linear1,
                                                             theirs.linear2), strict=True):
        own.load_state_dict(other.state_dict())
    x, memory = (torch.randn(B, n, C, generator=generator, dtype=torch.float64) for n in (T, S))
    mask = torch.zeros(B, S, dtype=torch.bool)
    mask[1, 3:] = True
    causal = nn.Transformer.generate_square_subsequent_mask(T, dtype=torch.float64)
    expected = theirs(x, memory, tgt_mask=causal, memory_key_padding_mask=mask)
    torch.testing.assert_close(ours(x, None, memory, mask), expected)


TODAY = {"norm": "rms", "activation": "swiglu", "bias": False, "norm_first": True}


@pytest.mark.parametrize("plan", ["softmax", "gated_delta", "rfa(features=8)", "superposition_stack(size=4)"])
@pytest.mark.parametrize("options", [{}, {"norm_first": False}, TODAY], ids=["usual", "post-norm", "today"])
def test_steps_give_what_one_pass_does(generator, plan, options):
    block = TransformerBlock(plan, C, H, ffn_dim=9, cross="abc_mlp(slots=3)", memory_dim=4, **options)
    block = randomised(block, generator, 0.5).double().eval()
    x = torch.randn(B, T, C, generator=generator, dtype=torch.float64)
    memory = torch.randn(B, S, 4, generator=generator, dtype=torch.float64)
    mask, memory_mask = torch.zeros(B, T, dtype=torch.bool), torch.zeros(B, S, dtype=torch.bool)
    mask[0, :2] = memory_mask[2, 4:] = True
    whole = block(x, mask, memory, memory_mask)
    for cuts in ([1] * T, [2, 4, 1]):
        state, outputs = block.initial_state(B, memory, memory_mask), []
        for part, pad in zip(x.split(cuts, 1), mask.split(cuts, 1), strict=True):
            output, state = block.step(part, state, pad)
            outputs.append(output)
        torch.testing.assert_close(torch.cat(outputs, 1), whole)
    order = torch.tensor([1, 1])
    state = block.step(x[:, :3], block.initial_state(B, memory, memory_mask))[1]
    found = block.step(x[order, 3:4], select_rows(state, order))[0]
    torch.testing.assert_close(found, block(x, None, memory, memory_mask)[order, 3:4])


def test_a_decoder_of_today_has_rotary_positions_and_grouped_heads(generator):
    slot = Slot(kv_heads=2, rotary_base=10000.0, qk_norm=True, biases=False)
    block = randomised(TransformerBlock("softmax", 16, 4, slot=slot, **TODAY), generator, 0.5).double().eval()
    assert not [name for name, _ in block.named_parameters() if "bias" in name]
    assert block.mixer.mechanism.k_proj.weight.shape == (8, 16)
    x = torch.randn(2, 5, 16, generator=generator, dtype=torch.float64)
    state, outputs = block.initial_state(2), []
    for t in range(5):
        output, state = block.step(x[:, t : t + 1], state)
        outputs.append(output)
    torch.testing.assert_close(torch.cat(outputs, 1), block(x))


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="activation: expected one of relu, gelu, silu, swiglu, got 'tanh'"):
        TransformerBlock("softmax", C, activation="tanh")
    with pytest.raises(ValueError, match="norm: expected one of layer, rms"):
        TransformerBlock("softmax", C, norm="batch")
    with pytest.raises(ValueError, match="expected its plan by cross="):
        TransformerBlock("softmax", C, site="cross")
    with pytest.raises(ValueError, match="expected a memory where"):
        TransformerBlock("softmax", C)(torch.zeros(1, 2, C), memory=torch.zeros(1, 2, C))
    with pytest.raises(ValueError, match="expected a memory where"):
        TransformerBlock("softmax", C, cross="softmax").initial_state(2)
    block, mask = TransformerBlock("softmax", C), torch.zeros(1, 2, dtype=torch.bool)
    with pytest.raises(ValueError, match="memory_padding_mask: expected None without a memory"):
        block(torch.zeros(1, 2, C), memory_padding_mask=mask)
    with pytest.raises(ValueError, match="memory_padding_mask: expected None without a memory"):
        block.initial_state(1, memory_padding_mask=mask)
    for options in ({"ffn_dim": 0}, {"ffn_dim": -1}):
        with pytest.raises(ValueError, match="ffn_dim: expected 1 or more, got"):
            TransformerBlock("softmax", C, **options)
    with pytest.raises(ValueError, match="dropout: expected 0 or more and below 1, got 1.0"):
        TransformerBlock("softmax", C, dropout=1.0)
    for call in (block, lambda x: block.step(x, block.initial_state(1))):
        for shape in ((1, 2, C - 1), (2, C)):
            with pytest.raises(ValueError, match=rf"expected tokens B T {C}, got \("):
                call(torch.zeros(shape))
