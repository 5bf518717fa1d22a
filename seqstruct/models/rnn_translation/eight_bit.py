"""Recurrent translation with 8-bit weight matrices in decoding (Wu et al. 2016, sec. 6).

A matrix W is kept as integers and one float for each row:

    s_i = max_j |W_ij|,   WQ_ij = round(127 W_ij / s_i)                                                   (eq. 13)

and multiplied by PyTorch's dynamic quantisation, which also turns the other factor into 8-bit integers with one scale
for the whole batch at hand: a sentence's scores depend a little on those decoded beside it.  Quantised are the
recurrent layers, the output and the vocabulary's layer; embeddings, attention and the pyramid of gated convolutions are
not.  Deviation: cells and all that is computed element by element stay 32-bit floats, where the source has 16-bit
integers.  On a CPU.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn

from seqstruct.layers.recurrent import CellState, RecurrentLayer, Step, run_steps
from seqstruct.models.rnn_translation.model import RecurrentTranslationModel
from seqstruct.ops.cells import gru_step, lstm_step

LARGEST = 127.0


def scales(weight: Tensor) -> Tensor:
    """s / 127 for each row of a matrix; 1 for a row of zeros."""
    largest = weight.abs().amax(1) / LARGEST
    return largest.where(largest > 0, 1.0)


class EightBitLinear(nn.Module):
    """x W^T + b in evaluation, for a float32 matrix W, rows x columns."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None):
        super().__init__()
        self.in_features, self.out_features = weight.size(1), weight.size(0)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="torch.quantize_per_tensor, torch.quantize_per_channel")
            weight = weight.detach().float()
            zeros = torch.zeros(len(weight), dtype=torch.long)
            integers = torch.quantize_per_channel(weight, scales(weight).double(), zeros, 0, torch.qint8)
            self.packed = torch.ops.quantized.linear_prepack(integers, None if bias is None else bias.detach().float())

    def forward(self, x: Tensor) -> Tensor:
        """... rows for x ... columns."""
        return torch.ops.quantized.linear_dynamic(x.contiguous(), self.packed, True)


class EightBitLayer(nn.Module):
    """A `RecurrentLayer` in evaluation, with its interface."""

    def __init__(self, layer: RecurrentLayer):
        super().__init__()
        self.kind, self.input_size, self.hidden_size = layer.kind, layer.input_size, layer.hidden_size
        self.clipping = layer.clipping
        self.of_inputs = EightBitLinear(layer.weight_ih, layer.bias)
        self.of_hidden = EightBitLinear(layer.weight_hh, layer.hidden_bias() if layer.kind == "gru" else None)
        self.register_buffer("closing", layer.closing())

    def initial_state(self, batch_size: int) -> CellState:
        zeros = self.closing.new_zeros(batch_size, self.hidden_size)
        return CellState(zeros, zeros if self.kind == "lstm" else zeros[:, :0])

    def forward(
        self, inputs: Tensor, state: CellState | None = None, padding_mask: Tensor | None = None
    ) -> tuple[Tensor, CellState]:
        """Hidden states B T h and the last state, from inputs B T input_size; see `RecurrentLayer`."""
        return run_steps(self, inputs, self.initial_state(len(inputs)) if state is None else state, padding_mask)

    def known(self, inputs: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """What inputs add to the gates, B T g; if they are not all, themselves, to be quantised with the others."""
        if inputs.size(2) < self.input_size:
            return inputs
        gates = self.of_inputs(inputs)
        return gates if padding_mask is None else gates + padding_mask[..., None].to(gates.dtype) * self.closing

    def stepper(self, late: int) -> Step:
        """step(known, more, state) -> state; see `RecurrentLayer`."""

        def step(known: Tensor, more: Tensor, state: CellState) -> CellState:
            gates = self.of_inputs(torch.cat([known, more], 1)) if late else known
            recurrent = self.of_hidden(state.hidden)
            if self.kind == "gru":
                return CellState(gru_step(gates, recurrent, state.hidden), state.cell)
            hidden, cell = lstm_step(gates + recurrent, state.cell)
            return CellState(hidden, cell if self.clipping is None else self.clipping(cell))

        return step

    def version(self) -> None:
        """None: 8-bit weights stay as they are."""


def quantize(model: Any) -> None:
    """Replace the matrices of a recurrent translation model by 8-bit ones, in place; a second call changes nothing.

    Raises ValueError unless it is such a model, in evaluation mode, of float32 and on the CPU.
    """
    if not isinstance(model, RecurrentTranslationModel):
        raise ValueError(f"8-bit inference is for models of rnn_translation, not {type(model).__name__}")
    parameter = model.decoder.embed_tokens.weight
    if model.training or parameter.dtype != torch.float32 or parameter.device.type != "cpu":
        raise ValueError("8-bit inference is for decoding, on a CPU and from 32-bit floats (see --cpu)")
    for part in (model.encoder, model.decoder):
        for holder in list(part.modules()):
            for name, child in list(holder.named_children()):
                if isinstance(child, RecurrentLayer):
                    setattr(holder, name, EightBitLayer(child))
    for holder in (model.decoder, model.decoder.output):
        for name in ("output_projection", "combination"):
            child = getattr(holder, name, None)
            if isinstance(child, nn.Linear):
                setattr(holder, name, EightBitLinear(child.weight, child.bias))
