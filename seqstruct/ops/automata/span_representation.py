"""Representations of all spans of a sequence by rational recurrences (Peng 2022, eq. 3.3, 3.4 and algorithm 3).

With a forget gate f_t and an update u_t = (1 - f_t) z_t the forward representation of the span [i, j] is what the
recurrence c_t = f_t c_{t-1} + u_t makes of the words i .. j alone.  It follows from the states of one pass over the
whole sequence,

    c_ij = c_j - c_{i-1} * prod_{k=i}^{j} f_k,

and the backward one likewise from one pass from right to left, with i and j exchanged.  The products are sums of log f
over each span by itself: a difference of sums from the start, as algorithm 3 has it, would lose all digits of a short
span behind small gates.

Positions count from 0; [i, j] has both ends inclusive; i <= j.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from seqstruct.ops.scan import gated_scan


def forward_spans(gate_logits: Tensor, candidates: Tensor, max_length: int, first: int = 0) -> Tensor:
    """Forward representations of the spans of at most m = max_length words that end at each word from `first` on.

    gate_logits: B N d, of f, finite or -inf; candidates: B N d, z, finite.
    Returns B (N - first) m d: [b, j - first, l] stands for [j - l, j], of l + 1 words; 0 where j - l < 0.
    The error is of the order of the rounding of c_j, whatever the gates.  O(B N m d) time and memory.
    Raises ValueError if m < 1, `first` is not within 0 .. N, or the shapes differ.
    """
    _check(gate_logits, candidates, max_length, first)
    states = gated_scan(gate_logits, candidates)
    decay = F.logsigmoid(_windows(gate_logits, max_length, first)).cumsum(2).exp()  # B N-first m d
    before = _windows(F.pad(states, (0, 0, 1, 0))[:, :-1], max_length, first)
    return _within(torch.addcmul(states[:, first:, None], before, decay, value=-1), first)


def backward_spans(gate_logits: Tensor, candidates: Tensor, max_length: int, first: int = 0) -> Tensor:
    """Representations of the same spans read from right to left; arguments and result as of `forward_spans`."""
    _check(gate_logits, candidates, max_length, first)
    states = gated_scan(gate_logits.flip(1), candidates.flip(1)).flip(1)
    decay = F.logsigmoid(_windows(gate_logits, max_length, first)).cumsum(2).exp()
    start = _windows(states, max_length, first)
    after = F.pad(states, (0, 0, 0, 1))[:, first + 1 :, None]
    return _within(torch.addcmul(start, after, decay, value=-1), first)


def span_mask(padding_mask: Tensor, max_length: int, first: int = 0) -> Tensor:
    """B (N - first) m bool, True where the span [j - l, j] holds no padding and does not start before the sequence.

    padding_mask: B N bool, True = padding, on the left.
    """
    return _windows(~padding_mask.unsqueeze(2), max_length, first).squeeze(3).cummin(2).values


def _windows(x: Tensor, max_length: int, first: int) -> Tensor:
    """B (N - first) m d: [b, j - first, l] is x[b, j - l], 0 before the start."""
    if x.size(1) == first:
        return x.new_zeros(x.size(0), 0, max_length, x.size(2))
    short = max(0, max_length - 1 - first)
    padded = F.pad(x, (0, 0, short, 0))[:, max(0, first - max_length + 1) :]
    return padded.unfold(1, max_length, 1).flip(3).transpose(2, 3)


def _within(spans: Tensor, first: int) -> Tensor:
    """The same with 0 for spans that start before the sequence."""
    if first >= spans.size(2) - 1:
        return spans
    ends = torch.arange(first, first + spans.size(1), device=spans.device)
    outside = torch.arange(spans.size(2), device=spans.device) > ends.unsqueeze(1)
    return spans.masked_fill(outside[..., None], 0.0)


def _check(gate_logits: Tensor, candidates: Tensor, max_length: int, first: int) -> None:
    if max_length < 1:
        raise ValueError(f"expected a maximum span length of 1 or more, got {max_length}")
    if gate_logits.dim() != 3 or gate_logits.shape != candidates.shape:
        raise ValueError(
            f"expected gates and candidates B N d of one shape, got {tuple(gate_logits.shape)} and "
            f"{tuple(candidates.shape)}"
        )
    if not 0 <= first <= gate_logits.size(1):
        raise ValueError(f"expected a first end within 0 and {gate_logits.size(1)}, got {first}")
