"""Stratification stack attention: elements with strengths (Grefenstette, Hermann, Suleyman & Blunsom 2015, sec. 3.1).

As superposition stack attention (DuSell & Chiang 2024, sec. 5) with that stack: each input x_t gives the strength
to pop u_t = sigmoid(w_u x_t + b_u), then to push d_t = sigmoid(w_d x_t + b_d), and the vector to push
v_t = tanh(W_v x_t + b_v), as the controller of the first paper does; the reading is the strength of 1 on top, after the
step of t itself, and the output W_y r_t.  Pushing with strength 1 and popping with 0 or 1 it is a stack of vectors.
`size` is m.  O(T^2 m) time and O(T^2) memory for a whole pass, all steps at once; O(t m) a step.
The bias of popping starts at -1, as the paper advises, so that what was pushed is there to be read.
Deviations: no recurrent controller, which here is the network below; no queue and no DeQue.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from seqstruct.attention.base import Attention, Cost, Inputs, Reading, Shape, Site
from seqstruct.attention.gate import wide_layers
from seqstruct.attention.option import Options, option
from seqstruct.attention.registry import register_attention
from seqstruct.ops.masking import clear_padding
from seqstruct.ops.stratification import StratificationStack, empty_stack, stratification_stack


@register_attention("stratification_stack", sites=(Site.ENCODER_SELF, Site.DECODER_SELF))
class StratificationStackAttention(Attention):
    """A stack of vectors with strengths."""

    unidirectional = True
    stacked = True
    queried = False
    cost = Cost(training="quadratic", state="linear")

    class Config(Options):
        size: int = option(32, least=1)  # m, the size of a stack element

    class State(NamedTuple):
        """stack: the elements; reading: B 1 m, its top.

        strengths: B 1 2, pushed and popped in the last step, in float32 at least: where an element ends turns on them.
        """

        stack: StratificationStack
        reading: Tensor
        strengths: Tensor

    def __init__(self, config: Config, shape: Shape):
        super().__init__(config, shape)
        self.push_layer = nn.Linear(shape.key_dim, 1)
        self.pop_layer = nn.Linear(shape.key_dim, 1)
        self.pushed_layer = nn.Linear(shape.value_dim, config.size)
        self.output_layer = nn.Linear(config.size, shape.embed_dim, bias=False)
        for layer in (self.push_layer, self.pop_layer, self.pushed_layer, self.output_layer):
            nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(self.push_layer.bias)
        nn.init.zeros_(self.pushed_layer.bias)
        nn.init.constant_(self.pop_layer.bias, -1.0)

    def initial_state(self, batch_size: int) -> State:
        like = self.pushed_layer.weight.new_zeros(batch_size, 1, self.config.size)
        strengths = like.new_zeros(batch_size, 1, 2, dtype=torch.promote_types(like.dtype, torch.float32))
        return self.State(empty_stack(like, batch_size), like, strengths)

    def write(self, state: State, key: Tensor, value: Tensor, padding_mask: Tensor | None = None) -> State:
        return self._pass(*clear_padding(padding_mask, key, value), padding_mask, state)[2]

    def read(
        self, state: State, query: Tensor, position: Tensor | None = None, *, need_weights: bool = False
    ) -> Reading:
        """The top of the stack, the same for all T queries."""
        length = query.size(1)
        output = self.output_layer(state.reading).expand(-1, length, -1)
        return Reading(output, None, {"strengths": state.strengths.expand(-1, length, -1)})

    def parallel(self, inputs: Inputs, state: State | None) -> tuple[Reading, State]:
        """All steps in one operator; extra: strengths B T 2, pushed and popped."""
        state = self.initial_state(len(inputs.key)) if state is None else state
        readings, strengths, state = self._pass(inputs.key, inputs.value, inputs.padding_mask, state)
        return Reading(self.output_layer(readings), None, {"strengths": strengths}), state

    def _pass(
        self, key: Tensor, value: Tensor, padding_mask: Tensor | None, state: State
    ) -> tuple[Tensor, Tensor, State]:
        """Readings B S m, strengths B S 2, and the state after; a padded step neither pushes nor pops."""
        strengths = torch.cat([wide_layers(layer, key) for layer in (self.push_layer, self.pop_layer)], -1).sigmoid()
        if padding_mask is not None:
            strengths = strengths.masked_fill(padding_mask.unsqueeze(-1), 0.0)
        pushed = self.pushed_layer(value).tanh()
        stack = state.stack._replace(vectors=state.stack.vectors.to(pushed.dtype))
        readings, stack = stratification_stack(*strengths.unbind(-1), pushed, stack)
        if not key.size(1):
            return readings, strengths, state
        return readings, strengths, self.State(stack, readings[:, -1:], strengths[:, -1:])
