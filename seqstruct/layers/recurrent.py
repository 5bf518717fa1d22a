"""Stacked recurrent networks, rational (Peng 2022, appendix E.4) or of LSTM, with variational dropout.

States are handed in and out: one segment of a text from the state of the one before gives what one pass over both
does.  Padding belongs on the right, where it cannot reach what stands before it; the state after it means nothing.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqstruct.ops.automata.rational import PATTERNS, rational_initial, rational_recurrence

LSTM = "LSTM"
FORGET_BIAS = 2.0  # gates of 0.88: with 1/2 the last two words are all that a state remembers at first
CELLS = (LSTM, *PATTERNS)  # B, B_max_plus, C and F are the automata of Table 6.2


class RationalLayer(nn.Module):
    """One rational recurrence; gates have a bias, inputs have none (eq. E.2 to E.5).

    Weights are drawn uniformly with variance 1 / input_size.  The biases of forget gates start at forget_bias, those of
    output gates and the logits of F's epsilon arc and final weights at 0.
    """

    def __init__(
        self, automaton: str, input_size: int, hidden_size: int, output_gate: bool, forget_bias: float = FORGET_BIAS
    ):
        super().__init__()
        self.automaton, self.hidden_size = automaton, hidden_size
        self.projections = 2 * PATTERNS[automaton] + output_gate
        bound = (3 / input_size) ** 0.5
        self.weight = nn.Parameter(torch.empty(self.projections * hidden_size, input_size).uniform_(-bound, bound))
        self.gate_bias = nn.Parameter(torch.zeros(PATTERNS[automaton] + output_gate, hidden_size))
        with torch.no_grad():
            self.gate_bias[: PATTERNS[automaton]] = forget_bias
        final = automaton == "F"
        self.final_logits = nn.Parameter(torch.zeros(2, hidden_size)) if final else None
        self.epsilon_logits = nn.Parameter(torch.zeros(hidden_size)) if final else None

    def initial_state(self, batch_size: int) -> Tensor:
        """B J d, before any word."""
        return rational_initial(self.automaton, batch_size, self.hidden_size, self.gate_bias)

    def project(self, inputs: Tensor) -> Tensor:
        """What `rational_recurrence` takes, * K d, for inputs * C."""
        bias = self.gate_bias.new_zeros(self.projections, self.hidden_size)
        bias[::2] = self.gate_bias
        return F.linear(inputs, self.weight, bias.flatten()).unflatten(-1, (self.projections, self.hidden_size))

    def forward(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden states B T d for inputs B T C, and the state after the last step."""
        found = rational_recurrence(
            self.automaton, self.project(inputs), state,
            final_logits=self.final_logits, epsilon_logits=self.epsilon_logits,
        )  # fmt: skip
        return found.hidden, found.state


class LSTMLayer(nn.Module):
    """An LSTM with one bias, weights drawn as torch does; the bias starts at 0, that of forget gates at forget_bias."""

    def __init__(self, input_size: int, hidden_size: int, forget_bias: float = FORGET_BIAS):
        super().__init__()
        self.hidden_size = hidden_size
        bound = hidden_size**-0.5
        self.weight_ih = nn.Parameter(torch.empty(4 * hidden_size, input_size).uniform_(-bound, bound))
        self.weight_hh = nn.Parameter(torch.empty(4 * hidden_size, hidden_size).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(4 * hidden_size))
        with torch.no_grad():
            self.bias[hidden_size : 2 * hidden_size] = forget_bias

    def initial_state(self, batch_size: int) -> tuple[Tensor, Tensor]:
        """Hidden state and cell, B d each, zeros."""
        zeros = self.bias.new_zeros(batch_size, self.hidden_size)
        return zeros, zeros

    def forward(self, inputs: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Hidden states B T d for inputs B T C, and the state after the last step."""
        if not inputs.size(1):
            return inputs.new_zeros(inputs.size(0), 0, self.hidden_size), state
        parameters = [self.weight_ih, self.weight_hh, self.bias, torch.zeros_like(self.bias)]
        before = tuple(part.unsqueeze(0).contiguous() for part in state)
        hidden, last, cell = torch.lstm(inputs, before, parameters, True, 1, 0.0, self.training, False, True)
        return hidden, (last[0], cell[0])


class StackedRNN(nn.Module):
    """Layers of one size, each reading the hidden states of the one below."""

    def __init__(
        self,
        cell: str,
        layers: int,
        input_size: int,
        hidden_size: int,
        *,
        output_gate: bool,
        dropout: float = 0.0,
        variational_dropout: float = 0.0,
        forget_bias: float = FORGET_BIAS,
    ):
        """cell: one of `CELLS`.  output_gate: of rational cells; an LSTM always has its own.

        dropout: of hidden states on their way to the next layer.  variational_dropout: of each layer's inputs, with one
        mask for all steps.  forget_bias: of forget gates at the start.  Raises ValueError on an unknown cell, sizes
        below 1, rates outside 0 <= p < 1 and a bias that is not finite.
        """
        super().__init__()
        if cell not in CELLS:
            raise ValueError(f"expected a cell of {', '.join(CELLS)}, got {cell!r}")
        for name, size in (("layers", layers), ("hidden_size", hidden_size), ("input_size", input_size)):
            if size < 1:
                raise ValueError(f"{name}: expected 1 or more, got {size}")
        for name, rate in (("dropout", dropout), ("variational_dropout", variational_dropout)):
            check_rate(name, rate)
        if not math.isfinite(forget_bias):
            raise ValueError(f"forget_bias: expected a finite number, got {forget_bias}")
        self.dropout, self.variational_dropout = dropout, variational_dropout
        self.layers = nn.ModuleList()
        for layer in range(layers):
            size = hidden_size if layer else input_size
            self.layers.append(
                LSTMLayer(size, hidden_size, forget_bias) if cell == LSTM
                else RationalLayer(cell, size, hidden_size, output_gate, forget_bias)
            )  # fmt: skip

    def initial_state(self, batch_size: int) -> tuple[Any, ...]:
        """Of each layer, before any word."""
        return tuple(layer.initial_state(batch_size) for layer in self.layers)

    def forward(self, inputs: Tensor, state: tuple[Any, ...]) -> tuple[Tensor, tuple[Any, ...]]:
        """Hidden states B T d of the last layer for inputs B T C, and the states after the last step."""
        hidden, states = inputs, []
        for number, (layer, before) in enumerate(zip(self.layers, state, strict=True)):
            if number:
                hidden = F.dropout(hidden, self.dropout, self.training)
            hidden, after = layer(variational_dropout(hidden, self.variational_dropout, self.training), before)
            states.append(after)
        return hidden, tuple(states)


def variational_dropout(inputs: Tensor, rate: float, training: bool) -> Tensor:
    """Dropout of B T C with one mask for all steps (Gal and Ghahramani 2016)."""
    if not training or not rate:
        return inputs
    return inputs * F.dropout(inputs.new_ones(inputs.size(0), 1, inputs.size(2)), rate)


def check_rate(name: str, rate: float) -> None:
    """Raise ValueError unless 0 <= rate < 1."""
    if not 0 <= rate < 1:
        raise ValueError(f"{name}: expected 0 or more and below 1, got {rate}")


def recurrent_parameters(cell: str, input_size: int, hidden_size: int, output_gate: bool) -> int:
    """How many parameters a layer has."""
    if cell == LSTM:
        return 4 * hidden_size * (input_size + hidden_size + 1)
    patterns = PATTERNS[cell]
    return hidden_size * (
        (2 * patterns + output_gate) * input_size + patterns + output_gate + (3 if cell == "F" else 0)
    )
