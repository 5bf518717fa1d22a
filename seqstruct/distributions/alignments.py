"""Distributions over alignments of two sequences: monotone, by edits, and of connectionist temporal classification."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from seqstruct.distributions.base import Parts, StructuredDistribution, before, spread
from seqstruct.ops.masking import fails
from seqstruct.ops.semiring import LogSemiring
from seqstruct.ops.symbols import whole_numbers

KINDS = ("monotone", "edit", "ctc")


class Alignment(StructuredDistribution):
    """Alignments of T rows with S columns, of one of three kinds.

    * monotone: scores * T S.  Each row t has one column a_t, and a_1 <= ... <= a_T; [t, s] is the part a_t = s.
    * edit: scores * T+1 S+1 3 (Needleman and Wunsch 1970).  A path from (0, 0) to the lengths; [i, j, op] is the part
      that steps into (i, j): from (i-1, j) by op 0, from (i-1, j-1) by op 1, from (i, j-1) by op 2.
    * ctc: scores * T U (Graves et al. 2006), U columns for blank, first label, blank, ..., last label, blank, as `ctc`
      makes them of log-probabilities.  Each row has one column, which is that of the row before, the next, or, where
      `may_skip` (* U bool) says so, the next but one; the first is one of the first two, the last one of the last two.

    lengths: *, T of each row of a batch; widths: *, S (ctc: U, odd), None for the greatest.  Without rows there is one
    monotone alignment, the empty one; one by edits, if there are no columns either; one of ctc, if there is no label.
    The edits and monotone alignments of all T + S antidiagonals, of up to T points each, are found one after the other,
    O(B T (T + S)) for each operation; those of ctc row by row, O(B T U).
    """

    kinds = ("scores",)
    of_rows = (*StructuredDistribution.of_rows, "widths", "may_skip")

    def __init__(
        self,
        scores: Tensor,
        *,
        kind: str = "monotone",
        lengths: Tensor | None = None,
        widths: Tensor | None = None,
        may_skip: Tensor | None = None,
    ) -> None:
        """Raises ValueError also if the kind is unknown, or one of ctc has no `may_skip` or an even width."""
        if kind not in KINDS:
            raise ValueError(f"expected a kind of {', '.join(KINDS)}, got {kind!r}")
        if (kind == "ctc") != (may_skip is not None):
            raise ValueError("expected may_skip with the kind ctc, and with no other")
        if may_skip is not None and may_skip.dtype != torch.bool:
            raise ValueError(f"expected may_skip * U bool, got {tuple(may_skip.shape)} {may_skip.dtype}")
        self.kind, self.ranks = kind, (3,) if kind == "edit" else (2,)
        if kind == "edit" and (scores.dim() < 3 or scores.size(-1) != 3 or 0 in scores.shape[-3:]):
            raise ValueError(f"expected scores * T+1 S+1 3, got {tuple(scores.shape)}")
        super().__init__(scores, lengths=lengths)
        most = self.potentials[0].size(2) - (kind == "edit")
        self.widths = self._up_to("widths", widths, most)
        if kind == "ctc" and fails(self.widths % 2 == 0, "expected odd widths of the kind ctc"):
            raise ValueError(f"expected odd widths of the kind ctc, got {self.widths.tolist()}")
        skips = self.widths > 0
        if may_skip is not None:
            skips = self._flat(spread("may_skip", may_skip, (*self.batch_shape, most)))
        self.may_skip = skips.to(scores.device)

    @classmethod
    def ctc(
        cls,
        log_probs: Tensor,
        targets: Tensor,
        *,
        blank: int = 0,
        lengths: Tensor | None = None,
        target_lengths: Tensor | None = None,
    ) -> Alignment:
        """From log-probabilities * T V of each frame and targets * L long, on any device: `log_partition` is minus the
        loss of CTC.  What targets hold beyond their lengths does not matter.
        """
        if log_probs.dim() < 2:
            raise ValueError(f"expected log-probabilities * T V, got {tuple(log_probs.shape)}")
        targets = whole_numbers("targets", targets).to(log_probs.device)
        targets = spread("targets", targets, (*log_probs.shape[:-2], targets.size(-1)))
        columns = targets.new_full((*targets.shape[:-1], 2 * targets.size(-1) + 1), blank)
        columns[..., 1::2] = targets
        new, most = columns[..., 2:] != columns[..., :-2], log_probs.size(-1) - 1
        index = columns.clamp(0, most).unsqueeze(-2)
        scores = log_probs.gather(-1, index.expand(*log_probs.shape[:-1], columns.size(-1)))
        widths = None if target_lengths is None else 2 * target_lengths + 1
        may_skip = pad(new & (columns[..., 2:] != blank), (2, 0)) if targets.size(-1) else columns > columns
        found = cls(scores, kind="ctc", lengths=lengths, widths=widths, may_skip=may_skip)
        beyond = found._flat(((columns < 0) | (columns > most)).expand(*found.batch_shape, columns.size(-1)))
        if fails(beyond & before(found.widths, beyond.size(1)), f"expected blank and targets from 0 to {most}"):
            raise ValueError(f"expected blank and targets from 0 to {most}, got {blank} and {targets}")
        return found

    def greatest_length(self) -> int:
        return self.potentials[0].size(1) - (self.kind == "edit")

    def mask(self) -> Parts:
        T, S = self.potentials[0].shape[1:3]
        edit = int(self.kind == "edit")
        found = before(self.lengths + edit, T).unsqueeze(2) & before(self.widths + edit, S).unsqueeze(1)
        if not edit:
            return (found,)
        ops = found.unsqueeze(3).repeat(1, 1, 1, 3)
        ops[:, 0, :, :2] = False
        ops[:, :, 0, 1:] = False
        return (ops,)

    def total(self, potentials: Parts, semiring: LogSemiring) -> Tensor:
        scores = semiring.lift(potentials[0])
        if self.kind == "ctc":
            return semiring.value(self._by_frames(scores, potentials[0], semiring))
        if self.kind == "edit":
            every = self._antidiagonals(*scores.unbind(-1), potentials[0], semiring)
            return semiring.value(every[..., self._rows(), self.lengths + self.widths, self.lengths])
        B, T, S = potentials[0].shape
        down = torch.cat([semiring.zero((B, 1, S), potentials[0]), scores], -2)  # * B T+1 S
        across = semiring.one((B, T + 1, S), potentials[0])
        every = self._antidiagonals(down, None, across, potentials[0], semiring)
        at = torch.where(self.widths == 0, every.size(-2), self.lengths + self.widths) - 1
        found = every[..., self._rows(), at, self.lengths]
        empty = (self.lengths == 0) & (self.widths == 0)
        return semiring.value(torch.where(empty, semiring.one((B,), potentials[0]), found))

    def _within(self, other: Alignment) -> bool:
        """Those by edits and of ctc end where the widths say."""
        if self.kind != other.kind or (self.kind != "monotone" and bool((self.widths < other.widths).any())):
            return False
        if self.kind != "ctc":
            return True
        more = self.may_skip & ~other.may_skip & before(self.widths, self.may_skip.size(1))
        return not bool(more[:, 2:].any())  # nothing is two columns before the first two

    def prefixes(self) -> Tensor:
        """Of edits: logarithms of the sums over all paths from (0, 0) to each point, * T+1 S+1, in nats.

        Differentiable.  Raises ValueError of another kind.
        """
        if self.kind != "edit":
            raise ValueError(f"only alignments by edits have prefixes, not those of kind {self.kind}")
        (scores,) = self._masked()
        semiring = self._sums((scores,))
        every = self._antidiagonals(*semiring.lift(scores).unbind(-1), scores, semiring)
        row, column = (torch.arange(n, device=scores.device) for n in scores.shape[1:3])
        points = every[..., row[:, None] + column, row[:, None]]  # * B T+1 S+1
        return self._checked(semiring.value(points)).reshape((*self.batch_shape, *points.shape[2:])).to(self.dtype)

    def _antidiagonals(
        self, down: Tensor, both: Tensor | None, across: Tensor, like: Tensor, semiring: LogSemiring
    ) -> Tensor:
        """All paths of a grid from (0, 0) to its points, at [row + column, row] of * B N+M N, the last of them zero.

        down, both and across: the steps that lead into each point, * B N M.
        """
        B, N, M = down.shape[-3:]
        zero = semiring.zero((B, 1), like)
        last = torch.cat([semiring.one((B, 1), like), semiring.zero((B, N - 1), like)], -1)  # * B N
        found, before_last = [last], semiring.zero((B, N), like)
        vertical, horizontal = (_slanted(x, semiring).unbind(-1) for x in (down, across))
        diagonal = [None] * len(vertical) if both is None else _slanted(both, semiring).unbind(-1)
        for from_above, from_left, from_both in list(zip(vertical, horizontal, diagonal, strict=True))[1:]:
            above = torch.cat([zero, last[..., :-1]], -1)
            terms = [semiring.times(above, from_above), semiring.times(last, from_left)]
            if from_both is not None:
                terms.append(semiring.times(torch.cat([zero, before_last[..., :-1]], -1), from_both))
            last, before_last = semiring.sum(torch.stack(terms, -1), -1), last
            found.append(last)
        return torch.stack([*found, torch.cat([zero] * N, -1)], -2)

    def _by_frames(self, scores: Tensor, like: Tensor, semiring: LogSemiring) -> Tensor:
        """The recurrence of Graves et al. (2006), eq. 5 to 7, whose last two columns are those of each row's width."""
        B, T, U = like.shape
        zero, one = semiring.zero((B, 1), like), semiring.one((B, 1), like)
        last = torch.cat([one] + [zero] * U, -1)  # * B U+1, a column in front: before the first row
        found = [torch.cat([zero] * (U + 1), -1)]
        for t, now in enumerate(scores.unbind(-2)):
            skip = torch.cat([zero, last[..., :-2]], -1)
            skip = torch.where(self.may_skip | (torch.arange(U, device=like.device) == 1) & (t == 0), skip, zero)
            terms = [last[..., 1:], last[..., :-1], skip]
            last = torch.cat([zero, semiring.times(semiring.sum(torch.stack(terms, -1), -1), now)], -1)
            found.append(last)
        every = torch.stack(found, -2)  # * B T+1 U+1
        ends = [every[..., self._rows(), self.lengths, (self.widths - back).clamp(min=0)] for back in (0, 1)]
        total = semiring.sum(torch.stack(ends, -1), -1)
        empty = (self.lengths == 0) & (self.widths <= 1)
        return torch.where(empty, one[..., 0], total)


def _slanted(grid: Tensor, semiring: LogSemiring) -> Tensor:
    """* B N N+M-1 of a grid * B N M: the points (i, j) at [i, i + j], zero elsewhere."""
    _, B, N, M = grid.shape
    found = torch.cat([grid, semiring.zero((B, N, N), grid[0])], -1).flatten(-2)
    return found[..., : N * (N + M - 1)].unflatten(-1, (N, N + M - 1))
