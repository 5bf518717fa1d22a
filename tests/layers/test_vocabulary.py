"""Tables without rows for special symbols."""

from __future__ import annotations

import torch

from seqstruct.layers.vocabulary import TerminalEmbedding, TerminalProjection
from tests.models.building import dictionary_of


def test_rows_and_columns_of_terminals(generator: torch.Generator) -> None:
    dictionary = dictionary_of("()[]")
    embedding, projection = TerminalEmbedding(dictionary, 6), TerminalProjection(dictionary, 6)
    assert embedding.weight.shape == (5, 6) and projection.weight.shape == (5, 6)
    tokens = torch.tensor([[dictionary.bos(), dictionary.index("("), dictionary.index("]"), dictionary.pad()]])
    torch.testing.assert_close(embedding(tokens)[0], embedding.weight[[4, 0, 3, 4]])
    features = torch.randn(2, 3, 6, generator=generator)
    logits = projection(features)
    plain = torch.nn.functional.linear(features, projection.weight, projection.bias)
    torch.testing.assert_close(logits[..., dictionary.nspecial :], plain[..., :4])
    torch.testing.assert_close(logits[..., dictionary.eos()], plain[..., 4])
    for special in (dictionary.bos(), dictionary.pad(), dictionary.unk()):
        assert torch.isneginf(logits[..., special]).all()
    target = torch.full((2, 3), dictionary.eos())
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten()).backward()
    assert projection.weight.grad.isfinite().all() and projection.weight.grad.abs().max() > 0
