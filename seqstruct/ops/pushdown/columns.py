"""One step of the vector pushdown automaton from those before it, and the table that it needs, for decoding and tapes.

Times are 0 .. j.  For each time k, symbol y and state r on top the table holds one row:
* F_k[r y] as in `pushdown.scaled` (1 + m columns), and
* inner[i,k][q x -> r y] as in `pushdown.naive`, i = 0 .. k-1 (for each i symbols x, then states q).

The rows of one time are its column, B SQ (1 + m + k S Q), symbols slowest.  F and inner obey one recurrence, so one
product serves both:
    new = replace_j^T column_{j-1} + sum_{k<=j-2} gp[k->j]^T row_k,    gp[k->j] = pop_j^T inner[k,j-1],
to which inner[j-1,j] = push_j and F's own push term are added.  Weights are divided by the last total, which keeps
totals near 1; readings do not change by it.  Everything is float64.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

CPU = torch.device("cpu")
SMALLEST_TOTAL = 1e-280
LARGEST_INNER = 1e280
LINE = 8  # numbers of a cache line
FEW, LONG = 4, 1024  # matrices, and columns, from which on sums in place cost less than products that are then added

Part = tuple[int, int, Tensor]  # first time, how many, BS (times Q) columns


class Columns(NamedTuple):
    """Where the columns lie in a table B S L: for each time Q rows of `narrow` + time * SQ numbers.

    chunk: so many times lie after one another, each as wide as the last of them needs, up to whole cache lines; where a
    narrower one ends there are zeros.  times: no chunk has room for more.
    """

    states: int
    symbols: int
    narrow: int
    chunk: int
    times: int

    def width(self, time: int) -> int:
        """Numbers in a row."""
        return self.narrow + time * self.states * self.symbols

    def chunks(self, table: Tensor, times: int) -> list[Tensor]:
        """Of times 0 .. times-1, BS (chunk Q) columns each."""
        found, table = [], table.flatten(0, 1)
        (groups, _), step, first = table.shape, table.stride(0), table.storage_offset()
        for last, rows, wide in self.sizes(times):
            found.append(table.as_strided((groups, rows, self.width(last)), (step, wide, 1), first))
            first += rows * wide
        return found

    def sizes(self, times: int) -> Iterator[tuple[int, int, int]]:
        """The last time of each chunk, its rows, and how wide these are."""
        for first in range(0, times, self.chunk):
            last = min(first + self.chunk, self.times) - 1
            yield last, (last + 1 - first) * self.states, -(-self.width(last) // LINE) * LINE

    def room(self, times: int) -> int:
        """L for chunks of so many times."""
        return sum(rows * wide for _, rows, wide in self.sizes(times))

    def opened(self, table: Tensor, time: int) -> Tensor:
        """The table with room for a time, copied to one for a quarter more times where it has none."""
        place, at = divmod(time, self.chunk)
        if at:
            return table
        if self.room(time + 1) > table.size(2):
            grown = table.new_empty(*table.shape[:2], self.room(min(self.chunk * (place + 1 + place // 4), self.times)))
            grown[:, :, : table.size(2)] = table
            table = grown
        *_, (_, rows, wide) = self.sizes(time + 1)
        chunk = table.narrow(2, self.room(time), rows * wide).unflatten(2, (rows, wide))
        chunk[..., self.width(time) :].zero_()
        return table

    def column(self, chunks: list[Tensor], time: int) -> Tensor:
        """BS Q columns, of one time."""
        place, at = divmod(time, self.chunk)
        return chunks[place][:, at * self.states : (at + 1) * self.states, : self.width(time)]

    def put(self, chunks: list[Tensor], time: int, column: Tensor) -> None:
        row = self.column(chunks, time)
        row.copy_(column.view(row.shape))

    def parts(self, chunks: list[Tensor], times: int) -> list[Part]:
        """The rows of times 0 .. times-1, chunk by chunk, each as wide as its last time needs."""
        whole, rest = divmod(times, self.chunk)
        parts = [(i * self.chunk, self.chunk, chunks[i]) for i in range(whole)]
        if rest:
            part = chunks[whole][:, : rest * self.states, : self.width(times - 1)]
            parts.append((whole * self.chunk, rest, part))
        return parts


@lru_cache(maxsize=64)
@torch.inference_mode(False)  # what is cached may be used in training later
def step_order(states: int, symbols: int, size: int, device: torch.device = CPU) -> Tensor:
    """Which of A log-weights and m numbers to push stands where in the controls of a step, or of a tape, A+m long.

    The weights in the order of steps are [replace (y, r); pop r; push (y, r)] x (x, q).
    """
    top = states * symbols
    place = torch.arange(top * (2 * top + states), device=device).view(states, symbols, 2 * top + states)
    push, replace, pop = place.permute(2, 1, 0).flatten(1).split([top, top, states])  # [.., (x, q)]
    push, replace = (x.unflatten(0, (states, symbols)).transpose(0, 1).flatten(0, 1) for x in (push, replace))
    order = torch.cat([replace, pop, push]).flatten()
    return torch.cat([order, len(order) + torch.arange(size, device=device)])


def next_column(
    last: Tensor, parts: Iterable[Part], kept: Tensor, push: Tensor, vectors: Tensor, gates: Tensor
) -> tuple[Tensor, Tensor]:
    """The column after one step, B SQ (W + SQ), and the weights of all runs that push (y, r), B SQ 1.

    last: B SQ W, the column before; parts: the rows of all times but that; kept: B SQ+Q SQ, weights of replace (y, r)
    and pop r, each from (x, q); push: B SQ SQ, of push (y, r); vectors: B 1 1+m, 1 and the pushed vector; gates: BS Q
    (times Q), where gp is written.
    """
    B, top, width = last.shape
    states, narrow = kept.size(1) - top, vectors.size(2)
    symbols = top // states
    moved = torch.bmm(kept, last)
    column = torch.cat([moved.narrow(1, 0, top), push], 2)
    if width > narrow:
        inner = moved[:, top:, narrow:].view(B, states, (width - narrow) // top, symbols, states).permute(0, 3, 1, 2, 4)
        gates.view(inner.shape).copy_(inner)  # (B y) r (k u)
        new = column.view(B * symbols, states, width + top)
        for first, count, part in parts:
            gate, sums = gates.narrow(2, first * states, count * states), new.narrow(2, 0, part.size(2))
            if part.size(0) <= FEW and part.size(2) >= LONG:
                sums.baddbmm_(gate, part)
            else:
                sums.add_(torch.bmm(gate, part))
    landed = torch.bmm(push, last.narrow(2, 0, 1))
    column.narrow(2, 0, narrow).addcmul_(landed, vectors)
    return column, landed
