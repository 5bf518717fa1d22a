"""Rational recurrences (Peng 2022, appendix E.4) as layers, and stacks of them, of LSTMs, GRUs or tanh RNNs."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from seqstruct.layers.recurrent import RecurrentLayer, RecurrentStack, SimpleLayer, check_rate, check_sizes
from seqstruct.ops.automata import PATTERNS, rational_initial, rational_recurrence
from seqstruct.ops.linear import linear

LSTM, GRU, RNN = "LSTM", "GRU", "RNN"
FORGET_BIAS = 2.0  # gates of 0.88: with 1/2 the last two words are all that a state remembers at first
INPUT_WEIGHTS = {"weight", "weight_ih", "weight_ih_l0"}  # of rational layers, LSTM and GRU, tanh RNNs
CELLS = (LSTM, GRU, RNN, *PATTERNS)  # B, B_max_plus, C and F are the automata of Table 6.2


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
        return linear(inputs, self.weight, bias.flatten()).unflatten(-1, (self.projections, self.hidden_size))

    def forward(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden states B T d for inputs B T C, and the state after the last step."""
        found = rational_recurrence(
            self.automaton, self.project(inputs), state,
            final_logits=self.final_logits, epsilon_logits=self.epsilon_logits,
        )
        return found.hidden, found.state


def stack_of(
    cell: str,
    layers: int,
    input_size: int,
    hidden_size: int,
    *,
    output_gate: bool,
    dropout: float = 0.0,
    variational_dropout: float = 0.0,
    forget_bias: float = FORGET_BIAS,
    input_deviation: float = 1.0,
) -> RecurrentStack:
    """Layers of one size.  cell: one of `CELLS`.  output_gate: of rational cells; others have none to choose.

    dropout: of hidden states on their way to the next layer.  variational_dropout: of each layer's inputs, with one
    mask for all steps.  forget_bias: of forget gates at the start, of a GRU's update gates.  input_deviation: of the
    first layer's inputs, by which its input weights are divided at the start.  Raises ValueError on an unknown cell,
    sizes below 1, rates outside 0 <= p < 1, a bias that is not finite and a deviation that is not above 0.
    """
    if cell not in CELLS:
        raise ValueError(f"expected a cell of {', '.join(CELLS)}, got {cell!r}")
    check_sizes(layers=layers, hidden_size=hidden_size, input_size=input_size)
    check_rate("variational_dropout", variational_dropout)
    if not math.isfinite(forget_bias):
        raise ValueError(f"forget_bias: expected a finite number, got {forget_bias}")
    if not 0 < input_deviation < math.inf:
        raise ValueError(f"input_deviation: expected a finite number above 0, got {input_deviation}")

    def layer(size: int) -> nn.Module:
        if cell in (LSTM, GRU):
            return RecurrentLayer(cell.lower(), size, hidden_size, forget_bias=forget_bias)
        if cell == RNN:
            return SimpleLayer(size, hidden_size)
        return RationalLayer(cell, size, hidden_size, output_gate, forget_bias)

    first, *others = map(layer, [input_size, *[hidden_size] * (layers - 1)])
    with torch.no_grad():
        for name in INPUT_WEIGHTS & dict(first.named_parameters()).keys():
            first.get_parameter(name).div_(input_deviation)
    return RecurrentStack(
        [first, *others], dropout=dropout, input_dropout=variational_dropout, hidden_dropout=variational_dropout
    )


def recurrent_parameters(cell: str, input_size: int, hidden_size: int, output_gate: bool) -> int:
    """How many parameters a layer has."""
    with torch.device("meta"):
        layer = stack_of(cell, 1, input_size, hidden_size, output_gate=output_gate)
    return sum(x.numel() for x in layer.parameters())
