"""Transformer language models that carry the memories of their attention from segment to segment."""

from __future__ import annotations

import pytest
import torch

from seqstruct.bridge.passes import CarriedState
from tests.models.building import dictionary_of, small_language_model
from tests.randomised import randomised

WORDS = dictionary_of([f"w{i}" for i in range(9)])
PLANS = [
    "linear",
    "rfa(features=8, gate=True)",
    "rfa(features=8, kernel='arccos', unit_norm=False) + t2r(features=4)",
    "performer(features=6)",
    "abc_mlp(slots=3, gate=True) + abc_random(slots=3)",
    "linformer(slots=3, length=11) + mean_pool(slots=4, stride=3)",
    "sliding_window(slots=3) + dilated_window(slots=2, dilation=3)",
    "clustering(slots=3, allow_short=True) + local_to_global(slots=4, stride=2)",
    "superposition_stack(size=3) + nondeterministic_stack(states=2, symbols=2, size=3)",
]


def small(plan, generator, **options):
    options = {"no_token_positional_embeddings": True, **options}
    model = small_language_model(WORDS, decoder_self_attention=plan, **options).double().eval()
    return randomised(model, generator, 0.5)


def tokens_of(generator, rows=3, steps=11):
    return torch.randint(4, len(WORDS), (rows, steps), generator=generator)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("plan", PLANS)
def test_segments_with_carried_memories_equal_one_pass(plan, recorded, generator):
    model, tokens, carried = small(plan, generator), tokens_of(generator), CarriedState()
    with torch.set_grad_enabled(recorded):
        whole = model(tokens)[0]
        parts = [model(part, carried=carried)[0] for part in tokens.split([5, 1, 3, 2], 1)]
    torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=1e-9, atol=1e-9)
    alone = model(tokens[:, 5:])[0]
    assert (alone - whole[:, 5:]).abs().max() > 1e-6, "the memories matter"


@pytest.mark.parametrize("plan", PLANS)
def test_padding_at_the_end_of_a_row_is_not_carried(plan, generator):
    """A row that has ended leaves the others as they are."""
    model, tokens, carried = small(plan, generator), tokens_of(generator), CarriedState()
    padded = tokens.clone()
    padded[1, 7:] = WORDS.pad()
    parts = [model(part, carried=carried)[0] for part in padded.split([6, 5], 1)]
    whole, real = model(tokens)[0], padded.ne(WORDS.pad())
    torch.testing.assert_close(torch.cat(parts, 1)[real], whole[real], rtol=1e-9, atol=1e-9)


def test_no_gradient_flows_through_the_cut(generator):
    model, tokens, carried = small("rfa(features=8, gate=True)", generator), tokens_of(generator), CarriedState()
    model(tokens[:, :5], carried=carried)
    before = [part.clone() for memory in carried.get(model.decoder, 3) for part in memory]
    assert not any(part.requires_grad for part in before)
    model(tokens[:, 5:], carried=carried)[0].sum().backward()
    assert model.decoder.layers[0].self_attn.mechanism.sigma.grad.abs().max() > 0


def test_layers_that_layerdrop_leaves_out_keep_their_memories(generator):
    model = small("linear", generator, decoder_layerdrop=0.5, dropout=0.0).train()
    tokens, kept = tokens_of(generator, steps=4), set()
    for _ in range(40):
        carried = CarriedState()
        model(tokens, carried=carried)
        memories = carried.get(model.decoder, len(tokens))
        kept.add(tuple(not bool(memory[0].any()) for memory in memories))
    assert len(kept) == 4, "each of two layers has read or not"


def test_positions_begin_anew_in_each_segment(generator):
    """With both segments of a pass alike, a first layer that sees nothing else adds the same positions to both."""
    model = small("sliding_window(slots=1)", generator, no_token_positional_embeddings=False)
    tokens, carried = tokens_of(generator, steps=4), CarriedState()
    parts = [model(tokens, carried=carried)[0] for _ in range(2)]
    torch.testing.assert_close(*parts)
    twice = model(torch.cat([tokens, tokens], 1))[0]
    assert (twice[:, 4:] - parts[1]).abs().max() > 1e-3


def test_a_stream_of_other_rows_is_refused(generator):
    model, carried = small("linear", generator), CarriedState()
    model(tokens_of(generator), carried=carried)
    with pytest.raises(ValueError, match="carried so far is of 3 rows, the segment of 2"):
        model(tokens_of(generator, rows=2), carried=carried)


@pytest.mark.parametrize("plan", ["softmax", "linear + sigmoid", "lsh(rounds=1, buckets=2)"])
def test_memories_that_keep_every_key_are_refused(plan, generator):
    with pytest.raises(ValueError, match="cannot be carried from segment to segment: it would keep every key"):
        small(plan, generator).decoder.initial_state(1)


def test_recomputed_activations_are_refused(generator):
    with pytest.raises(ValueError, match="--checkpoint-activations does not go with a state carried"):
        small("linear", generator, checkpoint_activations=True).decoder.initial_state(1)


def test_a_linformer_ends_with_its_positions(generator):
    model, carried = small("linformer(slots=3, length=8)", generator), CarriedState()
    model(tokens_of(generator, steps=5), carried=carried)
    with pytest.raises(ValueError, match="a sequence of 10 tokens or more; its memory is laid out for 8"):
        model(tokens_of(generator, steps=5), carried=carried)
