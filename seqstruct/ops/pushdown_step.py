"""The vector pushdown automaton one step at a time, for decoding and for recurrent models.

After j steps the table holds, for each time k = 0 .. j, symbol y and state r on top, one row of
* F_k[r y] as in `pushdown_scaled` (1 + m columns), and
* inner weights gamma[i->k][q x -> r y], i = 0 .. k-1 (for each i symbols x, then states q): runs from time i in (q, x)
  that push at step i + 1 and have that element, replaced or not, on top in (r, y) at time k.

Both obey one recurrence (DuSell and Chiang 2023), so one product serves both:
    new = replace_j^T column_{j-1} + sum_{k<=j-2} gp[k->j]^T row_k,    gp[k->j] = pop_j^T gamma[k->j-1],
to which gamma[j-1->j] = push_j and F's own push term are added.  Weights are divided by the last total, which keeps
totals near 1.  Everything is float64.  Where a total still leaves the range of float64, that row of the batch is read
in log space from the steps so far, which the state keeps.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from seqstruct.ops.pushdown_layout import arrange, scale, transition_count
from seqstruct.ops.pushdown_log import pushdown_log

SMALLEST_TOTAL = 1e-280
LARGEST_INNER = 1e280
CHUNK = 32  # times whose rows are read at once, as wide as the last of them needs


class PushdownState(NamedTuple):
    """All that runs of `length` steps leave behind.  Tensors may have room for more steps than that.

    table:  B S N Q (1 + m + (N-1) S Q), float64, N > length.
    logits: B N-1 A, the log-weights so far; pushed: B N-1 m, the vectors so far.
    scaled: B bool, whether the table is in range (else the row is read in log space).
    length: B long, the number of steps, the same in each row.  limit: B long, the most steps allowed, or -1.
    """

    table: Tensor
    logits: Tensor
    pushed: Tensor
    scaled: Tensor
    length: Tensor
    limit: Tensor


def pushdown_initial(
    bottom: Tensor, batch_size: int, *, states: int, symbols: int, max_length: int | None = None
) -> PushdownState:
    """The state before the first step: state 0, symbol 0 with the vector `bottom` (m) on the stack.

    max_length: the most steps that `pushdown_step` will take from here; None for no bound.
    Raises ValueError if a number is below 1.
    """
    count = transition_count(states, symbols)
    if max_length is not None and max_length < 1:
        raise ValueError(f"expected a max_length of 1 or more, got {max_length}")
    size = bottom.size(0)
    table = bottom.new_zeros(batch_size, symbols, 1, states, 1 + size, dtype=torch.float64)
    table[:, 0, 0, 0, 0] = 1.0
    table[:, 0, 0, 0, 1:] = bottom
    length = torch.zeros(batch_size, dtype=torch.long, device=bottom.device)
    return PushdownState(
        table,
        bottom.new_zeros(batch_size, 0, count, dtype=torch.float64),
        bottom.new_zeros(batch_size, 0, size),
        torch.ones_like(length, dtype=torch.bool),
        length,
        torch.full_like(length, -1 if max_length is None else max_length),
    )


def pushdown_step(state: PushdownState, logits: Tensor, pushed: Tensor, *, states: int, symbols: int) -> PushdownState:
    """The state after one more step; the old one is consumed.

    logits: B A log-weights; pushed: B m.  Without gradients cells beyond `length` are written in place and the
    tables double when they are full; with gradients a new table is made at each step.
    Raises ValueError if the shapes do not fit or the state's limit is reached.
    Cost: O(B t^2 S^2 Q^3) time at step t, O(B t S^2 Q^2) new memory.
    """
    _check(state, logits, pushed, states, symbols)
    done = _length(state)
    limit = int(state.limit[0]) if state.limit.numel() else -1
    if 0 <= limit <= done:
        raise ValueError(f"the stack has taken {done} steps and was made for at most {limit} (max_length)")
    tracked = torch.is_grad_enabled() and any(x.requires_grad for x in (state.table, logits, pushed))
    column, scaled = _column(state, done, logits.double(), pushed.double(), states, symbols)
    length = state.length + 1
    if tracked:
        table = pad(_visible(state, done), (0, states * symbols))
        return PushdownState(
            torch.cat([table, column.unsqueeze(2)], 2),
            torch.cat([state.logits[:, :done], logits.double().unsqueeze(1)], 1),
            torch.cat([state.pushed[:, :done], pushed.to(state.pushed.dtype).unsqueeze(1)], 1),
            scaled,
            length,
            state.limit,
        )
    table, seen, vectors = _room(state, done, states * symbols)
    table[:, :, done + 1, :, : column.size(3)] = column
    seen[:, done] = logits
    vectors[:, done] = pushed
    return PushdownState(table, seen, vectors, scaled, length, state.limit)


def pushdown_reading(state: PushdownState) -> Tensor:
    """Readings after the last step, B (Q S m), in the data type of the bottom vector; zeros where no run is left.

    Before the first step: the bottom vector in state 0 and symbol 0.
    """
    done = _length(state)
    size = state.pushed.size(2)
    now = state.table[:, :, done, :, : 1 + size]  # B S Q 1+m
    totals = now[..., :1].sum((1, 2), keepdim=True)
    totals = torch.where(state.scaled[:, None, None, None], totals, torch.ones_like(totals))
    readings = (now[..., 1:] / totals).transpose(1, 2)  # B Q S m
    rows = (~state.scaled).nonzero().squeeze(1)
    if rows.numel():
        readings = readings.index_copy(0, rows, _exact(state, rows, done))
    return readings.flatten(1).to(state.pushed.dtype)


def _exact(state: PushdownState, rows: Tensor, done: int) -> Tensor:
    """The last readings of some rows of the batch, in log space."""
    size, (symbols, _, states) = state.pushed.size(2), state.table.shape[1:4]
    seen = (x.index_select(0, rows)[:, :done].double() for x in (state.logits, state.pushed))
    bottom = state.table[:, 0, 0, 0, 1 : 1 + size].index_select(0, rows)
    return pushdown_log(*seen, bottom, states, symbols)[:, -1]


def _length(state: PushdownState) -> int:
    lengths = set(state.length.tolist())
    if len(lengths) > 1:
        raise ValueError(f"expected a pushdown state of one length, got rows of {sorted(lengths)} steps")
    return lengths.pop() if lengths else 0


def _visible(state: PushdownState, done: int) -> Tensor:
    top = state.table.size(1) * state.table.size(3)
    return state.table[:, :, : done + 1, :, : 1 + state.pushed.size(2) + done * top]


def _column(
    state: PushdownState, done: int, logits: Tensor, pushed: Tensor, states: int, symbols: int
) -> tuple[Tensor, Tensor]:
    """The table's row of time done + 1, B S Q (1 + m + (done+1) S Q), and which rows of the batch are in range."""
    B, size, top = pushed.size(0), pushed.size(1), states * symbols
    table = _visible(state, done)
    width = table.size(4)
    last = table[:, :, done].flatten(1, 2)  # B SQ width
    totals = last[:, :, 0].detach().sum(1)[:, None, None]
    totals = torch.where(state.scaled[:, None, None], totals, torch.ones_like(totals))
    steps = logits.unsqueeze(1)
    weights = arrange((steps - scale(steps, states, symbols)).exp() / totals, states, symbols)
    push, replace = weights.moves[0].transpose(1, 2).split(top, 2)  # B SQ SQ: [(y, r), (x, q)]
    pops = weights.pops[0].flatten(1, 2).transpose(1, 2)  # B Q SQ
    moved = torch.bmm(torch.cat([replace, pops], 1), last)  # B SQ+Q width
    new = moved[:, :top].unflatten(1, (symbols, states))
    if done:
        new = new + _popped(table, moved[:, top:, 1 + size :].unflatten(2, (done, symbols, states)))
    entered = torch.cat([pushed.new_ones(B, 1), pushed], 1).unsqueeze(1)  # B 1 1+m
    own = torch.bmm(torch.bmm(push, last[:, :, :1]), entered)  # B SQ 1+m
    new = new + pad(own, (0, width - 1 - size)).unflatten(1, (symbols, states))
    new = torch.cat([new, push.unflatten(1, (symbols, states))], 3)
    with torch.no_grad():
        total = new[..., 0].sum((1, 2))
        largest = new.abs().amax((1, 2, 3))
        scaled = state.scaled & (total >= SMALLEST_TOTAL) & (largest <= LARGEST_INNER)
    return torch.where(scaled[:, None, None, None], new, torch.zeros_like(new)), scaled


def _popped(table: Tensor, inner: Tensor) -> Tensor:
    """Sum over times k of gp[k->j]^T row_k: inner is gp, B r k y t; the result B S Q width."""
    B, S, Q, width = table.size(0), table.size(1), table.size(3), table.size(4)
    top, steps = S * Q, inner.size(2)
    gates = inner.permute(0, 3, 1, 2, 4).reshape(B * S, Q, steps * Q)  # (B y) r (k t)
    narrow = width - steps * top  # columns of F
    total = None
    for start in range(0, steps, CHUNK):
        stop = min(start + CHUNK, steps)
        columns = narrow + (stop - 1) * top
        rows = table[:, :, start:stop, :, :columns].reshape(B * S, (stop - start) * Q, columns)
        part = pad(torch.bmm(gates[:, :, start * Q : stop * Q], rows), (0, width - columns))
        total = part if total is None else total + part
    return total.view(B, S, Q, width)


def _room(state: PushdownState, done: int, top: int) -> tuple[Tensor, Tensor, Tensor]:
    """The state's tensors, or copies of twice the size if there is no room for one more step."""
    table, logits, pushed = state.table, state.logits, state.pushed
    if table.size(2) > done + 1:
        return table, logits, pushed
    more = max(16, 2 * (done + 1))
    B, S, _, Q, _ = table.shape
    visible = _visible(state, done)
    grown = table.new_zeros(B, S, more, Q, 1 + pushed.size(2) + (more - 1) * top)
    grown[:, :, : done + 1, :, : visible.size(4)] = visible
    return grown, *(pad(x[:, :done], (0, 0, 0, more - 1 - done)) for x in (logits, pushed))


def _check(state: PushdownState, logits: Tensor, pushed: Tensor, states: int, symbols: int) -> None:
    B, count = state.table.size(0), transition_count(states, symbols)
    if logits.shape != (B, count) or pushed.shape != (B, state.pushed.size(2)):
        raise ValueError(
            f"expected logits {B} {count} and pushed {B} {state.pushed.size(2)}, "
            f"got {tuple(logits.shape)} and {tuple(pushed.shape)}"
        )
