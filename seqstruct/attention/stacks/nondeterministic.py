"""Nondeterministic stack attention (DuSell & Chiang 2024, sec. 3.2.2 and 5): a sum over all runs of a vector PDA.

Each input x_t gives the log-weights of all transitions at t (eq. 19, W_a x_t, not normalised) and a vector to push;
the reading is, for each state r and stack symbol y, the expected top vector of the runs that end in (r, y), weighted
by their share of all runs (eq. 12); the output is W_y r_t (eq. 20).  None of the three projections has a bias.
`states`, `symbols`, `size` are |Q|, |Gamma| and m.  O(T^3) time and O(T^2) memory for a whole pass, O(t^2) time and
O(t) new memory a step.  Layout of the log-weights: `seqstruct.ops.pushdown`.
From the vectors pushed to the output everything is float64; an output that its type cannot show is the largest it can.
Deviation, as in the released code that gave the published results: the pushed vector is exp(W_v x_t); `sigmoid=True`
applies the logistic function of eq. 17.  The bottom vector is sigmoid(bottom) in both.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seqstruct.attention.base import Attention, Cost, Inputs, Reading, Shape, Site
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention
from seqstruct.ops.masking import clear_padding, started
from seqstruct.ops.pushdown import (
    LimitedState,
    PushdownState,
    pad_pushdown_logits,
    pushdown_initial,
    pushdown_reading,
    pushdown_stack,
    pushdown_step,
    pushdown_steps,
    pushed_vectors,
    transition_count,
)


@register_attention("nondeterministic_stack", sites=(Site.ENCODER_SELF, Site.DECODER_SELF))
class NondeterministicStackAttention(Attention):
    """A pushdown automaton whose runs are summed."""

    unidirectional = True
    stacked = True
    queried = False
    cost = Cost(training="cubic", state="quadratic")

    class Config(Options):
        states: int = option(2, least=1)  # |Q|, states of the automaton
        symbols: int = option(3, least=1)  # |Gamma|, stack symbols, the bottom's among them
        size: int = option(5, least=1)  # m, the size of a stack vector
        sigmoid: bool = False  # whether pushed vectors pass through the logistic function (eq. 17), not exp
        max_length: int = option(4096, least=1)  # most steps in step-by-step decoding; its state grows with the square

    class State(NamedTuple):
        """automaton: the tables; begun: B bool, whether a real token was written; logits: B 1 A, of the last step."""

        automaton: PushdownState | LimitedState
        begun: Tensor
        logits: Tensor

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        self.sizes = {"states": config.states, "symbols": config.symbols}
        top = config.states * config.symbols
        self.transition_layer = nn.Linear(shape.key_dim, transition_count(**self.sizes), bias=False)
        self.pushed_layer = nn.Linear(shape.value_dim, config.size, bias=False)
        self.output_layer = nn.Linear(top * config.size, shape.embed_dim, bias=False)
        self.bottom = nn.Parameter(torch.empty(config.size).uniform_(-0.1, 0.1))
        for layer in (self.transition_layer, self.pushed_layer, self.output_layer):
            nn.init.xavier_uniform_(layer.weight)

    def initial_state(self, batch_size: int) -> State:
        """The bottom element alone, in state 0."""
        automaton = self._begin(self.bottom.sigmoid().double(), batch_size)
        begun = torch.zeros(batch_size, dtype=torch.bool, device=self.bottom.device)
        return self.State(automaton, begun, self.bottom.new_zeros(batch_size, 1, self.transition_layer.out_features))

    def write(self, state: State, key: Tensor, value: Tensor, padding_mask: Tensor | None = None) -> State:
        if key.size(1) == 0:
            return state
        key, value = clear_padding(padding_mask, key, value)
        logits, pushed = self._transitions(key, value, padding_mask)
        automaton = state.automaton
        for step in zip(logits.unbind(1), pushed.unbind(1), strict=True):
            automaton = pushdown_step(automaton, *step, **self.sizes)
        begun = torch.ones_like(state.begun) if padding_mask is None else state.begun | (~padding_mask).any(1)
        return self.State(automaton, begun, logits[:, -1:])

    def read(
        self, state: State, query: Tensor, position: Tensor | None = None, *, need_weights: bool = False
    ) -> Reading:
        """The reading after the last step, the same for all T queries; extra as in `parallel`."""
        return self._shown(self._reading(state.automaton), state, query.size(1), need_weights)

    def parallel(self, inputs: Inputs, state: State | None) -> tuple[Reading, State | None]:
        """All steps in one operator; step by step from a given state, unless it is recorded.

        extra, if weights are needed: actions B T 3, shares of push, pop and replace in the mean transition weight of a
        step (a softmax over all its transitions), whatever the automaton's state.
        """
        output, logits, state = self._pass(inputs.key, inputs.value, inputs.padding_mask, state)
        return Reading(output, None, {"actions": self._actions(logits)} if inputs.need_weights else {}), state

    def _pass(
        self, key: Tensor, value: Tensor, padding_mask: Tensor | None, state: State | None
    ) -> tuple[Tensor, Tensor, State | None]:
        """Outputs B S C, zero before the first real token, log-weights B S A, and the state after, if one is given."""
        logits, pushed = self._transitions(key, value, padding_mask)
        readings, automaton = self._runs(state, logits, pushed, padding_mask)
        output = self._output(readings, logits.dtype)
        begun = pushed.new_zeros(len(pushed), dtype=torch.bool) if state is None else state.begun
        if padding_mask is not None:
            ever = begun.unsqueeze(1) | started(padding_mask)
            output = output.masked_fill(~ever.unsqueeze(-1), 0.0)
        if state is not None and key.size(1):
            begun = torch.ones_like(begun) if padding_mask is None else ever[:, -1]
            state = self.State(automaton, begun, logits[:, -1:])
        return output, logits, state

    _reading = staticmethod(pushdown_reading)

    def _begin(self, bottom: Tensor, batch_size: int) -> PushdownState:
        return pushdown_initial(bottom, batch_size, max_length=self.config.max_length, **self.sizes)

    def _runs(
        self, state: State | None, logits: Tensor, pushed: Tensor, padding_mask: Tensor | None
    ) -> tuple[Tensor, PushdownState | None]:
        """Readings B S (Q S m), and the automaton after, if a state is given."""
        if state is None:
            return pushdown_stack(logits, pushed, self.bottom.sigmoid(), **self.sizes), None
        return pushdown_steps(state.automaton, logits, pushed, **self.sizes)

    def _transitions(self, key: Tensor, value: Tensor, padding_mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Log-weights B S A and pushed vectors B S m, float64; a padded step keeps every configuration."""
        logits = self.transition_layer(key)
        pushed = pushed_vectors(self.pushed_layer(value), padding_mask, sigmoid=self.config.sigmoid)
        if padding_mask is not None:
            logits = pad_pushdown_logits(logits, padding_mask, **self.sizes)
        return logits, pushed

    def _output(self, readings: Tensor, dtype: torch.dtype) -> Tensor:
        """W_y of readings in float64, as another data type; what that cannot show is its largest number."""
        largest = torch.finfo(dtype).max
        return F.linear(readings, self.output_layer.weight.double()).clamp(-largest, largest).to(dtype)

    def _shown(self, reading: Tensor, state: State, length: int, need_weights: bool) -> Reading:
        """What T = length queries read of one automaton, for the vectors B (Q S m)."""
        output = self._output(reading, state.logits.dtype).masked_fill(~state.begun[:, None], 0.0)
        extra = {"actions": self._actions(state.logits).expand(-1, length, -1)} if need_weights else {}
        return Reading(output[:, None].expand(-1, length, -1), None, extra)

    @torch.no_grad()
    def _actions(self, logits: Tensor) -> Tensor:
        top = self.config.states * self.config.symbols
        shares = logits.softmax(-1).unflatten(-1, (top, -1)).sum(-2)  # B T (push, replace, pop)
        push, replace, pop = shares.split([top, top, self.config.states], -1)
        return torch.stack([push.sum(-1), pop.sum(-1), replace.sum(-1)], -1)
