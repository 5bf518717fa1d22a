"""Clipped LSTMs against the equations, and the bound as training goes on."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import lstm_cell

from seqstruct.layers.recurrent import RecurrentLayer
from seqstruct.models.rnn_translation.clipping import Clipping
from tests.models.rnn_translation.test_model import build, targets, tokens


def test_the_bound_falls_in_training_and_is_the_last_one_afterwards() -> None:
    clipping = Clipping(8.0, 1.0, 10)
    found = []
    for updates in (0, 5, 10, 1000):
        clipping.set_num_updates(updates)
        found.append(clipping.bound)
    assert found == [8.0, 4.5, 1.0, 1.0]
    clipping.set_num_updates(0)
    assert clipping.eval().bound == 1.0
    assert Clipping(5.0).bound == Clipping(5.0).eval().bound == 5.0
    x = torch.tensor([-3.0, 0.5, 2.0])
    assert clipping(x).tolist() == [-1.0, 0.5, 1.0]


@pytest.mark.parametrize("masked", [False, True])
def test_a_layer_is_a_loop_of_clipped_cells(masked: bool, generator: torch.Generator) -> None:
    layer = RecurrentLayer("lstm", 5, 7, clipping=Clipping(0.3)).double()
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(torch.randn(p.shape, generator=generator, dtype=p.dtype))
    inputs = torch.randn(3, 6, 5, generator=generator, dtype=torch.float64)
    mask = torch.zeros(3, 6, dtype=torch.bool)
    if masked:
        mask[1, :4] = mask[2] = True
    found, last = layer(inputs, None, mask if masked else None)
    for row in range(3):
        hidden = cell = torch.zeros(1, 7, dtype=torch.float64)
        for t in range(6):
            if not mask[row, t]:
                zeros = torch.zeros_like(layer.bias)
                hidden, cell = lstm_cell(
                    inputs[row : row + 1, t], (hidden, cell), layer.weight_ih, layer.weight_hh, layer.bias, zeros
                )
                assert cell.abs().max() > 0.3
                cell = cell.clamp(-0.3, 0.3)
                torch.testing.assert_close(found[row, t], hidden[0])
        torch.testing.assert_close(last.cell[row], cell[0])
    generous = RecurrentLayer("lstm", 5, 7, clipping=Clipping(50.0)).double()
    plain = RecurrentLayer("lstm", 5, 7).double()
    plain.load_state_dict(layer.state_dict())
    generous.load_state_dict(layer.state_dict())
    torch.testing.assert_close(generous(inputs, None, mask), plain(inputs, None, mask))


def test_gradients_pass_where_nothing_is_clipped(generator: torch.Generator) -> None:
    layer = RecurrentLayer("lstm", 3, 4, clipping=Clipping(0.2)).double()
    inputs = torch.randn(2, 5, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda x, *_: layer(x)[0], (inputs, *layer.parameters()))


SIZES: dict[str, Any] = {"residual_from": 2, "encoder_layers": 3, "decoder_layers": 3}


def test_a_model_hands_on_clipped_sums_and_logits(generator: torch.Generator) -> None:
    source, before = tokens(generator, 2, 6), targets(generator, 2, 5)
    plain = build(**SIZES)
    generous = build(**SIZES, cell_clip=60.0, logit_clip=1000.0)
    torch.testing.assert_close(generous(source, None, before)[0], plain(source, None, before)[0])
    clipped = build(**SIZES, cell_clip=0.5, logit_clip=1.5)
    encoded = clipped.encoder(source)
    assert plain.encoder(source).memory.abs().max() > 0.5
    assert encoded.memory.abs().max() == 0.5
    assert encoded.state.cell.abs().max() == 0.5
    logits = clipped(source, None, before)[0]
    assert logits.abs().max() == 1.5
    assert float((logits.abs() == 1.5).double().mean()) < 0.9


def test_the_trainer_tells_all_layers_the_update() -> None:
    model = build(**SIZES, cell_clip=8.0, cell_clip_final=1.0, cell_clip_updates=100).train()
    model.set_num_updates(50)
    bounds = {module.bound for module in model.modules() if isinstance(module, Clipping)}
    assert bounds == {4.5}
    assert not any("clipping" in name for name in model.state_dict())
