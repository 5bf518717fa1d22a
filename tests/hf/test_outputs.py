"""What models of transformers and their configurations tell beside logits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from seqstruct.hf import SeqstructConfig
from tests.hf.building import AUTO, drawn, tokens_of


def test_weights_and_hidden_states_are_shown(generator: torch.Generator) -> None:
    model, tokens = drawn("structured_transformer", decoder_self_attention="softmax + linear"), tokens_of(generator)
    output = model(tokens, decoder_input_ids=tokens[:, :4], output_attentions=True, output_hidden_states=True)
    assert [w.shape for w in output.encoder_attentions] == [(3, 2, 7, 7)] * 2
    assert [w.shape for w in output.cross_attentions] == [(3, 2, 4, 7)] * 2
    assert output.decoder_attentions[0].shape == (3, 2, 4, 4) and output.decoder_attentions[1] is None
    assert [h.shape for h in output.decoder_hidden_states] == [(3, 4, 12)] * 3
    torch.testing.assert_close(output.cross_attentions[1].sum(-1), torch.ones(3, 2, 4))


@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_a_classifier_shows_weights_and_hidden_states(pooling: str, generator: torch.Generator) -> None:
    """In the order of the tokens, wherever padding is."""
    options = {"encoder_self_attention": "softmax + linear", "pooling": pooling}
    model, tokens = drawn("structured_transformer_classifier", **options), tokens_of(generator)
    asked, put = {"output_attentions": True, "output_hidden_states": True}, int(pooling == "first")
    mask = torch.arange(7) >= torch.tensor([0, 5, 3])[:, None]
    output = model(tokens, mask.long(), **asked)
    assert len(output.hidden_states) == 3 and output.attentions[1] is None
    assert output.attentions[0].shape == (3, 2, 7 + put, 7 + put)
    for row, kept in enumerate(mask):
        alone, real = model(tokens[row : row + 1, kept], **asked), torch.cat([torch.ones(put), kept]).bool()
        torch.testing.assert_close(output.attentions[0][row][:, real][..., real], alone.attentions[0][0])
        for found, expected in zip(output.hidden_states, alone.hidden_states, strict=True):
            torch.testing.assert_close(found[row, real], expected[0])
    assert model(tokens).hidden_states is None and model(tokens).attentions is None
    model.config.output_hidden_states = True
    assert len(model(tokens, return_dict=False)) == 2
    pairs = drawn("structured_transformer_classifier", pairs=True, **options)
    output = pairs(tokens, second_input_ids=tokens[:, :4], **asked)
    assert [h.size(1) - put for h in output.hidden_states] == [7] * 3 + [4] * 3
    assert len(output.attentions) == 4


@pytest.mark.parametrize("kind, labels, loss", [
    (None, torch.tensor([2, 0, 1]), F.cross_entropy),
    (None, torch.tensor([[1.0, 0, 1], [0, 0, 0], [1, 1, 0]]), F.binary_cross_entropy_with_logits),
    ("regression", torch.tensor([[1.0, 3, 1], [0, 5, 0], [-1, 1, 0]]), F.mse_loss),
])
def test_the_loss_of_a_classifier_is_of_its_problem(
    kind: str | None, labels: torch.Tensor, loss: Callable[..., torch.Tensor], generator: torch.Generator
) -> None:
    model = drawn("structured_transformer_classifier", num_labels=3, problem_type=kind)
    output = model(tokens_of(generator), labels=labels)
    torch.testing.assert_close(output.loss, loss(output.logits, labels))


@pytest.mark.parametrize("arch", AUTO)
def test_a_configuration_tells_sizes_under_the_names_of_transformers(arch: str, generator: torch.Generator) -> None:
    """Of the encoder where there is one, as those of transformers' encoder-decoders do."""
    encoder = {"encoder_embed_dim": 24, "encoder_layers": 3, "encoder_attention_heads": 4, "max_source_positions": 55}
    decoder = {"decoder_embed_dim": 12, "decoder_layers": 1, "decoder_attention_heads": 2, "max_target_positions": 44}
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings")
    model, expected = drawn(arch, **encoder, **decoder), decoder if arch.endswith("_lm") else encoder
    assert [getattr(model.config, name) for name in names] == list(expected.values())
    given = SeqstructConfig(arch=arch, **dict(zip(names, (16, 5, 8, 33), strict=True)))
    assert [getattr(given, name) for name in expected] == [16, 5, 8, 33] and not set(names) & given.to_dict().keys()
    text = [model.config.get_text_config(encoder=True), model.config.get_text_config(decoder=True)]
    of_decoder = decoder if model.can_generate() else encoder
    assert [[getattr(c, name) for name in names] for c in text] == [[*expected.values()], [*of_decoder.values()]]
    tokens = tokens_of(generator)
    if model.can_generate():
        targets = {"decoder_input_ids": tokens} if model.config.is_encoder_decoder else {}
        assert len(model(tokens, **targets).past_key_values.layers) == 1
