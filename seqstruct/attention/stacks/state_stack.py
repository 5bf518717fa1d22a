"""Stacks of hidden states between layers, read as a whole (StackTrans: Zhang et al. 2025, arXiv 2507.15343).

In a plan it stands between layers of attention, "softmax*2 + state_stack + softmax*2", and the layer's residual
connection leads past it.  H stacks, one a head, each of `height` cells of `size` m: of each hidden state x_t a
projection of low rank is pushed, and a softmax of another one mixes push, pop and no-op, as in the superposition stack;
what is pushed beyond the height is lost.  All cells are read: by a softmax over them of (W_q x_t) . cell / sqrt(m),
plus a learned bias for each depth, which starts at 0.  The readings of all heads together are projected back.
No projection has a bias, so empty stacks read zeros.
O(T H h m) time and memory for a whole pass, one step after the other, O(H h m) a step and as a state, whatever T is.
From the paper are stacks of hidden states between layers whose actions are learned by gradients; ours are how cells are
addressed, by the query's content and their depth, the residual connection, which is the layer's and has no gate, and
training through all steps.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from seqstruct.attention.base import Attention, Cost, Inputs, Reading, Shape, Site
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention
from seqstruct.ops.masking import clear_padding
from seqstruct.ops.superposition import ACTIONS, bounded_stacks, no_op, pad_actions


@register_attention("state_stack", sites=(Site.ENCODER_SELF, Site.DECODER_SELF))
class StateStackAttention(Attention):
    """Stacks of limited height whose cells are all read."""

    unidirectional = True
    stacked = True
    cost = Cost(training="linear", state="constant")

    class Config(Options):
        height: int = option(24, least=1)  # h, cells of a stack
        size: int = option(16, least=1)  # m, the size of a cell

    class State(NamedTuple):
        """stack: B H h m, cell 0 the top; actions: B 1 3, of the last step, (push, pop, no-op), mean over heads."""

        stack: Tensor
        actions: Tensor

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        size = shape.num_heads * config.size
        self.action_layer = nn.Linear(shape.key_dim, shape.num_heads * ACTIONS, bias=False)
        self.pushed_layer = nn.Linear(shape.value_dim, size, bias=False)
        self.query_layer = nn.Linear(shape.embed_dim, size, bias=False)
        self.output_layer = nn.Linear(size, shape.embed_dim, bias=False)
        self.depth_bias = nn.Parameter(torch.zeros(shape.num_heads, config.height))
        for layer in (self.action_layer, self.pushed_layer, self.query_layer, self.output_layer):
            nn.init.xavier_uniform_(layer.weight)

    def initial_state(self, batch_size: int) -> State:
        """Stacks of no element: all cells zero."""
        like = self.pushed_layer.weight
        stack = like.new_zeros(batch_size, self.shape.num_heads, self.config.height, self.config.size)
        return self.State(stack, no_op(like).repeat(batch_size, 1, 1))

    def write(self, state: State, key: Tensor, value: Tensor, padding_mask: Tensor | None = None) -> State:
        """One step of each stack for each of S inputs."""
        return self._pass(*clear_padding(padding_mask, key, value), padding_mask, state)[2]

    def read(
        self, state: State, query: Tensor, position: Tensor | None = None, *, need_weights: bool = False
    ) -> Reading:
        """What the cells hold for queries B T C."""
        output = self._reading(query, state.stack.unsqueeze(2))
        return Reading(output, None, {"actions": state.actions.expand(-1, query.size(1), -1)})

    def parallel(self, inputs: Inputs, state: State | None) -> tuple[Reading, State]:
        """All stacks, then all readings; extra: actions B T 3, the mean over heads."""
        state = self.initial_state(len(inputs.key)) if state is None else state
        stacks, actions, state = self._pass(inputs.key, inputs.value, inputs.padding_mask, state)
        return Reading(self._reading(inputs.query, stacks), None, {"actions": actions}), state

    def _pass(
        self, key: Tensor, value: Tensor, padding_mask: Tensor | None, state: State
    ) -> tuple[Tensor, Tensor, State]:
        """Stacks B H S h m, actions B S 3, and the state after; a padded step is a no-op."""
        actions = self._heads(self.action_layer(key)).softmax(-1)  # B*H S 3
        if padding_mask is not None:
            actions = pad_actions(actions, padding_mask.repeat_interleave(self.shape.num_heads, 0))
        pushed = self._heads(self.pushed_layer(value))
        stacks = bounded_stacks(actions, pushed, state.stack.flatten(0, 1).to(pushed.dtype))
        stacks = stacks.unflatten(0, state.stack.shape[:2])
        mean = actions.unflatten(0, state.stack.shape[:2]).mean(1)
        if key.size(1):
            state = self.State(stacks[:, :, -1], mean[:, -1:])
        return stacks, mean, state

    def _heads(self, x: Tensor) -> Tensor:
        """B*H S D, for x: B S H*D."""
        return x.unflatten(-1, (self.shape.num_heads, -1)).transpose(1, 2).flatten(0, 1)

    def _reading(self, query: Tensor, stacks: Tensor) -> Tensor:
        """B T C, for queries B T C and stacks B H T h m, or B H 1 h m for all queries."""
        asked = self.query_layer(query).unflatten(-1, (self.shape.num_heads, -1)).transpose(1, 2).unsqueeze(-1)
        scores = (stacks @ asked).squeeze(-1) * self.config.size**-0.5 + self.depth_bias.unsqueeze(1)  # B H T h
        readings = (scores.softmax(-1).unsqueeze(-2) @ stacks).squeeze(-2)
        return self.output_layer(readings.transpose(1, 2).flatten(2))
