"""Layers of LSTMs and GRUs, and stacks of recurrent layers.

States are handed in and out: one segment of a text from the state of the one before gives what one pass over both
does.  A layer goes over a whole sequence at once, or step by step where an input depends on the step before.
Padding on the right cannot reach what stands before it, and the state after it means nothing; padding on the left of
the first step, which a mask tells of, leaves the zero state alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from seqstruct.ops.cells import gru_step, lstm_sequence, lstm_step
from seqstruct.ops.dropout import drop
from seqstruct.ops.linear import linear

GATES = {"lstm": 4, "gru": 3}
CLOSED = 1e4  # in nats of log-odds; the logistic function of its negative is exactly 0 in every floating type


class CellState(NamedTuple):
    """hidden: B h.  cell: B h for an LSTM, B 0 for a GRU."""

    hidden: Tensor
    cell: Tensor


Step = Callable[[Tensor, Tensor, CellState], CellState]


class GatedLayer(nn.Module):
    """Weights of a layer whose gates are linear in its input and its last hidden state, drawn as torch does.

    weight_ih: rows x inputs; weight_hh: rows x h; bias: rows, of a subclass, where torch has two, which only add up.
    """

    bias: nn.Parameter

    def __init__(self, input_size: int, hidden_size: int, rows: int, weight_dropout: float = 0.0):
        """weight_dropout: probability, of recurrent weights, one mask for a segment (Merity et al. 2018, sec. 2).

        Raises ValueError on a size below 1.
        """
        super().__init__()
        if input_size < 1 or hidden_size < 1:
            raise ValueError(f"expected sizes of 1 or more, got {input_size} and {hidden_size}")
        self.input_size, self.hidden_size, self.weight_dropout = input_size, hidden_size, weight_dropout
        self.weight_ih, self.weight_hh = self.drawn(rows, input_size), self.drawn(rows, hidden_size)

    def drawn(self, *shape: int) -> nn.Parameter:
        """Uniform within 1 / sqrt(h)."""
        bound = self.hidden_size**-0.5
        return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))

    def initial_state(self, batch_size: int) -> CellState:
        """Zeros for each row, the hidden state first."""
        zeros = self.weight_hh.new_zeros(batch_size, self.hidden_size)
        return CellState(zeros, zeros)

    def recurrent_weight(self) -> Tensor:
        """rows x h, in training with dropout."""
        return drop(self.weight_hh, self.weight_dropout, self.training)


class RecurrentLayer(GatedLayer):
    """One layer of an LSTM or GRU, left to right, with g = 4h or 3h rows in the order of torch.

    A GRU has one more bias, bias_hn of h, inside the candidate's recurrent part, as in torch.
    """

    def __init__(
        self,
        kind: str,
        input_size: int,
        hidden_size: int,
        *,
        forget_bias: float | None = None,
        weight_dropout: float = 0.0,
        clipping: nn.Module | None = None,
    ):
        """kind: "lstm" or "gru".  forget_bias: of an LSTM's forget gates at the start, with 0 for the others; None
        for biases that are drawn.  clipping: of an LSTM's cells; each step is then a step of Python.

        Raises ValueError on another kind, a size below 1, or clipping of a GRU, whose states cannot grow.
        """
        if clipping is not None and kind != "lstm":
            raise ValueError(f"clipping is of the cells of an lstm, not of a {kind}")
        if kind not in GATES:
            raise ValueError(f"expected a cell among {', '.join(GATES)}, got {kind!r}")
        rows = GATES[kind] * hidden_size
        super().__init__(input_size, hidden_size, rows, weight_dropout)
        self.kind, self.clipping = kind, clipping
        if forget_bias is None:
            self.bias = self.drawn(rows)
        else:
            self.bias = nn.Parameter(torch.zeros(rows))
            nn.init.constant_(self.bias[hidden_size : 2 * hidden_size], forget_bias)
        if kind == "gru":
            self.bias_hn = self.drawn(hidden_size)

    def initial_state(self, batch_size: int) -> CellState:
        hidden, cell = super().initial_state(batch_size)
        return CellState(hidden, cell if self.kind == "lstm" else cell[:, :0])

    def forward(
        self, inputs: Tensor, state: tuple[Tensor, Tensor] | None = None, padding_mask: Tensor | None = None
    ) -> tuple[Tensor, CellState]:
        """Hidden states B T h and the last state, from inputs B T input_size.

        state: before the first step, zeros if None.  padding_mask: B T bool, True = padding, all of it on the left, and
        only from the zero state; None if there is none.
        """
        state = self.initial_state(len(inputs)) if state is None else CellState(*state)
        if self.kind == "gru" or self.clipping is not None:
            return run_steps(self, inputs, state, padding_mask)
        weight_ih = self.weight_ih
        if padding_mask is not None:
            inputs = torch.cat([inputs, padding_mask[..., None].to(inputs.dtype)], 2)
            weight_ih = torch.cat([weight_ih, self.closing()[:, None]], 1)
        hiddens, *last = lstm_sequence(inputs, *state, weight_ih, self.recurrent_weight(), self.bias)
        return hiddens, CellState(*last)

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

    def known(self, inputs: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """What the first inputs, those known before a step, add to the gates: B T g for B T n; n may be 0.

        padding_mask: as `forward` has it.
        """
        gates = linear(inputs, self.weight_ih[:, : inputs.size(2)], self.bias)
        return gates if padding_mask is None else gates + padding_mask[..., None].to(gates.dtype) * self.closing()

    def stepper(self, late: int) -> Step:
        """step(known, more, state) -> state: known B g of `known`, more B late, the last inputs, state before the step.

        A step holds what it arranged of the weights, and is good as long as `version` is the same.  Under autocast it
        is calculated in the weights' own type.
        """
        of_late, of_hidden = self.weight_ih[:, self.input_size - late :], self.recurrent_weight()
        if self.kind == "gru":
            step = self._gru(of_late.t(), of_hidden.t(), self.hidden_bias())
        else:
            step = self._lstm(torch.cat([of_late, of_hidden], 1).t() if late else of_hidden.t())
        return _outside_autocast(step, of_hidden.dtype)

    def version(self) -> tuple[Any, ...]:
        """Another one whenever a weight is written or replaced, or gradients are wanted or no longer so."""
        weights = [self.weight_ih, self.weight_hh, *([self.bias_hn] if self.kind == "gru" else [])]
        written = [(weight.data_ptr(), 0 if weight.is_inference() else weight._version) for weight in weights]
        return torch.is_grad_enabled(), self.training, *written

    def _lstm(self, weight: Tensor) -> Step:
        def step(known: Tensor, more: Tensor, state: CellState) -> CellState:
            before = torch.cat([more, state.hidden], 1) if more.size(1) else state.hidden
            hidden, cell = lstm_step(torch.addmm(known, before, weight), state.cell)
            return CellState(hidden, cell if self.clipping is None else self.clipping(cell))

        return step

    def _gru(self, of_late: Tensor, weight: Tensor, bias: Tensor) -> Step:
        def step(known: Tensor, more: Tensor, state: CellState) -> CellState:
            given = torch.addmm(known, more, of_late) if more.size(1) else known
            return state._replace(hidden=gru_step(given, torch.addmm(bias, state.hidden, weight), state.hidden))

        return step


def _outside_autocast(step: Step, dtype: torch.dtype) -> Step:
    def exact(known: Tensor, more: Tensor, state: CellState) -> CellState:
        device = state.hidden.device.type
        if not torch.is_autocast_enabled(device):
            return step(known, more, state)
        with torch.autocast(device, enabled=False):  # an encoder's pass by oneDNN or cuDNN leaves states of half types
            return step(known.to(dtype), more.to(dtype), CellState(*(x.to(dtype) for x in state)))

    return exact


def run_steps(layer: Any, inputs: Tensor, state: CellState, padding_mask: Tensor | None) -> tuple[Tensor, CellState]:
    """Hidden states B T h and the last state, step by step through a layer's `known` and `stepper`."""
    step, hiddens, nothing = layer.stepper(0), [], inputs[:, :0, 0]
    for known in layer.known(inputs, padding_mask).unbind(1):
        state = step(known, nothing, state)
        hiddens.append(state.hidden)
    return torch.stack(hiddens, 1) if hiddens else inputs.new_zeros(len(inputs), 0, layer.hidden_size), state


class SimpleLayer(nn.RNN):
    """One layer of a tanh RNN (Elman 1990), torch's, left to right; its state is B h."""

    def __init__(self, input_size: int, hidden_size: int):
        super().__init__(input_size, hidden_size, batch_first=True)

    def initial_state(self, batch_size: int) -> Tensor:
        """Zeros for each row."""
        return self.bias_hh_l0.new_zeros(batch_size, self.hidden_size)

    def forward(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden states B T h for inputs B T input_size, and the state after the last step."""
        if inputs.size(1) == 0:
            return inputs.new_zeros(len(inputs), 0, self.hidden_size), state
        hiddens, last = super().forward(inputs, state[None])
        return hiddens, last[0]


def joined(states: list[CellState]) -> CellState:
    """The states of several layers in one, hidden B (L h) and cell B (L h or 0)."""
    return CellState(*(torch.cat(parts, 1) for parts in zip(*states, strict=True)))


def separated(state: CellState, layers: int) -> list[CellState]:
    """The states of single layers out of a joint one."""
    hidden, cell = (part.chunk(layers, 1) if part.size(1) else [part] * layers for part in state)
    return [CellState(*parts) for parts in zip(hidden, cell, strict=True)]


class RecurrentStack(nn.Module):
    """Layers, each of which reads the hidden states of the one below.

    A layer has `initial_state(B)` and forward(inputs, state) -> (hidden B T D, state after the last step), and may add
    to these further output by name.
    """

    def __init__(
        self,
        layers: Iterable[nn.Module],
        *,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        hidden_dropout: float = 0.0,
    ):
        """dropout: of hidden states on their way to the next layer.

        input_dropout, hidden_dropout: of the inputs of the first layer and of those of the others, with one mask for
        all steps.  Raises ValueError on a rate outside 0 <= p < 1.
        """
        super().__init__()
        for name, rate in (("dropout", dropout), ("input", input_dropout), ("hidden", hidden_dropout)):
            check_rate(name, rate)
        self.layers = nn.ModuleList(layers)
        self.dropout, self.input_dropout, self.hidden_dropout = dropout, input_dropout, hidden_dropout

    def initial_state(self, batch_size: int) -> tuple[Any, ...]:
        """Of each layer, at the start of a text."""
        return tuple(layer.initial_state(batch_size) for layer in self.layers)

    def forward(self, inputs: Tensor, state: tuple[Any, ...]) -> tuple[Tensor, tuple[Any, ...], dict[str, Any]]:
        """Hidden states B T D of the last layer, the states after the last step, and what the layers gave beside.

        Further output of layer k is under "k.name", k from 0.
        """
        hidden, states, extra = inputs, [], {}
        for number, (layer, before) in enumerate(zip(self.layers, state, strict=True)):
            if number:
                hidden = drop(hidden, self.dropout, self.training)
            rate = self.hidden_dropout if number else self.input_dropout
            hidden, after, *further = layer(variational_dropout(hidden, rate, self.training), before)
            states.append(after)
            extra.update({f"{number}.{name}": value for found in further for name, value in found.items()})
        return hidden, tuple(states), extra


def variational_dropout(inputs: Tensor, rate: float, training: bool) -> Tensor:
    """Dropout of B T C with one mask for all steps (Gal and Ghahramani 2016)."""
    if not training or not rate:
        return inputs
    return inputs * drop(inputs.new_ones(inputs.size(0), 1, inputs.size(2)), rate)


def check_sizes(**sizes: int) -> None:
    """Raise ValueError, naming it, if one is below 1."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name}: expected 1 or more, got {size}")


def check_rate(name: str, rate: float) -> None:
    """Raise ValueError unless 0 <= rate < 1."""
    if not 0 <= rate < 1:
        raise ValueError(f"{name}: expected 0 or more and below 1, got {rate}")
