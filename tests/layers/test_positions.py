"""Sinusoidal positions as the Transformer's paper has them."""

from __future__ import annotations

import math

import pytest
import torch

from seqstruct.layers.positions import InterleavedSinusoidalPositions, Positions

PAD = 1


def test_values_and_padding() -> None:
    positions = InterleavedSinusoidalPositions(16, 6, PAD)
    tokens = torch.tensor([[5, 6, 7, 8], [PAD, PAD, 5, 6], [5, 6, PAD, PAD]])
    found = positions(tokens)
    for row, cells in ((0, {0: 0, 3: 3}), (1, {2: 0, 3: 1}), (2, {1: 1})):
        for cell, place in cells.items():
            for i in range(3):
                angle = place / 10000 ** (2 * i / 6)
                assert float(found[row, cell, 2 * i]) == pytest.approx(math.sin(angle), abs=1e-6)
                assert float(found[row, cell, 2 * i + 1]) == pytest.approx(math.cos(angle), abs=1e-6)
    torch.testing.assert_close(positions(tokens, incremental_state={}), found[:, -1:])
    assert not positions.state_dict()


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="need an even size, not 7"):
        InterleavedSinusoidalPositions(16, 7, PAD)
    for size in (2, 3):
        with pytest.raises(ValueError, match=f"need a size of 4 or more, not {size}"):
            Positions("stacked", 16, size, PAD)
    assert not Positions("stacked", 16, 1, PAD)(torch.tensor([[0, 5]])).any()
    positions = InterleavedSinusoidalPositions(4, 6, PAD)
    with pytest.raises(ValueError, match="a sequence of 5 tokens: the model has 4 positions"):
        positions(torch.full((1, 5), 9))
    for tokens in ([PAD, 5, 6, 7, 8], [5, 6, 7, 8, PAD], [PAD] * 5):
        found = positions(torch.tensor([tokens]))[0, [token != PAD for token in tokens]]
        assert torch.equal(found, positions.table[: len(found)])
    assert positions(torch.zeros(0, 5, dtype=torch.long)).shape == (0, 5, 6)
