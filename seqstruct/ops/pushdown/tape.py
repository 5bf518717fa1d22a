"""The vector pushdown automaton within a recurrent network: all steps of a sequence of known length, and back.

The recurrences are those of `pushdown.columns`; tables, weights and readings lie in buffers made beforehand.  A column
of the table is not needed any more when the backward pass comes to its step, so its adjoint takes its place.
Controls and readings are arranged as steps need them: `step_order` and `reading_order`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

import torch
from torch import Tensor

from seqstruct.ops.pushdown.columns import CPU, LARGEST_INNER, SMALLEST_TOTAL, Columns, next_column
from seqstruct.ops.pushdown.layout import LARGEST_READING, pushed_vectors, transition_count


@lru_cache(maxsize=64)
@torch.inference_mode(False)  # as of `step_order`
def reading_order(states: int, symbols: int, size: int, device: torch.device = CPU) -> Tensor:
    """Which part of a reading (Q S m) stands where in that of a tape (S Q m), QSm long."""
    place = torch.arange(states * symbols * size, device=device)
    return place.view(states, symbols, size).transpose(0, 1).flatten()


class PushdownTape:
    """A `StackTape`; readings B (S Q m), controls B A+m.  `CompiledPushdownTape` is the same in compiled form.

    chunks, gates: for every CHUNK times one tensor BS (times Q) columns each, of the columns, which adjoints replace,
    and of gp, as wide as the last time needs; zero where a narrower time ends.
    O(B T^3 S^2 Q^3) time, O(B T^2 S^2 Q^2) memory.
    """

    CHUNK: ClassVar[int] = 16  # times whose rows lie together

    def __init__(self, bottom: Tensor, steps: int, *, states: int, symbols: int, sigmoid: bool):
        """bottom: B m; sigmoid: whether a pushed vector is the logistic function of its controls, or exp of them."""
        B, size = bottom.shape
        self.states, self.symbols, self.size, self.sigmoid = states, symbols, size, sigmoid
        self.top, self.narrow, self.batch, self.steps = states * symbols, 1 + size, B, steps
        self.reading_size = self.top * size
        self.bottom = bottom.double()
        self.count = transition_count(states, symbols)
        weights, vectors = self._room(steps, B, self.count), self._room(steps, B, 1, 1 + size)
        vectors[..., 0] = 1.0
        kept = (self.top + states) * self.top
        self.weights = weights.unbind(0)
        self.kept = weights[:, :, :kept].unflatten(2, (-1, self.top)).unbind(0)
        self.push = weights[:, :, kept:].unflatten(2, (-1, self.top)).unbind(0)
        self.all_pushed = vectors[:, :, 0, 1:]
        self.vectors, self.pushed = vectors.unbind(0), self.all_pushed.unbind(0)
        self.landed = list(self._room(steps, B, self.top, 1).unbind(0))
        self.readings = self._room(steps, B, self.top, size).unbind(0)
        self.all_totals = self._room(steps + 1, B)
        self.totals = self.all_totals.unbind(0)
        self.columns = Columns(states, symbols, self.narrow, self.CHUNK, steps + 1)
        self._make_tables()
        self.whole = True  # whether the table still has its columns
        self._begin()

    def _room(self, *shape: int) -> Tensor:
        return self.bottom.new_empty(*shape)

    def _make_tables(self) -> None:
        groups, sizes = self.batch * self.symbols, list(self.columns.sizes(self.steps + 1))
        self.chunks = [self._room(groups, rows, self.columns.width(last)) for last, rows, _ in sizes]
        self.gates = [self.bottom.new_zeros(groups, rows, last * self.states) for last, rows, _ in sizes]

    def _begin(self) -> None:
        """The column of time 0."""
        self.length = 0
        self.column = self.bottom.new_zeros(self.batch, self.top, self.narrow)
        self.column[:, 0, 0] = 1.0
        self.column[:, 0, 1:] = self.bottom
        self.totals[0].fill_(1.0)
        self._put_column()

    def first_reading(self, reading: Tensor) -> None:
        """The bottom vector in state 0 and symbol 0."""
        reading.zero_()[:, : self.size] = self.bottom

    def step(self, controls: Tensor, reading: Tensor) -> None:
        """Weights of the step sum to 1 over the last total; readings do not depend on what they sum to."""
        now = self.length
        logits, pushed = controls.double().split([self.count, self.size], 1)
        torch.softmax(logits, 1, out=self.weights[now]).div_(self.totals[now].unsqueeze(1))
        self.pushed[now].copy_(pushed_vectors(pushed, sigmoid=self.sigmoid))
        self._advance()
        torch.div(self.column.narrow(2, 1, self.size), self.totals[now + 1][:, None, None], out=self.readings[now])
        reading.copy_(self.readings[now].flatten(1).clamp(max=LARGEST_READING))

    def in_range(self) -> Tensor:
        """Rows whose totals were neither too small nor lost, and whose inner weights were not too large."""
        trusted = (self.all_totals >= SMALLEST_TOTAL).all(0)
        if not all(x <= LARGEST_INNER for x in torch.stack([chunk.amax() for chunk in self.chunks]).tolist()):
            for chunk in self.chunks:
                trusted &= chunk.unflatten(0, (self.batch, -1)).amax((1, 2, 3)) <= LARGEST_INNER
        return trusted

    def _advance(self) -> None:
        """From the column of time `length` and the step's weights to the next column and its total."""
        now = self.length
        place, at = divmod(now + 1, self.CHUNK)
        gates = self.gates[place].narrow(1, at * self.states, self.states).narrow(2, 0, now * self.states)
        parts = self.columns.parts(self.chunks, now)
        step = self.kept[now], self.push[now], self.vectors[now]
        self.column, self.landed[now] = next_column(self.column, parts, *step, gates)
        torch.sum(self.column.select(2, 0), 1, out=self.totals[now + 1])
        self.length = now + 1
        self._put_column()

    def _put_column(self) -> None:
        """The last column into the table; where its chunk begins with it narrower rows than others end in zeros."""
        place, at = divmod(self.length, self.CHUNK)
        if at == 0:
            self.chunks[place][:, :, self.column.size(2) :].zero_()
        self.columns.put(self.chunks, self.length, self.column)

    def begin_backward(self) -> None:
        """A second pass finds adjoints in the table, so it fills that anew."""
        if not self.whole:
            self._begin()
            while self.length < self.steps:
                self._advance()
        self.whole = self.steps == 0
        self.pending = torch.zeros_like(self.column)
        self.slopes = (self.all_pushed * (1 - self.all_pushed) if self.sigmoid else self.all_pushed).unbind(0)

    def step_backward(self, grad_reading: Tensor, grad_controls: Tensor) -> None:
        """`pending` is the adjoint of the last column, then that of the one before."""
        self.length -= 1
        now, top, narrow, adjoint = self.length, self.top, self.narrow, self.pending
        vectors = (grad_reading / self.totals[now + 1].unsqueeze(1)).view(self.batch, top, self.size)  # float64
        lost = torch.bmm(vectors.view(self.batch, 1, -1), self.readings[now].view(self.batch, -1, 1))
        adjoint.narrow(2, 1, self.size).add_(vectors)
        adjoint.select(2, 0).sub_(lost.squeeze(2))
        self.columns.put(self.chunks, now + 1, adjoint)
        before = self.columns.column(self.chunks, now).reshape(self.batch, top, -1)
        kept, push = self.kept[now], self.push[now]
        moved = self._moved(adjoint, before.size(2))
        into = torch.bmm(adjoint.narrow(2, 0, narrow), self.vectors[now].transpose(1, 2))  # B SQ 1
        alpha = before.narrow(2, 0, 1)
        d_push = torch.baddbmm(adjoint.narrow(2, before.size(2), top), into, alpha.transpose(1, 2))
        d_pushed = torch.bmm(self.landed[now].transpose(1, 2), adjoint.narrow(2, 1, self.size)).squeeze(1)
        d_kept, d_new, d_vector = grad_controls.split([kept.size(1) * top, top * top, self.size], 1)
        torch.mul(torch.bmm(moved, before.transpose(1, 2)), kept, out=d_kept.unflatten(1, (-1, top)))
        torch.mul(d_push, push, out=d_new.unflatten(1, (-1, top)))
        torch.mul(d_pushed, self.slopes[now], out=d_vector)
        carried = torch.bmm(kept.transpose(1, 2), moved)
        carried.narrow(2, 0, 1).add_(torch.bmm(push.transpose(1, 2), into))
        self._gather(now, carried.view(self.batch * self.symbols, self.states, -1))
        self.pending = carried

    def _moved(self, adjoint: Tensor, width: int) -> Tensor:
        """The adjoint of what replacements and pops made of a column `width` wide: B SQ+Q width."""
        now, states, symbols, top, narrow = self.length, self.states, self.symbols, self.top, self.narrow
        moved = self._room(self.batch, top + states, width)
        moved.narrow(1, 0, top).copy_(adjoint.narrow(2, 0, width))
        popped = moved.narrow(1, top, states)
        popped.narrow(2, 0, narrow).zero_()
        if now:
            inner = popped.narrow(2, narrow, now * top).unflatten(2, (now, symbols, states)).permute(0, 3, 1, 2, 4)
            new = adjoint.view(self.batch * symbols, states, -1)
            for first, count, part in self.columns.parts(self.chunks, now):
                d_gates = torch.bmm(new.narrow(2, 0, part.size(2)), part.transpose(1, 2))
                inner.narrow(3, first, count).copy_(d_gates.view(self.batch, symbols, states, count, states))
        return moved

    def _gather(self, time: int, adjoint: Tensor) -> None:
        """Add to the adjoint of a time, BS Q W, what later columns had from it, by gp.

        What a whole chunk of times gave to the chunks after it is one product, made when the first of these is
        complete.
        """
        states, (place, at) = self.states, divmod(time, self.CHUNK)
        width = adjoint.size(2)
        if at + 1 == self.CHUNK or time + 1 == self.steps:
            self.beyond = None
            columns = slice(place * self.CHUNK * states, (time + 1) * states)
            for gates, later in zip(self.gates[place + 1 :], self.chunks[place + 1 :], strict=True):
                given = gates[:, :, columns].transpose(1, 2), later.narrow(2, 0, width)
                self.beyond = torch.bmm(*given) if self.beyond is None else self.beyond.baddbmm_(*given)
        if self.beyond is not None:
            adjoint.add_(self.beyond.narrow(1, at * states, states).narrow(2, 0, width))
        chunk = self.chunks[place]
        first = (at + 2) * states
        if first < chunk.size(1):
            rows = chunk.size(1) - first
            gates = self.gates[place].narrow(1, first, rows).narrow(2, time * states, states)
            adjoint.add_(torch.bmm(gates.transpose(1, 2), chunk.narrow(1, first, rows).narrow(2, 0, width)))

    def start_gradient(self, grad_reading: Tensor) -> Tensor:
        """Of the bottom vectors, B m."""
        return (self.pending[:, 0, 1 : self.narrow] + grad_reading[:, : self.size]).to(grad_reading.dtype)
