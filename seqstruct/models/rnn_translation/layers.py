"""Recurrent layers of translation models: a sequence in one fused pass, or step by step where an input depends on the
step before.

A state is a `CellState`, handed in and out.  Padding stands on the left, before the first step, where the state is
zero: it leaves the zero state alone, so the states at real tokens are those of the sentence by itself.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqstruct.models.rnn_translation.clipping import Clipping
from seqstruct.ops.cells.gru import GRUSteps, gru_sequence
from seqstruct.ops.cells.lstm import LSTMSteps

GATES = {"lstm": 4, "gru": 3}
CLOSED = 1e4  # in nats of log-odds; the logistic function of its negative is exactly 0 in every floating type


class CellState(NamedTuple):
    """hidden: B h.  cell: B h for an LSTM, B 0 for a GRU."""

    hidden: Tensor
    cell: Tensor


Step = Callable[[int, Tensor, CellState], CellState]


class RecurrentLayer(nn.Module):
    """One layer of an LSTM or GRU, left to right.

    weight_ih: g x inputs; weight_hh: g x h; bias: g, with g = 4h or 3h rows in the order of torch.  A GRU has one more
    bias, of h, inside the candidate's recurrent part, as in torch.
    """

    def __init__(self, kind: str, input_size: int, hidden_size: int, clipping: Clipping | None = None):
        """kind: "lstm" or "gru".  clipping: of an LSTM's cells; each step is then a step of Python.

        Raises ValueError on another kind, a size below 1, or clipping of a GRU, whose states cannot grow.
        """
        super().__init__()
        if clipping is not None and kind != "lstm":
            raise ValueError(f"clipping is of the cells of an lstm, not of a {kind}")
        if kind not in GATES:
            raise ValueError(f"expected a cell among {', '.join(GATES)}, got {kind!r}")
        if input_size < 1 or hidden_size < 1:
            raise ValueError(f"expected sizes of 1 or more, got {input_size} and {hidden_size}")
        self.kind, self.input_size, self.hidden_size = kind, input_size, hidden_size
        self.clipping = clipping
        rows, bound = GATES[kind] * hidden_size, hidden_size**-0.5
        self.weight_ih = nn.Parameter(torch.empty(rows, input_size).uniform_(-bound, bound))
        self.weight_hh = nn.Parameter(torch.empty(rows, hidden_size).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(rows).uniform_(-bound, bound))
        if kind == "gru":
            self.bias_hn = nn.Parameter(torch.empty(hidden_size).uniform_(-bound, bound))

    def initial_state(self, batch_size: int) -> CellState:
        """Zeros."""
        zeros = self.bias.new_zeros(batch_size, self.hidden_size)
        return CellState(zeros, zeros if self.kind == "lstm" else zeros[:, :0])

    def forward(
        self, inputs: Tensor, state: CellState | None = None, padding_mask: Tensor | None = None
    ) -> tuple[Tensor, CellState]:
        """Hidden states B T h and the last state, from inputs B T input_size.

        state: before the first step, zeros if None.  padding_mask: B T bool, True = padding, all of it on the left, and
        only from the zero state; None if there is none.
        """
        if state is None:
            state = self.initial_state(len(inputs))
        if inputs.size(1) == 0 or self.clipping is not None:
            return run_steps(self, inputs, state, padding_mask)
        if self.kind == "gru":
            gates = F.linear(inputs, self.weight_ih, self.bias)
            if padding_mask is not None:
                gates = gates + padding_mask[..., None].to(gates.dtype) * self.closing()
            hiddens = gru_sequence(gates, state.hidden, self.weight_hh, self.hidden_bias())
            return hiddens, CellState(hiddens[:, -1], state.cell)
        if inputs.size(1) == 1 and padding_mask is None:
            last = self.stepper(inputs, 0)(0, inputs[:, 0, :0], state)
            return last.hidden[:, None], last
        weight_ih = self.weight_ih
        if padding_mask is not None:
            inputs = torch.cat([inputs, padding_mask[..., None].to(inputs.dtype)], 2)
            weight_ih = torch.cat([weight_ih, self.closing()[:, None]], 1)
        parameters = [weight_ih, self.weight_hh, self.bias, torch.zeros_like(self.bias)]
        before = state.hidden[None].contiguous(), state.cell[None].contiguous()
        hiddens, hidden, cell = torch.lstm(inputs, before, parameters, True, 1, 0.0, self.training, False, True)
        return hiddens, CellState(hidden[0], cell[0])

    def closing(self) -> Tensor:
        """What padding adds to the gates, g, so that a zero state stays zero."""
        rows = self.bias.new_zeros(len(self.bias))
        if self.kind == "lstm":
            rows[: self.hidden_size] = -CLOSED  # the input gate
        else:
            rows[self.hidden_size : 2 * self.hidden_size] = CLOSED  # the update gate
        return rows

    def hidden_bias(self) -> Tensor:
        """What a GRU's hidden side adds to the gates, 3h."""
        return torch.cat([self.bias.new_zeros(2 * self.hidden_size), self.bias_hn])

    def stepper(self, inputs: Tensor, extra: int, padding_mask: Tensor | None = None) -> Step:
        """step(t, more, state) -> state for t = 0, 1, ..., each once; `more` B extra are the last inputs of step t.

        inputs: B T (input_size - extra), those known beforehand, projected for all steps at once.  padding_mask: as
        `forward` has it.
        """
        known, of_extra = self.weight_ih.split([self.input_size - extra, extra], 1)
        projected = F.linear(inputs, known, self.bias)
        if padding_mask is not None:
            projected = projected + padding_mask[..., None].to(projected.dtype) * self.closing()
        if self.kind == "lstm":
            lstm_steps = LSTMSteps(projected, torch.cat([of_extra, self.weight_hh], 1).t())

            def lstm(t: int, more: Tensor, state: CellState) -> CellState:
                hidden, cell = lstm_steps(t, more, *state)
                return CellState(hidden, cell if self.clipping is None else self.clipping(cell))

            return lstm
        gru_steps = GRUSteps(projected, of_extra.t(), self.weight_hh, self.hidden_bias())
        return lambda t, more, state: CellState(gru_steps(t, more, state.hidden), state.cell)


def run_steps(
    layer: Any, inputs: Tensor, state: CellState, padding_mask: Tensor | None = None
) -> tuple[Tensor, CellState]:
    """Hidden states B T h and the last state, step by step through a layer's `stepper`."""
    hiddens = [inputs.new_zeros(len(inputs), 0, layer.hidden_size)]
    if inputs.size(1):
        step, nothing = layer.stepper(inputs, 0, padding_mask), inputs[:, 0, :0]
        for t in range(inputs.size(1)):
            state = step(t, nothing, state)
            hiddens.append(state.hidden[:, None])
    return torch.cat(hiddens, 1), state


def joined(states: list[CellState]) -> CellState:
    """The states of several layers in one, hidden B (L h) and cell B (L h or 0)."""
    return CellState(*(torch.cat(parts, 1) for parts in zip(*states, strict=True)))


def separated(state: CellState, layers: int) -> list[CellState]:
    """The states of single layers out of a joint one."""
    hidden, cell = (part.chunk(layers, 1) if part.size(1) else [part] * layers for part in state)
    return [CellState(*parts) for parts in zip(hidden, cell, strict=True)]
