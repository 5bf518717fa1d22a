"""Nondeterministic stack attention with limited memory: along a text without an end (DuSell & Chiang 2022).

As `nondeterministic_stack`, but a run whose top element was pushed `window` steps ago or more is dropped, the bottom's
among them: what is forgotten is depth, not the state of the automaton.  Up to window - 1 tokens both are the same.
The state is O(window^2) whatever the length, so that language models carry it from segment to segment of a text.
O(T window^2) time, one step after the other, and as much memory in training.
The limit is that paper's, for a stack RNN of discrete symbols; with vectors, and as attention (DuSell & Chiang 2024,
sec. 5), it is ours.
Deviations: as of `nondeterministic_stack`; weights that float64 cannot hold beside the step's largest are 0.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from seqstruct.attention.base import Cost, Inputs, Reading, Site
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention
from seqstruct.attention.stacks.nondeterministic import NondeterministicStackAttention
from seqstruct.ops.masking import clear_padding, started
from seqstruct.ops.pushdown import LimitedState, limited_initial, limited_reading, limited_steps


@register_attention("limited_nondeterministic_stack", sites=(Site.ENCODER_SELF, Site.DECODER_SELF))
class LimitedNondeterministicStackAttention(NondeterministicStackAttention):
    """A pushdown automaton whose runs are summed as far as their stacks are young."""

    cost = Cost(training="linear", state="constant")

    class Config(Options):
        states: int = option(2, least=1)  # |Q|, states of the automaton
        symbols: int = option(3, least=1)  # |Gamma|, stack symbols, the bottom's among them
        size: int = option(5, least=1)  # m, the size of a stack vector
        window: int = option(32, least=1)  # D, for how many steps an element can be read and uncovered
        sigmoid: bool = False  # whether pushed vectors pass through the logistic function (eq. 17), not exp

    class State(NamedTuple):
        """automaton: the tables; begun: B bool, whether a real token was written; logits: B 1 A, of the last step."""

        automaton: LimitedState
        begun: Tensor
        logits: Tensor

    def initial_state(self, batch_size: int) -> State:
        automaton = limited_initial(self.bottom.sigmoid().double(), batch_size, **self.sizes)
        begun = torch.zeros(batch_size, dtype=torch.bool, device=self.bottom.device)
        return self.State(automaton, begun, self.bottom.new_zeros(batch_size, 1, self.transition_layer.out_features))

    def write(self, state: State, key: Tensor, value: Tensor, padding_mask: Tensor | None = None) -> State:
        """One step of the automaton for each of S inputs."""
        return self._pass(*clear_padding(padding_mask, key, value), padding_mask, state)[2]

    def read(
        self, state: State, query: Tensor, position: Tensor | None = None, *, need_weights: bool = False
    ) -> Reading:
        """The reading after the last step, the same for all T queries; extra as in `parallel`."""
        return self._shown(limited_reading(state.automaton), state, query.size(1), need_weights)

    def parallel(self, inputs: Inputs, state: State | None) -> tuple[Reading, State]:
        """Step after step; extra, if weights are needed: actions, as of `nondeterministic_stack`."""
        state = self.initial_state(len(inputs.key)) if state is None else state
        output, logits, state = self._pass(inputs.key, inputs.value, inputs.padding_mask, state)
        return Reading(output, None, {"actions": self._actions(logits)} if inputs.need_weights else {}), state

    def _pass(
        self, key: Tensor, value: Tensor, padding_mask: Tensor | None, state: State
    ) -> tuple[Tensor, Tensor, State]:
        """Outputs B S C, zero before the first real token, log-weights B S A, and the state after."""
        logits, pushed = self._transitions(key, value, padding_mask)
        readings, automaton = limited_steps(
            state.automaton, logits, pushed, padding_mask, window=self.config.window, **self.sizes
        )
        output = self._output(readings, logits.dtype)
        begun = state.begun
        if padding_mask is not None:
            ever = begun.unsqueeze(1) | started(padding_mask)
            output = output.masked_fill(~ever.unsqueeze(-1), 0.0)
        if key.size(1):
            begun = torch.ones_like(begun) if padding_mask is None else ever[:, -1]
            state = self.State(automaton, begun, logits[:, -1:])
        return output, logits, state
