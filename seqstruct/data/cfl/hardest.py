"""Exact log-probabilities in the hardest context-free language, column by column.

The fillers around the Dyck word are regular.  In the grammar of `languages`, R reads the beginning and L the end of
one segment between semicolons, so a gap Q from position k to k' weighs

    Q[k, k'] = 3/4 [k = k'] + 1/4 before[k] after[k']    (the second term where one semicolon stands between them),

with `before[k]` the weight of L from k up to the next semicolon and `after[k']` that of R from the last semicolon to
k'.  To apply Q to a row or a column is therefore one weighted sum for each segment.  What is left is the Dyck part:
S and T of all spans that end at one position, position after position.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from seqstruct.data.cfl.languages import get_language

SCALE = 4.0  # how often each terminal counts while weights are summed, against underflow; taken out at the end


def hardest_log_weights(tokens: Tensor) -> Tensor:
    """Log-weights of strings of one length, summed over derivations (nats), -inf where there is none.

    tokens: B x N long, terminal ids of `hardest-cfl`.  Returns B float64.  O(B N^3) time, O(B N^2) memory.
    """
    language = get_language("hardest-cfl")
    weight = {(rule.left, rule.right): rule.weight for rule in language.grammar.rules}
    ids = {terminal: i for i, terminal in enumerate(language.terminals)}
    batch, length = tokens.shape
    inner = tokens[:, :-1]  # the last symbol is a semicolon, or the string is not in the language
    semicolon = inner == ids[";"]
    segment = torch.nn.functional.pad(semicolon.long().cumsum(1), (1, 0))  # B N: semicolons before each position
    after = _segment_starts(inner, weight, ids)  # B N
    before = _segment_starts(inner.flip(1), weight, ids).flip(1)  # B N
    none, gap = weight["Q", ()], weight["Q", ("L", ";", "R")] * SCALE

    def through_gap(column: Tensor) -> Tensor:
        """Q times a column: B N, indexed by where the gap ends, to B N, indexed by where it starts."""
        sums = column.new_zeros(batch, int(segment.max()) + 2).scatter_add_(1, segment, after * column)
        return none * column + gap * before * sums.gather(1, segment + 1)

    spans = torch.zeros(batch, length, length, dtype=torch.float64)  # S then Q, [b, start, end]
    here = torch.zeros(batch, length, dtype=torch.float64)  # S then the L of the current segment, by start of S
    previous = torch.zeros_like(here)  # the same for the segment before
    kinds = [(ids[a], ids[b], weight["T", (a, "Q", "S", "Q", b)], weight["T", (a, "Q", b)]) for a, b in ("()", "[]")]
    for end in range(1, length):
        closing, boundary = inner[:, end - 1], semicolon[:, end - 1, None]
        previous, here = torch.where(boundary, here, previous), torch.where(boundary, 0.0, here)
        nested = through_gap(spans[:, :, end - 1])
        bare = gap * before * after[:, end - 1, None] * (segment + 1 == segment[:, end - 1, None])
        bare[:, end - 1] += none
        t = torch.zeros(batch, length, dtype=torch.float64)  # T that ends here, by its start
        for opening_id, closing_id, around, alone in kinds:
            pair = (inner == opening_id) & (closing == closing_id)[:, None]
            t[:, :-1] += pair * (around * nested[:, 1:] + alone * bare[:, 1:])
        t *= SCALE * SCALE
        t[:, end - 1 :] = 0  # an opening bracket stands before the closing one
        more = torch.bmm(spans[:, :, :end], t[:, :end, None]).squeeze(2)
        s = weight["S", ("T",)] * t + weight["S", ("S", "Q", "T")] * more
        here = here + s * before[:, end, None]
        spans[:, :, end] = none * s + gap * after[:, end, None] * previous
    opened = (inner == ids["$"]) & (segment[:, :-1] == 0)
    total = (opened * after[:, :-1] * through_gap(here)[:, 1:]).sum(1) * SCALE * SCALE
    return torch.where(tokens[:, -1] == ids[";"], total, 0.0).log() - length * math.log(SCALE)


def _segment_starts(tokens: Tensor, weight: dict, ids: dict[str, int]) -> Tensor:
    """Weight of R from the start of each segment to each position in it: B N for B x (N - 1) tokens.

    R -> U , R' and R' -> R' V , read filler* , (filler+ ,)*.  L is its mirror image, with the same weights.
    """
    fillers = [ids[right[0]] for left, right in weight if left == "W"]
    filler = torch.isin(tokens, torch.tensor(fillers)).double()
    comma = (tokens == ids[","]).double() * SCALE
    semicolon = tokens == ids[";"]
    step = weight["W", ("$",)] * SCALE
    short, done = weight["U", ("W", "U")] * step, weight["U", ()]
    long, begin = weight["V", ("W", "V")] * step, weight["R'", ("R'", "V", ",")] * weight["V", ("W",)] * step
    opening = torch.full(tokens.shape[:1], done, dtype=torch.float64)  # in U
    run, ended = torch.zeros_like(opening), torch.zeros_like(opening)  # in V; after a comma
    result = [ended]
    for t in range(tokens.size(1)):
        run, ended = (
            filler[:, t] * (begin * ended + long * run),
            comma[:, t] * (opening + run),
        )
        opening = torch.where(semicolon[:, t], done, filler[:, t] * short * opening)
        result.append(ended * weight["R'", ()])
    return torch.stack(result, 1)
