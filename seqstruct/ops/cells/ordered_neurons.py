"""Recurrent cells in which neurons or words have an order.

The ordered-neurons LSTM (Shen et al. 2018b, ON-LSTM) has gates that forget from the low neurons up:

    f~ = cumax(a_f),  i~ = 1 - cumax(a_i)                 master gates, of D / chunk values, each for `chunk` neurons
    w  = f~ i~;  f^ = f w + f~ - w;  i^ = i w + i~ - w
    c_t = f^ c_{t-1} + i^ tanh(a_c);  h_t = o tanh(c_t)

cumax is the cumulative sum of a softmax.  The gates' logits a stand in the order master forget, master input, output,
cell, input, forget, of D/chunk, D/chunk, D, D, D, D values.

The parsing-reading-predict network (Shen et al. 2018a, PRPN, eq. 3 to 5) has gates from syntactic distances, which say
how far back a word looks:

    alpha_j^t = sigmoid(2 tau (d_t - d_j))
    g_i^t     = prod_{j=i+1}^{t-1} alpha_j^t,   1 for i = t - 1

d_j is the distance between the words j - 1 and j; tau is an inverse temperature.  A word before one of a distance much
greater than d_t is out of reach.  Deviation: eq. 4 has (hardtanh((d_t - d_j) tau) + 1) / 2, with the same slope where
distances are equal and none where they are not close; the released code is smooth, too, and has sigmoid(10 tau (d_t -
d_j) + 5).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F


class OrderedStep(NamedTuple):
    """hidden: B D; cell: B D; distance: B, 1 - mean of f~, within 0 and 1: how much of the memory is closed here."""

    hidden: Tensor
    cell: Tensor
    distance: Tensor


def cumax(logits: Tensor) -> Tensor:
    """Cumulative sum of the softmax over the last axis: rising, the last value 1."""
    return logits.softmax(-1).cumsum(-1)


def ordered_step(gates: Tensor, cell: Tensor, chunk: int) -> OrderedStep:
    """One step; gates: B (2 D / chunk + 4 D), logits; cell: B D.

    Raises ValueError if chunk does not divide D or the shapes do not fit.
    """
    D = cell.size(-1)
    if chunk < 1 or D % chunk:
        raise ValueError(f"expected chunks that divide the size {D}, got chunks of {chunk}")
    masters = D // chunk
    if gates.shape != (cell.size(0), 2 * masters + 4 * D):
        raise ValueError(f"expected gates {cell.size(0)} x {2 * masters + 4 * D}, got {tuple(gates.shape)}")
    keep_logits, enter_logits, rest = gates.split([masters, masters, 4 * D], 1)
    master_keep, master_enter = cumax(keep_logits), 1 - cumax(enter_logits)
    distance = 1 - master_keep.mean(1)
    master_keep = master_keep.repeat_interleave(chunk, 1)
    master_enter = master_enter.repeat_interleave(chunk, 1)
    show, new, enter, keep = rest.split(D, 1)
    overlap = master_keep * master_enter
    keep = keep.sigmoid() * overlap + (master_keep - overlap)
    enter = enter.sigmoid() * overlap + (master_enter - overlap)
    cell = keep * cell + enter * new.tanh()
    return OrderedStep(show.sigmoid() * cell.tanh(), cell, distance)


def ordered_lstm(inputs: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor, chunk: int) -> tuple[Tensor, ...]:
    """All steps; inputs: B T G, what the word gives each gate, biases among them; weight: G D, of the hidden state.

    Returns hidden states B T D, distances B T, and hidden and cell B D after the last step.
    """
    hiddens, distances = [], []
    for gates in inputs.unbind(1):
        hidden, cell, distance = ordered_step(torch.addmm(gates, hidden, weight.t()), cell, chunk)
        hiddens.append(hidden)
        distances.append(distance)
    if not hiddens:
        return inputs.new_zeros(len(inputs), 0, hidden.size(1)), inputs.new_zeros(len(inputs), 0), hidden, cell
    return torch.stack(hiddens, 1), torch.stack(distances, 1), hidden, cell


def distance_gates(distance: Tensor, past: Tensor, inverse_temperature: float) -> Tensor:
    """log g, in nats, of the S words before a step: what is added to the scores of an attention.

    distance: ..., of the step, d_t; past: ... S, of the words before it, d_{t-S} .. d_{t-1}.
    Returns ... S, at most 0, the last 0.  O(S) for each step.
    """
    log_alphas = F.logsigmoid((distance.unsqueeze(-1) - past) * (2 * inverse_temperature))
    following = F.pad(log_alphas[..., 1:], (0, min(1, log_alphas.size(-1))))
    return following.flip(-1).cumsum(-1).flip(-1)
