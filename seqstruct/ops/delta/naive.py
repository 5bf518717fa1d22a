"""The definitions: memories that decay, are corrected and written to, one token after the other."""

from __future__ import annotations

import torch
from torch import Tensor


def gated_delta_rule(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    log_decay: Tensor | None = None,
    beta: Tensor | None = None,
    memory: Tensor | None = None,
    steps: int = 1,
) -> tuple[Tensor, Tensor]:
    """As `seqstruct.ops.delta.gated_delta_rule`, by the recurrence:

    S <- diag(exp(g_t)) S             (g_t one number or one for each channel of the keys)
    S <- S + beta k (v - S^T k)^T     (without beta: S + k v^T), for each of the `steps` keys of a token
    o_t = S^T q_t
    """
    memory = key.new_zeros(*key.shape[:2], key.size(-1), value.size(-1)) if memory is None else memory  # B H K V
    readings = []
    for t in range(query.size(2)):
        if log_decay is not None:
            gate = log_decay[:, :, t].exp()
            memory = memory * (gate[..., None, None] if gate.dim() == 2 else gate.unsqueeze(-1))
        for row in range(t * steps, (t + 1) * steps):
            k, v = key[:, :, row, :, None], value[:, :, row, None]  # B H K 1, B H 1 V
            written = v if beta is None else beta[:, :, row, None, None] * (v - k.transpose(-1, -2) @ memory)
            memory = memory + k @ written
        readings.append(query[:, :, t, None] @ memory)
    return torch.cat(readings, 2) if readings else value[:, :, :0], memory


def gated_slots(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    control: Tensor,
    log_decay: Tensor,
    memory: Tensor,
) -> tuple[Tensor, Tensor]:
    """As `seqstruct.ops.delta.gated_slots`: a decaying memory for each slot, and a softmax over the slots."""
    readings = []
    for t in range(query.size(2)):
        written = torch.cat([key[:, :, t, None], value[:, :, t, None]], -1)  # B H 1 K+V
        memory = log_decay[:, :, t].exp().unsqueeze(-1) * memory + control[:, :, t].unsqueeze(-1) * written
        keys, values = memory.split([key.size(-1), value.size(-1)], -1)
        readings.append((query[:, :, t, None] @ keys.transpose(-1, -2)).softmax(-1) @ values)
    return torch.cat(readings, 2) if readings else value[:, :, :0], memory


def exponential_gates(query: Tensor, key: Tensor, value: Tensor, log_input: Tensor, log_forget: Tensor) -> Tensor:
    """mLSTM (Beck et al. 2024, eq. 19 to 27) from the empty memory, without a running maximum: for small gates alone.

    C <- f_t C + i_t k_t v_t^T,   n <- f_t n + i_t k_t,   o_t = C^T q_t / max(|n . q_t|, 1)
    """
    memory, total = key.new_zeros(*key.shape[:2], key.size(-1), value.size(-1)), torch.zeros_like(key[:, :, 0])
    readings = []
    for t in range(query.size(2)):
        forget, enter = log_forget[:, :, t].exp(), log_input[:, :, t].exp()
        k = enter.unsqueeze(-1) * key[:, :, t]
        memory = forget[..., None, None] * memory + k.unsqueeze(-1) * value[:, :, t, None]
        total = forget.unsqueeze(-1) * total + k
        q = query[:, :, t]
        divisor = (total * q).sum(-1, keepdim=True).abs().clamp_min(1.0)
        readings.append((q.unsqueeze(-2) @ memory).squeeze(-2) / divisor)
    return torch.stack(readings, 2)


def log_linear(query: Tensor, scales: Tensor, key: Tensor, value: Tensor, log_decay: Tensor) -> Tensor:
    """Log-linear attention (Guo et al. 2025, sec. 3) as its sum over keys, B H T V.

        o_t = sum_{s <= t} scales[t, level(t, s)] exp(g_{s+1} + ... + g_t) (q_t . k_s) v_s

    level(t, s) is 0 for s = t and otherwise l where the bucket of a Fenwick tree before t that holds s has 2^(l-1)
    tokens; levels beyond the last of B H T L scales are the last.
    """
    readings = []
    for t in range(query.size(2)):
        weights = []
        for s in range(t + 1):
            end, level = t, 0
            while s < end:  # buckets before t, from the nearest: their sizes are the powers of two in t
                size = end & -end
                end, level = end - size, size.bit_length()
            decay = log_decay[:, :, s + 1 : t + 1].sum(-1).exp()
            level = min(level, scales.size(-1) - 1)
            weights.append(scales[:, :, t, level] * decay * (query[:, :, t] * key[:, :, s]).sum(-1))
        readings.append((torch.stack(weights, -1).unsqueeze(-1) * value[:, :, : t + 1]).sum(2))
    return torch.stack(readings, 2)
