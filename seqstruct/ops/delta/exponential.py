"""The matrix memory with exponential gates of mLSTM (Beck et al. 2024, eq. 15 to 21), kept in range by a maximum.

    C_t = f_t C_{t-1} + i_t k_t v_t^T,   n_t = f_t n_{t-1} + i_t k_t,   o_t = C_t^T q_t / max(|n_t . q_t|, 1)

What is held is e^-m_t of C and n, m_t = max(log f_t + m_{t-1}, log i_t).  So decays log f_t + m_{t-1} - m_t and weights
log i_t - m_t are 0 at most, and this is decaying linear attention with n as one more value.  m cancels in every
reading, so that no gradient goes through it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from seqstruct.ops.delta.rule import gated_delta_rule, write

LOWEST = -1e30  # stands for log 0 where the difference of two of them must be 0


class ExponentialMemory(NamedTuple):
    """memory: B H K V+1, e^-m [C, n]; level: B H, m in float64, LOWEST for the empty memory."""

    memory: Tensor
    level: Tensor


def empty_exponential(batch: int, heads: int, key_dim: int, value_dim: int, like: Tensor) -> ExponentialMemory:
    """Nothing written, on the device of `like` and of its precision, float32 at least."""
    dtype = torch.promote_types(like.dtype, torch.float32)
    memory = torch.zeros(batch, heads, key_dim, value_dim + 1, dtype=dtype, device=like.device)
    return ExponentialMemory(memory, memory.new_full((batch, heads), LOWEST, dtype=torch.float64))


def exponential_gates(
    state: ExponentialMemory, query: Tensor, key: Tensor, value: Tensor, log_input: Tensor, log_forget: Tensor
) -> tuple[Tensor, ExponentialMemory]:
    """Readings B H T V after each token, and the last state.

    query, key: B H T K; value: B H T V; log_input: B H T, log i, -inf for a token that is not written; log_forget:
    B H T, log f, 0 at most.
    """
    weighted, values, log_decay, level = _stabilised(state, key, value, log_input, log_forget)
    sums, memory = gated_delta_rule(query, weighted, values, log_decay, None, state.memory)
    return _divided(sums, level[..., 1:]), ExponentialMemory(memory, level[..., -1])


def write_exponential(
    state: ExponentialMemory, key: Tensor, value: Tensor, log_input: Tensor, log_forget: Tensor
) -> ExponentialMemory:
    """The state after all tokens; the old one is consumed."""
    weighted, values, log_decay, level = _stabilised(state, key, value, log_input, log_forget)
    return ExponentialMemory(write(state.memory, weighted, values, log_decay), level[..., -1])


def read_exponential(state: ExponentialMemory, query: Tensor) -> Tensor:
    """Readings B H T V for queries B H T K."""
    return _divided(query @ state.memory, state.level.unsqueeze(-1))


def _stabilised(
    state: ExponentialMemory, key: Tensor, value: Tensor, log_input: Tensor, log_forget: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Keys times e^(log i - m), values with a column of ones, decays B H T, and m before and after: B H T+1."""
    with torch.no_grad():
        total = log_forget.double().cumsum(-1)
        start = state.level.unsqueeze(-1)
        highest = torch.cat([start, log_input.double() - total], -1).cummax(-1).values
        level = highest + torch.cat([torch.zeros_like(start), total], -1)
    log_decay = (log_forget + (level[..., :-1] - level[..., 1:])).to(key.dtype)
    weight = (log_input - level[..., 1:]).to(key.dtype).exp()
    return key * weight.unsqueeze(-1), torch.cat([value, torch.ones_like(value[..., :1])], -1), log_decay, level


def _divided(sums: Tensor, level: Tensor) -> Tensor:
    limits = torch.finfo(sums.dtype)  # the lower bound is for a query that no key has a product with, and its gradient
    one = (-level).clamp(math.log(limits.tiny) / 2, math.log(limits.max) - 1).to(sums.dtype).exp()  # in the held scale
    return sums[..., :-1] / sums[..., -1:].abs().maximum(one.unsqueeze(-1))
