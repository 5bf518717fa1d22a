"""Reversible layers against the plain computation of two streams; feed-forward layers in chunks against whole ones."""

from __future__ import annotations

import copy

import pytest
import torch

from seqstruct.bridge.reversible import ReversibleLayers, two_streams
from tests.models.building import dictionary_of, small_language_model, small_translation_model
from tests.randomised import randomised

WORDS = dictionary_of([f"w{i}" for i in range(9)])
PLANS = ["softmax", "lsh(rounds=2, buckets=2) + rfa(features=8, gate=True)", "abc_mlp(slots=3)"]


def small(generator, **options):
    return randomised(small_language_model(WORDS, **options).double(), generator, 0.5)


def tokens_of(generator):
    tokens = torch.randint(4, len(WORDS), (3, 7), generator=generator)
    tokens[1, 5:] = WORDS.pad()
    return tokens


def gradients(model, tokens):
    """Logits, and every parameter's gradient, of a function that weighs all logits; the draws are those of seed 5."""
    model.zero_grad()
    with torch.random.fork_rng():
        torch.manual_seed(5)
        logits = model(tokens)[0]
        logits.sin().sum().backward()
    return logits, {name: parameter.grad for name, parameter in model.named_parameters()}


class Plain(ReversibleLayers):
    """The same layers, with all activations kept by autograd."""

    def forward(self, x, *_, self_attn_mask, self_attn_padding_mask, **others):
        layers = list(self.children())
        x1 = x2 = x
        for layer in layers:
            x1 = x1 + layer.attend(x2, self_attn_padding_mask, self_attn_mask, None)
            x2 = x2 + layer.transform(x1)
        return (x1 + x2) / 2, None, None


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("plan", PLANS)
def test_values_and_gradients_equal_two_plain_streams(plan, training, generator):
    options = {"dropout": 0.2, "attention_dropout": 0.1, "activation_dropout": 0.1, "decoder_layers": 2}
    model = small(generator, reversible=True, decoder_self_attention=plan, **options).train(training)
    plain = copy.deepcopy(model)
    plain.decoder.layers = Plain(plain.decoder.layers.children())
    tokens = tokens_of(generator)
    (found, found_gradients), (wanted, wanted_gradients) = gradients(model, tokens), gradients(plain, tokens)
    torch.testing.assert_close(found, wanted)
    assert set(found_gradients) == set(wanted_gradients)
    torch.testing.assert_close(found_gradients, wanted_gradients, rtol=1e-7, atol=1e-9)


def test_no_activations_are_kept(generator):
    """What autograd saves for the backward pass of the layers does not grow with their number."""

    def saved(layers):
        model, sizes = small(generator, reversible=True, decoder_layers=layers), []
        tokens = torch.randint(4, len(WORDS), (3, 40), generator=generator)
        held = {parameter.data_ptr() for parameter in model.parameters()}

        def pack(tensor):
            if tensor.data_ptr() not in held:
                sizes.append(tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            model(tokens)
        return sum(sizes)

    assert saved(2) == saved(5)


def test_the_parameters_are_those_of_other_layers_and_step_by_step_equals_the_whole(generator):
    model = small(generator, reversible=True, decoder_self_attention=PLANS[2]).eval()
    other = small_language_model(WORDS, decoder_self_attention=PLANS[2])
    assert list(other.state_dict()) == list(model.state_dict())
    assert "(1): StructuredDecoderLayer" in repr(model)
    tokens, state = tokens_of(generator)[:1], {}
    with torch.no_grad():
        whole = model(tokens)[0]
        for t in range(tokens.size(1)):
            step = model.decoder(tokens[:, : t + 1], incremental_state=state)[0]
            torch.testing.assert_close(step[:, -1], whole[:, t])


def test_two_streams_by_hand():
    x = torch.tensor([2.0])
    first, second = two_streams([(lambda x: 3 * x, lambda x: x + 1)] * 2, x, x)
    assert (float(first), float(second)) == (8 + 33, 11 + 42)


@pytest.mark.parametrize("option", [
    {"decoder_normalize_after": True}, {"decoder_layerdrop": 0.1}, {"checkpoint_activations": True},
    {"scale_resids": True},
])
def test_what_is_not_reversible_is_refused(option, generator):
    with pytest.raises(ValueError, match=f"--{next(iter(option)).replace('_', '-')} does not go with --reversible"):
        small(generator, reversible=True, **option)


def test_changing_draws_and_carried_states_are_refused(generator):
    with pytest.raises(ValueError, match="give redraw=0"):
        small(generator, reversible=True, decoder_self_attention="performer(features=6)")
    small(generator, reversible=True, decoder_self_attention="performer(features=6, redraw=0)")
    with pytest.raises(ValueError, match="--reversible does not go with a state carried"):
        small(generator, reversible=True, decoder_self_attention="linear").decoder.initial_state(1)


@pytest.mark.parametrize("chunks", [2, 3, 50])
@pytest.mark.parametrize("reversible", [False, True])
def test_chunks_equal_the_whole(chunks, reversible, generator):
    model = small(generator, reversible=reversible, activation_fn="gelu").eval()
    chunked = small(generator, reversible=reversible, activation_fn="gelu", ffn_chunks=chunks).eval()
    chunked.load_state_dict(model.state_dict())
    tokens = tokens_of(generator)
    (wanted, wanted_gradients), (found, found_gradients) = gradients(model, tokens), gradients(chunked, tokens)
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(found_gradients, wanted_gradients)
    torch.testing.assert_close(chunked(tokens[:, :1])[0], model(tokens[:, :1])[0])


def test_chunks_of_a_translation_model_equal_the_whole(generator):
    model, chunked = small_translation_model(WORDS), small_translation_model(WORDS, ffn_chunks=3)
    chunked.load_state_dict(model.state_dict())
    tokens = tokens_of(generator)
    inputs = {"src_tokens": tokens, "src_lengths": torch.tensor([7, 5, 7]), "prev_output_tokens": tokens[:, :4]}
    torch.testing.assert_close(chunked.eval()(**inputs)[0], model.eval()(**inputs)[0])


def test_nothing_in_chunks(generator):
    model = small(generator, ffn_chunks=2, no_token_positional_embeddings=True)
    assert model(torch.zeros(3, 0, dtype=torch.long))[0].shape == (3, 0, len(WORDS))


def test_inner_dropout_follows_the_mode_of_the_layer(generator):
    model, tokens = small(generator, ffn_chunks=2, activation_dropout=0.5, dropout=0.0), tokens_of(generator)
    assert not torch.equal(model.train()(tokens)[0], model(tokens)[0])
    assert torch.equal(model.eval()(tokens)[0], model(tokens)[0])


def test_chunks_out_of_range_are_refused(generator):
    with pytest.raises(ValueError, match="--ffn-chunks is 1 or more, not 0"):
        small(generator, ffn_chunks=0)
    with pytest.raises(ValueError, match="--ffn-chunks does not go with --scale-fc"):
        small(generator, ffn_chunks=2, scale_fc=True)
