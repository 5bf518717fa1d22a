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

from typing import Any

from torch import Tensor

from seqstruct.attention.base import Cost, Inputs, Reading, Site
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention
from seqstruct.attention.stacks.nondeterministic import NondeterministicStackAttention
from seqstruct.ops.masking import clear_padding
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

    _reading = staticmethod(limited_reading)

    def _begin(self, bottom: Tensor, batch_size: int) -> LimitedState:
        return limited_initial(bottom, batch_size, **self.sizes)

    def write(self, state: Any, key: Tensor, value: Tensor, padding_mask: Tensor | None = None) -> Any:
        """One step of the automaton for each of S inputs."""
        return self._pass(*clear_padding(padding_mask, key, value), padding_mask, state)[2]

    def parallel(self, inputs: Inputs, state: Any) -> tuple[Reading, Any]:
        """Step after step; extra, if weights are needed: actions, as of `nondeterministic_stack`."""
        return super().parallel(inputs, self.initial_state(len(inputs.key)) if state is None else state)

    def _runs(
        self, state: Any, logits: Tensor, pushed: Tensor, padding_mask: Tensor | None
    ) -> tuple[Tensor, LimitedState]:
        return limited_steps(state.automaton, logits, pushed, padding_mask, window=self.config.window, **self.sizes)
