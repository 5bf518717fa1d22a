"""Gated recursive convolution (Cho, van Merrienboer, Bahdanau and Bengio 2014, "On the Properties of Neural Machine
Translation", sec. 3.2 and 4.2): a pyramid over a sequence, each node made of its two neighbours below.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def gated_convolution(leaves: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Rightmost nodes B N C of all levels, and the gates of each level above the leaves.

    leaves: B N C, level 0.  weight: (2C + 6) C, rows W_l, W_r, G_l, G_r of the source, below one another; bias: C, of
    the new activation.  A node over left and right is

        w_c relu(W_l left + W_r right + bias) + w_l left + w_r right,  (w_c, w_l, w_r) = softmax(G_l left + G_r right).

    The gates of level t, a list from t = 1 on, are B (N - t) 3, in the order w_c, w_l, w_r.  Node [b, t] of the result
    is over the last t + 1 leaves.  One product a level: O(B N^2 C^2) time, O(B N^2 C) memory with gradients.
    The source has no bias.  Raises ValueError if the shapes do not fit.
    """
    size = leaves.size(-1)
    if leaves.dim() != 3 or weight.shape != (2 * size + 6, size) or bias.shape != (size,):
        shapes = tuple(leaves.shape), tuple(weight.shape), tuple(bias.shape)
        raise ValueError("expected leaves B N C, weight (2C + 6) C and bias C, got {}, {} and {}".format(*shapes))
    nodes, last, gates = leaves, [leaves[:, -1:]], []
    for _ in range(1, leaves.size(1)):
        of_left, of_right, gate_left, gate_right = F.linear(nodes, weight).split([size, size, 3, 3], 2)
        left, right = nodes[:, :-1], nodes[:, 1:]
        shares = (gate_left[:, :-1] + gate_right[:, 1:]).softmax(-1)
        new = (of_left[:, :-1] + of_right[:, 1:] + bias).relu()
        nodes = shares[..., :1] * new + shares[..., 1:2] * left + shares[..., 2:] * right
        last.append(nodes[:, -1:])
        gates.append(shares)
    return torch.cat(last, 1), gates
