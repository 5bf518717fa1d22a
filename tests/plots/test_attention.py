"""Heat maps of attention and of stack actions."""

from __future__ import annotations

import numpy as np
import pytest

from seqstruct.plots.attention import attention
from seqstruct.plots.figures import save
from seqstruct.plots.views import LayerView


def test_attention_draws_actions_and_weights(tmp_path):
    symbols = ["<s>", *"([])"]
    actions = np.full((5, 3), 1 / 3)
    weights = np.tril(np.ones((2, 5, 5))) / np.arange(1, 6)[:, None]
    figure = attention([
        LayerView("layer 1", symbols, symbols, None, weights),
        LayerView("layer 2", symbols, symbols, actions, None),
    ])
    images = [axes.get_images()[0].get_array() for axes in figure.axes[:2]]
    assert np.allclose(images[0], weights.mean(0)) and np.allclose(images[1], actions.T)
    save(figure, tmp_path / "attention.png")
    with pytest.raises(ValueError, match="no layer gives actions"):
        attention([])
