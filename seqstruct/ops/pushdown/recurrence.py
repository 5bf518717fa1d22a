"""One step of the vector pushdown automaton, and the chain of such steps that gradients flow back through.

Times are 0 .. j.  For each time k, symbol y and state r on top the table holds one row:
* F_k[r y] as in `pushdown.scaled` (1 + m columns), and
* inner weights gamma[i->k][q x -> r y], i = 0 .. k-1 (for each i symbols x, then states q): runs from time i in (q, x)
  that push at step i + 1 and have that element, replaced or not, on top in (r, y) at time k.

The rows of one time are its column, B SQ (1 + m + k S Q), symbols slowest.  F and gamma obey one recurrence (DuSell and
Chiang 2023), so one product serves both:
    new = replace_j^T column_{j-1} + sum_{k<=j-2} gp[k->j]^T row_k,    gp[k->j] = pop_j^T gamma[k->j-1],
to which gamma[j-1->j] = push_j and F's own push term are added.  Weights are divided by the last total, which keeps
totals near 1; readings do not change by it.  Everything is float64.

With gradients, the steps of one sequence share a `Recurrence` and are autograd functions linked by a token.  The
backward pass has a second table, of adjoints: that of time k is gathered from those of all later times when its turn
comes, so tables are only read, never updated as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import torch
from torch import Tensor

from seqstruct.ops.first_derivatives import first_derivatives_only

SMALLEST_TOTAL = 1e-280
LARGEST_INNER = 1e280
CHUNK = 16  # times whose rows lie together

Part = tuple[int, int, Tensor]  # first time, time after the last, BS (times Q) columns


@lru_cache(maxsize=64)
def step_order(states: int, symbols: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Where the log-weights A go in [replace (y, r); pop r; push (y, r)] x (x, q), and the way back."""
    top = states * symbols
    place = torch.arange(top * (2 * top + states), device=device).view(states, symbols, 2 * top + states)
    push, replace, pop = place.permute(2, 1, 0).flatten(1).split([top, top, states])  # [.., (x, q)]
    push, replace = (x.unflatten(0, (states, symbols)).transpose(0, 1).flatten(0, 1) for x in (push, replace))
    order = torch.cat([replace, pop, push]).flatten()
    return order, order.argsort()


def step_weights(logits: Tensor, totals: Tensor, states: int, symbols: int) -> Tensor:
    """Weights of one step, B (SQ + Q + SQ) SQ: replace (y, r), pop r, push (y, r), each from (x, q).

    logits: B A, float64; totals: B.  All weights of a step together sum to 1 / totals; where the step has no transition
    they are not numbers.
    """
    order = step_order(states, symbols, logits.device)[0]
    weights = torch.softmax(logits.index_select(1, order), 1)
    return weights.div_(totals.unsqueeze(1)).unflatten(1, (-1, states * symbols))


def next_column(
    last: Tensor, rows: Iterable[Part], weights: Tensor, pushed: Tensor, scaled: Tensor, symbols: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The column after one step.

    last: B SQ W, the column before; rows: those of all times but the last; weights: see `step_weights`; pushed: B m;
    scaled: B bool, whether the row of the batch has been in range so far.
    Returns the column B SQ (W + SQ), its totals B (1 where out of range), gp as BS Q (times Q), and `scaled` anew;
    column and gp are 0 where out of range, and so are the weights from then on.
    """
    B, top, width = last.shape
    states, narrow = top // symbols, 1 + pushed.size(1)
    moved = torch.bmm(weights, last)
    column = torch.cat([moved[:, :top], weights[:, top + states :]], 2)
    gates = moved.new_zeros(B * symbols, states, 0)
    if width > narrow:
        inner = moved[:, top : top + states, narrow:].unflatten(2, (-1, symbols, states))
        gates = inner.permute(0, 3, 1, 2, 4).flatten(3).flatten(0, 1)  # (B y) r (k t)
        new = column.view(B * symbols, states, width + top)
        for first, after, part in rows:
            new[:, :, : part.size(2)].baddbmm_(gates[:, :, first * states : after * states], part)
    landed = moved[:, top + states :, :1]
    column[:, :, :1].add_(landed)
    column[:, :, 1:narrow].addcmul_(landed, pushed.unsqueeze(1))
    totals = column[:, :, 0].sum(1)
    largest = column[:, :, narrow:].amax((1, 2))
    if not all(x >= SMALLEST_TOTAL for x in totals.tolist()) or not all(x <= LARGEST_INNER for x in largest.tolist()):
        scaled = scaled & (totals >= SMALLEST_TOTAL) & (largest <= LARGEST_INNER)
        out = ~scaled
        for x in (weights, column):
            x.masked_fill_(out[:, None, None], 0.0)
        gates.masked_fill_(out.repeat_interleave(symbols)[:, None, None], 0.0)
        totals = totals.masked_fill(out, 1.0)
    return column, totals, gates, scaled


def read_column(column: Tensor, totals: Tensor, size: int, symbols: int) -> Tensor:
    """Readings B (Q S m) of a column B SQ (1 + m + ..)."""
    shares = column[:, :, 1 : 1 + size] / totals[:, None, None]
    return shares.unflatten(1, (symbols, -1)).transpose(1, 2).flatten(1)


class _Rows:
    """For each time a matrix of Q rows for every row of the batch and symbol, `narrow` + time * `more` columns wide.

    Chunks B S CHUNK Q columns are as wide as their last time needs, and zero where nothing was put.
    """

    def __init__(self, like: Tensor, symbols: int, states: int, narrow: int, more: int):
        self.like, self.sizes = like, (like.size(0), symbols, CHUNK, states)
        self.narrow, self.more = narrow, more
        self.chunks: list[Tensor] = []

    def put(self, time: int, values: Tensor) -> None:
        """values: B SQ w, w no more than the width at that time."""
        place, at = divmod(time, CHUNK)
        while len(self.chunks) <= place:
            most = self.narrow + ((len(self.chunks) + 1) * CHUNK - 1) * self.more
            self.chunks.append(self.like.new_zeros(*self.sizes, most, dtype=torch.float64))
        batch, symbols, _, states = self.sizes
        width = values.size(-1)
        self.chunks[place][:, :, at, :, :width] = values.view(batch, symbols, states, width)

    def get(self, time: int) -> Tensor:
        """The matrices of one time, B SQ w."""
        place, at = divmod(time, CHUNK)
        return self.chunks[place][:, :, at, :, : self.narrow + time * self.more].flatten(1, 2)

    def parts(self, first: int, after: int) -> Iterator[Part]:
        """Times first .. after-1, chunk by chunk, each as wide as its last time here."""
        states = self.sizes[3]
        while first < after:
            place, at = divmod(first, CHUNK)
            stop = min(after, (place + 1) * CHUNK)
            width = self.narrow + (stop - 1) * self.more
            part = self.chunks[place].flatten(2, 3).flatten(0, 1)
            yield first, stop, part[:, at * states : (at + stop - first) * states, :width]
            first = stop


class Recurrence:
    """What the steps of one batch of sequences share.  Only the last state of the chain goes on from here.

    length: steps taken.  scaled: B bool, which rows have stayed in range.  Of the backward pass under way: pending, the
    adjoint of the column whose turn is next; beyond, see `_gather`; last_adjoint, the step that the pass began with.
    Memory: O(B T^2 S^2 Q^2), twice that once the backward pass has begun.
    """

    def __init__(self, bottom: Tensor, *, states: int, symbols: int):
        """bottom: B m, the vector of the bottom element of each row; `start` makes the first token."""
        B, size = bottom.shape
        self.states, self.symbols, self.size, self.length = states, symbols, size, 0
        self.table, self.adjoints = (_Rows(bottom, symbols, states, 1 + size, states * symbols) for _ in range(2))
        self.gates = _Rows(bottom, symbols, states, 0, states)
        self.column = bottom.new_zeros(B, states * symbols, 1 + size, dtype=torch.float64)
        self.column[:, 0, 0] = 1.0
        self.column[:, 0, 1:] = bottom.detach()
        self.table.put(0, self.column)
        self.totals = self.column.new_ones(B)
        self.scaled = self.totals.bool()
        self.pending: Tensor | None = None
        self.beyond: Tensor | None = None
        self.last_adjoint = 0

    def start(self, bottom: Tensor) -> Tensor:
        """The token B before the first step; the gradient of the bottom vectors B m flows through it."""
        return _Start.apply(bottom, self)

    def step(
        self, token: Tensor, history: Tensor, logits: Tensor, pushed: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """One more step.

        token: B, what the step before returned; history: B j A+m, log-weights and pushed vectors of the j steps
        before; logits: B A; pushed: B m.
        Returns the next token, the reading B (Q S m) in float64 (0 where out of range), the longer history, and which
        rows are in range, B bool.  First derivatives only.
        """
        return _Step.apply(token, history, logits, pushed, self)


def recurrence_of(token: Tensor, length: int) -> Recurrence | None:
    """The recurrence whose step number `length` returned this very token; None of any other tensor."""
    recurrence = getattr(token.grad_fn, "recurrence", None)
    return recurrence if recurrence is not None and recurrence.length == length else None


class _Start(torch.autograd.Function):
    @staticmethod
    def forward(ctx, bottom: Tensor, recurrence: Recurrence) -> Tensor:
        ctx.recurrence, ctx.dtype = recurrence, bottom.dtype
        return recurrence.column.new_zeros(bottom.size(0))

    @staticmethod
    @first_derivatives_only
    def backward(ctx, grad_token: Tensor):
        return ctx.recurrence.pending[:, 0, 1 : 1 + ctx.recurrence.size].to(ctx.dtype), None


class _Step(torch.autograd.Function):
    """The gradient of a token carries no number: that there is one says that the next step's backward pass has run."""

    @staticmethod
    def forward(ctx, token: Tensor, history: Tensor, logits: Tensor, pushed: Tensor, recurrence: Recurrence):
        chain = recurrence
        vectors = pushed.double()
        weights = step_weights(logits.double(), chain.totals, chain.states, chain.symbols)
        rows = chain.table.parts(0, chain.length)
        column, totals, gates, scaled = next_column(chain.column, rows, weights, vectors, chain.scaled, chain.symbols)
        reading = read_column(column, totals, chain.size, chain.symbols)
        chain.length += 1
        chain.column, chain.totals, chain.scaled = column, totals, scaled
        chain.table.put(chain.length, column)
        if gates.size(2):
            chain.gates.put(chain.length, gates)
        ctx.save_for_backward(weights, vectors, totals, reading)
        ctx.recurrence, ctx.time, ctx.dtypes = chain, chain.length, (logits.dtype, pushed.dtype)
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(scaled)
        longer = torch.cat([history, torch.cat([logits.double(), vectors], 1).unsqueeze(1)], 1)
        return torch.zeros_like(token), reading, longer, scaled

    @staticmethod
    @first_derivatives_only
    def backward(ctx, grad_token: Tensor | None, grad_reading: Tensor | None, grad_history: Tensor | None, _: None):
        weights, vectors, totals, reading = ctx.saved_tensors
        chain, time = ctx.recurrence, ctx.time
        adjoint = chain.pending
        if grad_token is None:
            chain.last_adjoint = time
            adjoint = weights.new_zeros(
                len(weights), weights.size(2), 1 + chain.size + time * chain.states * chain.symbols
            )
        if grad_reading is not None:
            _add_reading_gradient(adjoint, grad_reading, reading, totals, chain)
        d_weights, d_pushed = _step_adjoint(chain, time, adjoint, weights, vectors)
        back = step_order(chain.states, chain.symbols, weights.device)[1]
        d_logits = d_weights.mul_(weights).flatten(1).index_select(1, back)
        d_history = None
        if grad_history is not None:
            own, d_history = grad_history[:, -1], grad_history[:, :-1]
            d_logits = d_logits + own[:, : d_logits.size(1)]
            d_pushed = d_pushed + own[:, d_logits.size(1) :]
        logits_type, pushed_type = ctx.dtypes
        return totals.new_zeros(totals.shape), d_history, d_logits.to(logits_type), d_pushed.to(pushed_type), None


def _add_reading_gradient(adjoint: Tensor, grad: Tensor, reading: Tensor, totals: Tensor, chain: Recurrence) -> None:
    """Of F's columns, in place: reading = F[:, 1:] / total."""
    grad = grad / totals.unsqueeze(1)
    vectors = grad.unflatten(1, (chain.states, chain.symbols, chain.size)).transpose(1, 2).flatten(1, 2)
    adjoint[:, :, 1 : 1 + chain.size].add_(vectors)
    adjoint[:, :, 0].sub_((grad * reading).sum(1, keepdim=True))


def _step_adjoint(
    chain: Recurrence, time: int, adjoint: Tensor, weights: Tensor, vectors: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of the step's weights and pushed vectors; leaves the adjoint of the column before as `chain.pending`.

    adjoint: B SQ W, of this step's column, complete.
    """
    states, symbols, narrow = chain.states, chain.symbols, 1 + chain.size
    B, top = len(weights), states * symbols
    chain.adjoints.put(time, adjoint)
    before = chain.table.get(time - 1)
    width = before.size(2)
    kept, push = weights.split([top + states, top], 1)
    moved = adjoint.new_empty(B, top + states, width)
    moved[:, :top] = adjoint[:, :, :width]
    moved[:, top:, :narrow] = 0.0
    inner = moved[:, top:, narrow:].unflatten(2, (time - 1, symbols, states))
    d_new = adjoint.unflatten(1, (symbols, states)).flatten(0, 1)
    for first, after, part in chain.table.parts(0, time - 1):
        d_gates = torch.bmm(d_new[:, :, : part.size(2)], part.transpose(1, 2))
        inner[:, :, first:after] = d_gates.view(B, symbols, states, after - first, states).permute(0, 2, 3, 1, 4)
    d_weights = weights.new_empty(weights.shape)
    torch.bmm(moved, before.transpose(1, 2), out=d_weights[:, : top + states])
    alpha = before[:, :, :1]
    into = adjoint[:, :, :1] + torch.bmm(adjoint[:, :, 1:narrow], vectors.unsqueeze(2))  # B SQ 1
    torch.add(adjoint[:, :, width:], into * alpha.transpose(1, 2), out=d_weights[:, top + states :])
    d_pushed = (torch.bmm(push, alpha) * adjoint[:, :, 1:narrow]).sum(1)
    carried = torch.bmm(kept.transpose(1, 2), moved)
    carried[:, :, :1].add_(torch.bmm(push.transpose(1, 2), into))
    _gather(chain, time - 1, carried.view(B * symbols, states, width))
    chain.pending = carried
    return d_weights, d_pushed


def _gather(chain: Recurrence, time: int, adjoint: Tensor) -> None:
    """Add to the adjoint of one time, BS Q W, what later columns had from its rows, by gp.

    What a whole chunk of times gave to the chunks after it is one product, made when the first of these is complete.
    """
    states, after = chain.states, (time // CHUNK + 1) * CHUNK
    if time + 1 == after:
        chain.beyond = _given(chain, after, chain.last_adjoint + 1, after - CHUNK, after)
    if chain.last_adjoint >= after:
        row = (time % CHUNK) * states
        adjoint.add_(chain.beyond[:, row : row + states, : adjoint.size(2)])
    near = _given(chain, time + 2, min(after, chain.last_adjoint + 1), time, time + 1)
    if near is not None:
        adjoint.add_(near)


def _given(chain: Recurrence, first: int, after: int, time: int, until: int) -> Tensor | None:
    """What times first .. after-1 had from times time .. until-1, BS (times Q) columns; None if there are none."""
    columns = slice(time * chain.states, until * chain.states)
    width = 1 + chain.size + (until - 1) * chain.states * chain.symbols
    total = None
    for (*_, gates), (*_, adjoints) in zip(
        chain.gates.parts(first, after), chain.adjoints.parts(first, after), strict=True
    ):
        gates, adjoints = gates[:, :, columns].transpose(1, 2), adjoints[:, :, :width]
        total = torch.bmm(gates, adjoints) if total is None else total.baddbmm_(gates, adjoints)
    return total
