"""LSTM networks with a stack (DuSell and Chiang 2024, appendix D.1), of one layer.

At each step the LSTM reads the input beside the reading of the stack before the step; the stack's actions and the
vector to push come from the new hidden state by linear layers with bias.  With `nondeterministic_stack` this is the
vector RNS-RNN.  The stacks are those of the attention mechanisms of the same names, with their options.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqstruct.attention import Choice, Site, parse_choices
from seqstruct.layers.recurrent import GatedLayer
from seqstruct.ops import pushdown, superposition
from seqstruct.ops.cells import StackTape, lstm_sequence, lstm_step, stack_lstm
from seqstruct.ops.linear import linear
from seqstruct.ops.masking import fails
from seqstruct.ops.pushdown import (
    LARGEST_READING,
    pushdown_initial,
    pushdown_reading,
    pushdown_step,
    pushdown_tape,
    pushed_vectors,
    transition_count,
)
from seqstruct.ops.superposition import ACTIONS, SuperpositionTape, superposition_stack_step
from seqstruct.ops.symbols import whole_numbers


class StackLSTMState(NamedTuple):
    """hidden, cell: B h.  stack: the stack's own state, batch first.  length: B long, the number of steps taken."""

    hidden: Tensor
    cell: Tensor
    stack: Any
    length: Tensor


class StackController(nn.Module):
    """Linear layers from the hidden state to a stack's actions and to the vector to push, and the stack's steps."""

    def __init__(self, hidden_size: int, actions: int, size: int, sigmoid: bool):
        """actions: numbers that choose an action; size: of a pushed vector; sigmoid: whether it is squashed."""
        super().__init__()
        self.action_layer = nn.Linear(hidden_size, actions)
        self.pushed_layer = nn.Linear(hidden_size, size)
        self.sigmoid = sigmoid

    def controls(self) -> tuple[Tensor, Tensor]:
        """Weight (actions + size) h and bias of both layers in one."""
        layers = self.action_layer, self.pushed_layer
        return torch.cat([layer.weight for layer in layers]), torch.cat([layer.bias for layer in layers])

    def split(self, controls: Tensor) -> tuple[Tensor, Tensor]:
        """Actions and pushed vectors, before any nonlinearity, of the layers' joint output."""
        return controls.split([self.action_layer.out_features, self.pushed_layer.out_features], 1)


class SuperpositionController(StackController):
    """The superposition stack; its state is B h m, row 0 the top."""

    def __init__(self, hidden_size: int, config: Any):
        super().__init__(hidden_size, ACTIONS, config.size, config.sigmoid)
        self.reading_size = config.size

    def orders(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Which control and which part of a reading stands where in those of a tape, 3+m and m long."""
        size = self.reading_size
        return superposition.control_order(size, device), torch.arange(size, device=device)

    def start(self, batch_size: int) -> Tensor:
        """What a tape starts from: the empty stack, B 0 m."""
        return self.pushed_layer.weight.new_zeros(batch_size, 0, self.reading_size)

    def tape(self, start: Tensor, steps: int) -> SuperpositionTape:
        return SuperpositionTape(start, steps, sigmoid=self.sigmoid)

    def initial(self, batch_size: int) -> Tensor:
        """The empty stack, which reads zeros."""
        return self.pushed_layer.weight.new_zeros(batch_size, 1, self.reading_size)

    def read(self, stack: Tensor) -> Tensor:
        """The top, B m."""
        return stack[:, 0]

    def step(self, stack: Tensor, controls: Tensor) -> Tensor:
        actions, pushed = self.split(controls)
        return superposition_stack_step(stack, actions.softmax(1), pushed.sigmoid() if self.sigmoid else pushed)


class NondeterministicController(StackController):
    """The nondeterministic stack; its state is a `PushdownState`."""

    def __init__(self, hidden_size: int, config: Any):
        super().__init__(hidden_size, transition_count(config.states, config.symbols), config.size, config.sigmoid)
        self.sizes = {"states": config.states, "symbols": config.symbols}
        self.max_length = config.max_length
        self.bottom = nn.Parameter(torch.empty(config.size).uniform_(-0.1, 0.1))
        self.reading_size = config.states * config.symbols * config.size

    def orders(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """As of the superposition stack, A+m and QSm long."""
        sizes = *self.sizes.values(), self.bottom.size(0)
        return pushdown.step_order(*sizes, device), pushdown.reading_order(*sizes, device)

    def start(self, batch_size: int) -> Tensor:
        """What a tape starts from: the bottom vectors, B m."""
        return self.bottom.sigmoid().expand(batch_size, -1)

    def tape(self, start: Tensor, steps: int) -> StackTape:
        """A number of steps at once.  Raises ValueError if they are more than max_length."""
        if steps > self.max_length:
            raise ValueError(f"the stack was made for at most {self.max_length} steps (max_length), not for {steps}")
        return pushdown_tape(start, steps, sigmoid=self.sigmoid, **self.sizes)

    def initial(self, batch_size: int) -> Any:
        """The bottom element alone, in state 0."""
        return pushdown_initial(self.bottom.sigmoid().double(), batch_size, max_length=self.max_length, **self.sizes)

    def read(self, stack: Any) -> Tensor:
        """The reading, B QSm, float64."""
        return pushdown_reading(stack).clamp(max=LARGEST_READING)

    def step(self, stack: Any, controls: Tensor) -> Any:
        logits, pushed = self.split(controls)
        return pushdown_step(stack, logits, pushed_vectors(pushed, sigmoid=self.sigmoid), **self.sizes)


CONTROLLERS = {
    "superposition_stack": SuperpositionController,
    "nondeterministic_stack": NondeterministicController,
}


class StackLSTM(GatedLayer):
    """One layer that reads symbols or vectors."""

    def __init__(self, symbols: int, hidden_size: int, stack: Choice | str | None):
        """symbols: V, the number of different inputs, or the size of vectors.  stack: as a plan names it; None: none.

        Raises ValueError if the stack is not one of `CONTROLLERS`.
        """
        if isinstance(stack, str):
            (stack,) = parse_choices(stack, 1, Site.DECODER_SELF)
        if min(symbols, hidden_size) < 1:
            raise ValueError(f"expected symbols and a hidden size of 1 or more, got {symbols} and {hidden_size}")
        if stack is not None and stack.name not in CONTROLLERS:
            raise ValueError(f"an LSTM goes with {' or '.join(CONTROLLERS)}, not with {stack.name}")
        controller = None if stack is None else CONTROLLERS[stack.name](hidden_size, stack.config)
        super().__init__(symbols + (0 if stack is None else controller.reading_size), hidden_size, 4 * hidden_size)
        self.symbols, self.stack, self.bias = symbols, controller, self.drawn(4 * hidden_size)

    def initial_state(self, batch_size: int) -> StackLSTMState:
        """Zeros, and the stack before its first step."""
        zeros = self.weight_hh.new_zeros(batch_size, self.hidden_size)
        stack = zeros[:, :0] if self.stack is None else self.stack.initial(batch_size)
        return StackLSTMState(zeros, zeros, stack, torch.zeros(batch_size, dtype=torch.long, device=zeros.device))

    def forward(
        self, inputs: Tensor, state: StackLSTMState | None = None, need_state: bool = True
    ) -> tuple[Tensor, StackLSTMState | None]:
        """Hidden states B T h after each of T steps, and the state to go on from if it is needed.

        inputs: B T long, each 0 .. V-1, or V for no symbol (a vector of zeros); or vectors, B T V of a floating type.
        state: None for the initial one.
        Without either state all steps are taken at once; else one by one, each linked to the one before.
        Raises ValueError if the shapes do not fit, on other symbols, and if the stack's max_length is passed.
        """
        if inputs.dim() < 2 or inputs.shape[2:] != ((self.symbols,) if inputs.is_floating_point() else ()):
            raise ValueError(f"expected symbols B T, or vectors B T {self.symbols}, got {tuple(inputs.shape)}")
        inputs = inputs if inputs.is_floating_point() else self._read(inputs)
        if state is not None and len(state.length) != len(inputs):
            raise ValueError(f"expected a state of {len(inputs)} rows, got one of {len(state.length)}")
        if self.stack is not None and state is None and not need_state and inputs.numel():
            return self._whole(inputs), None
        state = self.initial_state(len(inputs)) if state is None else state
        if inputs.size(1) == 0:
            return self.weight_hh.new_zeros(len(inputs), 0, self.hidden_size), state
        hiddens, last = self._alone(inputs, state) if self.stack is None else self._steps(inputs, state, need_state)
        return hiddens, last._replace(length=state.length + inputs.size(1)) if need_state else None

    def _read(self, symbols: Tensor) -> Tensor:
        """Symbols as long."""
        symbols, expected = whole_numbers("symbols", symbols), f"expected symbols from 0 to {self.symbols}"
        if fails((symbols < 0) | (symbols > self.symbols), expected):
            raise ValueError(f"{expected}, got {int(symbols.min())} to {int(symbols.max())}")
        return symbols

    def _alone(self, inputs: Tensor, state: StackLSTMState) -> tuple[Tensor, StackLSTMState]:
        if not inputs.is_floating_point():
            inputs = F.one_hot(inputs, self.symbols + 1)[..., : self.symbols].to(self.bias.dtype)
        hiddens, hidden, cell = lstm_sequence(
            inputs, state.hidden, state.cell, self.weight_ih, self.weight_hh, self.bias
        )
        return hiddens, state._replace(hidden=hidden, cell=cell)

    def _gates(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """What inputs contribute to the gates, B T 4h, bias included, and the weight of the readings, 4h R."""
        of_input, of_reading = self.weight_ih.split([self.symbols, self.stack.reading_size], 1)
        if inputs.is_floating_point():
            return linear(inputs, of_input, self.bias), of_reading
        rows = torch.cat([of_input.t(), of_input.new_zeros(1, 4 * self.hidden_size)])
        return F.embedding(inputs, rows) + self.bias, of_reading

    def _whole(self, inputs: Tensor) -> Tensor:
        """Hidden states B T h from the initial state; rows that leave the range of the tape, step by step."""
        gates, of_reading = self._gates(inputs.transpose(0, 1))
        of_controls, of_readings = self.stack.orders(inputs.device)
        recurrent = torch.cat([of_reading.index_select(1, of_readings), self.weight_hh], 1).t()
        weight, bias = (x.index_select(0, of_controls) for x in self.stack.controls())
        zeros = self.weight_hh.new_zeros(len(inputs), self.hidden_size)
        start = self.stack.start(len(inputs))
        hiddens, trusted = stack_lstm(gates, zeros, zeros, recurrent, weight.t(), bias, start, self.stack.tape)
        if trusted is None or bool(trusted.all()):
            return hiddens.transpose(0, 1).to(zeros.dtype)
        within, beyond = trusted.nonzero().squeeze(1), (~trusted).nonzero().squeeze(1)
        one_by_one = self._steps(inputs[beyond], self.initial_state(len(beyond)), need_state=False)[0]
        if not len(within):
            return one_by_one
        return torch.cat([self._whole(inputs[within]), one_by_one])[torch.cat([within, beyond]).argsort()]

    def _steps(self, inputs: Tensor, state: StackLSTMState, need_state: bool) -> tuple[Tensor, StackLSTMState]:
        gates, of_reading = self._gates(inputs)
        steps = gates.unbind(1)
        recurrent = torch.cat([of_reading, self.weight_hh], 1).t()
        weight, bias = self.stack.controls()
        hidden, cell, stack, hiddens = state.hidden, state.cell, state.stack, []
        for t, step in enumerate(steps, 1):
            before = torch.cat([self.stack.read(stack).to(hidden.dtype), hidden], 1)
            hidden, cell = lstm_step(torch.addmm(step, before, recurrent), cell)
            hiddens.append(hidden)
            if need_state or t < len(steps):
                stack = self.stack.step(stack, linear(hidden, weight, bias))
        return torch.stack(hiddens, 1), state._replace(hidden=hidden, cell=cell, stack=stack)
