"""mLSTM, the matrix memory of xLSTM (Beck et al. 2024, sec. 2.3, eq. 19 to 27): exponential gates and a normaliser.

    C_t = f_t C_{t-1} + i_t k_t v_t^T,   n_t = f_t n_{t-1} + i_t k_t,   o_t = C_t^T q_t / max(|n_t . q_t|, 1)

f_t = sigmoid(w_f . x + b_f) and i_t = exp(w_i . x + b_i), one number a head; keys are divided by sqrt(D).  Products of
gates are held beside a running maximum (eq. 15 to 17), which cancels exactly.  Readings, normed in each head, are times
the logistic function of a projection of the query's input (eq. 27).
At first b_f goes from 3 to 6 over the heads, as in the released code, and w_f, w_i and b_i are 0.
O((T + S) C D) time, O(C D) state.
Deviations: those of the base, the biases of eq. 22 to 24 and 27 among them; the root of D divides queries.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqstruct.attention.base import Shape, Site
from seqstruct.attention.delta.base import DeltaAttention, Entries
from seqstruct.attention.gate import Gate
from seqstruct.attention.registry import register_attention
from seqstruct.ops.delta import (
    ExponentialMemory,
    empty_exponential,
    exponential_gates,
    read_exponential,
    write_exponential,
)


@register_attention("mlstm", sites=Site)
class MatrixLSTMAttention(DeltaAttention):
    """A memory with exponential input gates."""

    State = ExponentialMemory
    activated = normed = False
    output_gate = staticmethod(torch.sigmoid)

    def __init__(self, config: DeltaAttention.Config, shape: Shape):
        super().__init__(config, shape)
        self.forget_layer = Gate(shape.key_dim, shape.num_heads)
        self.input_layer = Gate(shape.key_dim, shape.num_heads)
        for layer in (self.forget_layer, self.input_layer):
            nn.init.zeros_(layer.weight)
        with torch.no_grad():
            self.forget_layer.bias.copy_(torch.linspace(3, 6, shape.num_heads))

    def gates(self, key: Tensor) -> tuple[Tensor, Tensor]:
        """log f and log i, both B S H."""
        return F.logsigmoid(self.forget_layer(key)), self.input_layer(key)

    def empty(self, batch_size: int) -> ExponentialMemory:
        """A memory of zeros at the lowest level."""
        dim = self.shape.head_dim
        return empty_exponential(batch_size, self.shape.num_heads, dim, dim, self.k_proj.weight)

    def _written(
        self, key: Tensor, projected_key: Tensor, projected_value: Tensor, padding_mask: Tensor | None
    ) -> Entries:
        """An input gate at padding would raise the running maximum, beside which all else is held."""
        written = super()._written(key, projected_key, projected_value, padding_mask)
        if padding_mask is None:
            return written
        return written._replace(strength=written.strength.masked_fill(padding_mask.unsqueeze(1), -math.inf))

    def written_to(self, state: ExponentialMemory, written: Entries) -> ExponentialMemory:
        keys, values, log_forget, log_input = written
        return write_exponential(state, keys, values, log_input, log_forget)

    def read_from(self, state: ExponentialMemory, query: Tensor) -> Tensor:
        return read_exponential(state, query)

    def in_turn(self, state: ExponentialMemory, query: Tensor, written: Entries) -> tuple[Tensor, ExponentialMemory]:
        keys, values, log_forget, log_input = written
        return exponential_gates(state, query, keys, values, log_input, log_forget)
