"""Memories of a fixed size, step by step as the papers write them: the definition of all faster forms.

Axis letters: B batch, H heads, T steps, N features or slots, D size of a key, E size of a value.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.ops.softmax import masked_softmax


def naive_linear_attention(query: Tensor, key: Tensor, value: Tensor, gate: Tensor | None = None) -> Tensor:
    """B H T E (Peng 2022, eq. 4.5 to 4.8), for features of queries and keys B H T N and values B H T E.

        S_t = g_t S_{t-1} + (1 - g_t) phi(k_t) (x) v_t,   z_t = g_t z_{t-1} + (1 - g_t) phi(k_t)
        out_t = phi(q_t) S_t / (phi(q_t) . z_t)

    gate: B H T, g; without one both its factors are 1.  O(T N E) time.
    """
    kept = torch.ones_like(key[..., 0]) if gate is None else gate
    entering = kept if gate is None else 1 - gate
    memory, total, outputs = value.new_zeros(()), key.new_zeros(()), [value[:, :, :0]]
    for t in range(key.size(2)):
        features = (entering[:, :, t, None] * key[:, :, t]).unsqueeze(-1)  # B H N 1
        memory = kept[:, :, t, None, None] * memory + features * value[:, :, t, None]
        total = kept[:, :, t, None, None] * total + features
        asking = query[:, :, t, None]  # B H 1 N
        outputs.append(asking @ memory / (asking @ total))
    return torch.cat(outputs, 2)


def naive_bounded_memory(
    query: Tensor, key: Tensor, value: Tensor, control: Tensor, means: bool = False, empty_slots: bool = False
) -> Tensor:
    """B H T E (Peng 2022, eq. 5.3 to 5.5), for queries and keys B H T D, values B H T E and controls B H T N.

        K_t = K_{t-1} + phi_t (x) k_t,   V_t = V_{t-1} + phi_t (x) v_t,   out_t = softmax(D^-1/2 K_t q_t) V_t

    means: phi_t = exp(control_t), and both sums are divided by that of the phi_s (section 5.4); else it is the control.
    empty_slots: slots into which nothing was written stay in the softmax, with key and value 0.  O(T N (D + E)) time.
    """
    keys, values, total, outputs = key.new_zeros(()), key.new_zeros(()), key.new_zeros(()), [value[:, :, :0]]
    written = torch.zeros_like(control[:, :, :1].mT, dtype=torch.bool)  # B H N 1
    for t in range(key.size(2)):
        phi = control[:, :, t, :, None]
        phi = phi.exp() if means else phi
        keys, values = keys + phi * key[:, :, t, None], values + phi * value[:, :, t, None]
        total, written = total + phi, written | (phi != 0)
        divisor = total.masked_fill(~written, 1.0) if means else 1.0
        logits = query[:, :, t, None] @ (keys / divisor).mT * query.size(-1) ** -0.5  # B H 1 N
        weights = masked_softmax(logits, None if empty_slots else ~written.mT)
        outputs.append(weights @ (values / divisor))
    return torch.cat(outputs, 2)
