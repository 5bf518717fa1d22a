"""An LSTM whose state before a step is an attention over the last S states (Shen et al. 2018a, eq. 12 to 15).

    k_t = (key_t + h_{t-1} K) / sqrt(h)
    w   = softmax_i(h_i k_t + log g_i^t)          over the S states before the step
    a_t = gates_t + (sum_i w_i h_i) R;   c_t, h_t = LSTM(a_t, sum_i w_i c_i)

Deviation: weights have one sum, as in the released code; eq. 12 divides g and the exponentials each by their own.
Backward, nothing is computed within the loop over steps that can wait until its end: gradients of weight matrices are
single products over all steps, and of the states a step adds a matrix of rank 2 to those of its window.  Gates stand in
the order of torch: input, forget, cell, output.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.ops.cells.stack_lstm import slopes_of
from seqstruct.ops.first_derivatives import first_derivatives_only


def reading_lstm(
    gates: Tensor, keys: Tensor, log_gates: Tensor, memory: Tensor, recurrent: Tensor, key_weight: Tensor
) -> Tensor:
    """Hidden states and cells of all words with those before, B (S + T) 2h.

    gates: T B 4h, what the inputs contribute to the gates, bias included; keys: T B h, the same of the keys; log_gates:
    T B S, in nats, of the states before each step; memory: B S 2h, hidden states and cells before the first step, the
    newest last; recurrent: h 4h; key_weight: h h, K.
    O(T B (h^2 + S h)) time, O(B T (S + h)) memory.  First derivatives only.
    Raises ValueError if the shapes do not fit.
    """
    (B, S, both), T = memory.shape, gates.size(0)
    h = both // 2
    given = [tuple(x.shape) for x in (gates, keys, log_gates, recurrent, key_weight)]
    if not S or both != 2 * h or given != [(T, B, 4 * h), (T, B, h), (T, B, S), (h, 4 * h), (h, h)]:
        raise ValueError(
            f"expected gates T B 4h, keys T B h, logarithms of gates T B S, weights h 4h and h h, and a memory B S 2h, "
            f"got {given} and {tuple(memory.shape)}"
        )
    inputs = (gates, keys, log_gates, memory, recurrent, key_weight)
    dtype = torch.float32
    for x in inputs:
        dtype = torch.promote_types(dtype, x.dtype)
    with torch.autocast(gates.device.type, enabled=False):
        return _ReadingLSTM.apply(*(x.to(dtype) for x in inputs))


class _ReadingLSTM(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx, gates: Tensor, keys: Tensor, log_gates: Tensor, memory: Tensor, recurrent: Tensor, key_weight: Tensor
    ) -> Tensor:
        (T, B, h), S = keys.shape, memory.size(1)
        every = torch.cat([memory, memory.new_empty(B, T, 2 * h)], 1)
        active, bounded = gates.new_empty(T, B, 4 * h), gates.new_empty(T, B, h)
        asked, weights, readings = (keys.new_empty(T, B, 1, size) for size in (h, S, 2 * h))
        for t in range(T):
            window, (hidden, cell) = every.narrow(1, t, S), every[:, t + S].split(h, 1)
            torch.addmm(keys[t], every[:, t + S - 1, :h], key_weight, beta=h**-0.5, alpha=h**-0.5, out=asked[t, :, 0])
            scores = torch.baddbmm(log_gates[t].unsqueeze(1), asked[t], window[..., :h].transpose(1, 2))
            torch.softmax(scores, 2, out=weights[t])
            torch.bmm(weights[t], window, out=readings[t])
            total = torch.addmm(gates[t], readings[t, :, 0, :h], recurrent)
            enter, keep, new, show = torch.sigmoid(total, out=active[t]).split(h, 1)
            torch.tanh(total[:, 2 * h : 3 * h], out=new)
            torch.mul(enter, new, out=cell).addcmul_(keep, readings[t, :, 0, h:])
            torch.mul(show, torch.tanh(cell, out=bounded[t]), out=hidden)
        ctx.save_for_backward(every, active, bounded, asked, weights, readings, recurrent, key_weight)
        return every

    @staticmethod
    @first_derivatives_only
    def backward(ctx, grad: Tensor):
        every, active, bounded, asked, weights, readings, recurrent, key_weight = ctx.saved_tensors
        (T, B, h), S, grad = bounded.shape, weights.size(3), grad.clone()
        slopes, into_cells = slopes_of(active, readings[:, :, 0, h:], bounded)
        slopes, keep = slopes.view(T, B, 4, h), active[..., h : 2 * h]
        d_gates, d_keys = torch.empty_like(active), torch.empty_like(asked)
        left = torch.cat([weights, torch.empty_like(weights)], 2)  # T B 2 S: weights, gradients of scores
        right = torch.cat([torch.empty_like(readings), torch.nn.functional.pad(asked, (0, h))], 2)  # T B 2 2h
        back, key_back = recurrent.t(), key_weight.t()
        for t in range(T - 1, -1, -1):
            window, (d_hidden, d_cell) = every.narrow(1, t, S), grad[:, t + S].split(h, 1)
            d_cell = torch.addcmul(d_cell, d_hidden, into_cells[t])
            d_into, d_out = d_gates[t].view(B, 4, h).split([3, 1], 1)
            torch.mul(d_cell.unsqueeze(1), slopes[t, :, :3], out=d_into)
            torch.mul(d_hidden, slopes[t, :, 3], out=d_out.squeeze(1))
            d_read = right[t, :, :1]
            torch.mm(d_gates[t], back, out=d_read[:, 0, :h])
            torch.mul(d_cell, keep[t], out=d_read[:, 0, h:])
            share = weights[t] * torch.bmm(d_read, window.transpose(1, 2))
            d_scores = torch.addcmul(share, weights[t], share.sum(2, keepdim=True), value=-1, out=left[t, :, 1:])
            grad.narrow(1, t, S).baddbmm_(left[t].transpose(1, 2), right[t])
            torch.bmm(d_scores, window[..., :h], out=d_keys[t]).mul_(h**-0.5)
            grad[:, t + S - 1, :h].addmm_(d_keys[t, :, 0], key_back)
        before = every[:, S - 1 : S + T - 1, :h].transpose(0, 1)
        return (
            d_gates,
            d_keys.squeeze(2),
            left[:, :, 1],
            grad[:, :S],
            readings[:, :, 0, :h].flatten(0, 1).t() @ d_gates.flatten(0, 1),
            before.flatten(0, 1).t() @ d_keys.flatten(0, 2),
        )
