"""Superposition stack attention (DuSell & Chiang 2024, sec. 3.2.1 and 5; the stack of Joulin & Mikolov 2015).

Each input x_t gives a distribution over push, pop and no-op (eq. 18) and a vector to push (eq. 17); the new stack is
the mixture of the old one shifted down, shifted up and kept; the reading is its top, after the step of t itself
(eq. 5 to 8), and the output W_y r_t (eq. 20).  None of the three projections has a bias.
`size` is the paper's m.  O(T^2 m) time and memory for a whole pass, O(t m) a step.
Deviation, as in the released code that gave the published results: the pushed vector is W_v x_t itself; `sigmoid=True`
applies the logistic function of eq. 17.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from seqstruct.attention.base import Attention, Cost, Inputs, Reading, Shape, Site
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention
from seqstruct.ops.masking import clear_padding
from seqstruct.ops.superposition import no_op, pad_actions, superposition_stack


@register_attention("superposition_stack", sites=(Site.ENCODER_SELF, Site.DECODER_SELF))
class SuperpositionStackAttention(Attention):
    """A stack of vectors whose actions are mixed."""

    unidirectional = True
    stacked = True
    queried = False
    cost = Cost(training="quadratic", state="linear")

    class Config(Options):
        size: int = option(32, least=1)  # m, the size of a stack element
        sigmoid: bool = False  # whether pushed vectors pass through the logistic function (eq. 17)

    class State(NamedTuple):
        """stack: B h m, row 0 the top; actions: B 1 3, probabilities of the last step, (push, pop, no-op)."""

        stack: Tensor
        actions: Tensor

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        self.action_layer = nn.Linear(shape.key_dim, 3, bias=False)
        self.pushed_layer = nn.Linear(shape.value_dim, config.size, bias=False)
        self.output_layer = nn.Linear(config.size, shape.embed_dim, bias=False)
        for layer in (self.action_layer, self.pushed_layer, self.output_layer):
            nn.init.xavier_uniform_(layer.weight)

    def initial_state(self, batch_size: int) -> State:
        like = self.pushed_layer.weight
        return self.State(like.new_zeros(batch_size, 0, self.config.size), no_op(like).repeat(batch_size, 1, 1))

    def write(self, state: State, key: Tensor, value: Tensor, padding_mask: Tensor | None = None) -> State:
        if key.size(1) == 0:
            return state
        key, value = clear_padding(padding_mask, key, value)
        actions, pushed = self._actions(key, value, padding_mask)
        _, stack = superposition_stack(actions, pushed, state.stack.to(pushed.dtype))
        return self.State(stack, actions[:, -1:])

    def read(
        self, state: State, query: Tensor, position: Tensor | None = None, *, need_weights: bool = False
    ) -> Reading:
        if state.stack.size(1):
            top = state.stack[:, :1]
        else:
            top = state.stack.new_zeros(state.stack.size(0), 1, self.config.size)
        output = self.output_layer(top).expand(-1, query.size(1), -1)
        return Reading(output, None, {"actions": state.actions.expand(-1, query.size(1), -1)})

    def parallel(self, inputs: Inputs, state: State | None) -> tuple[Reading, State | None]:
        """All steps in one operator; extra: actions B T 3."""
        actions, pushed = self._actions(inputs.key, inputs.value, inputs.padding_mask)
        if state is None:
            readings, _ = superposition_stack(actions, pushed, need_final=False)
        else:
            readings, stack = superposition_stack(actions, pushed, state.stack.to(pushed.dtype))
            state = self.State(stack, torch.cat([state.actions, actions], 1)[:, -1:])
        return Reading(self.output_layer(readings), None, {"actions": actions}), state

    def _actions(self, key: Tensor, value: Tensor, padding_mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """actions B S 3 and pushed vectors B S m; a padded step is a no-op."""
        actions = self.action_layer(key).softmax(-1)
        pushed = self.pushed_layer(value)
        if self.config.sigmoid:
            pushed = pushed.sigmoid()
        return pad_actions(actions, padding_mask), pushed
