"""All structures of small distributions, found by trying, and the distributions that they are held against."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

import torch

from seqstruct import distributions as D
from tests.ops.pushdown.enumeration import every_run
from tests.ops.trees.enumeration import all_trees, trees_over

INF = float("inf")


class Family(NamedTuple):
    """make(draw, lengths, batch): a distribution, draw(*shape) gives its potentials; structures(distribution, row): its
    structures as lists of the parts' places, of each kind; lengths: of rows."""

    make: Callable
    structures: Callable
    lengths: tuple[int, ...]

    def all(self, distribution, row):
        """The structures of a row as parts of 0 and 1, P x event, of each kind."""
        found = self.structures(distribution, row)
        parts = []
        for kind, x in enumerate(distribution.potentials):
            events = torch.zeros(len(found), *x.shape[1:], dtype=torch.float64)
            for event, structure in zip(events, found, strict=True):
                for place in structure[kind]:
                    event[place] = 1.0
            parts.append(events)
        return parts


def chain(draw, lengths, batch):
    N = max(lengths)
    return D.LinearChain(draw(*batch, N, 3), draw(*batch, max(0, N - 1), 3, 3), lengths=lengths_of(lengths, batch))


def paths(d, row):
    N, C = int(d.lengths[row]), d.potentials[0].size(-1)
    return [
        ([*enumerate(path)], [(t, i, j) for t, (i, j) in enumerate(itertools.pairwise(path))])
        for path in itertools.product(range(C), repeat=N)
    ]


def hidden(draw, lengths, batch):
    N = max(lengths)
    observations = torch.arange(N).expand(*batch, N) % 5
    return D.HiddenMarkov(draw(2), draw(2, 2), draw(2, 5), observations, lengths=lengths_of(lengths, batch))


def arcs(kind, single_root):
    return lambda draw, lengths, batch: kind(
        draw(*batch, max(lengths) + 1, max(lengths) + 1), lengths=lengths_of(lengths, batch), single_root=single_root
    )


def trees(d, row):
    n, single_root = int(d.lengths[row]), d.single_root and int(d.lengths[row]) > 0
    found = all_trees(n, isinstance(d, D.ProjectiveTree), single_root).tolist() if n else [[]]
    return [([(h, m) for m, h in enumerate(heads, 1)],) for heads in found]


def spans(draw, lengths, batch):
    return D.ConstituencyTree(draw(*batch, max(lengths), max(lengths), 2), lengths=lengths_of(lengths, batch))


def brackets(d, row):
    n, labels = int(d.lengths[row]), range(d.potentials[0].size(-1))
    return [
        ([(*span, label) for span, label in zip(tree, chosen, strict=True)],)
        for tree in (trees_over(0, n - 1) if n else [[]])
        for chosen in itertools.product(labels, repeat=len(tree))
    ]


def segments(draw, lengths, batch):
    return D.SemiMarkov(draw(*batch, max(lengths), 3, 2, 2), lengths=lengths_of(lengths, batch))


def segmentations(d, row):
    N, (K, C) = int(d.lengths[row]), d.potentials[0].shape[2:4]

    def of(t, label):
        if t == N:
            return [[]]
        return [
            [(t, k, label, j), *rest]
            for k in range(min(K, N - t))
            for j in range(C)
            for rest in of(t + k + 1, j)
        ]

    return [(x,) for x in of(0, 0)]


def alignment(kind, widths):
    def make(draw, lengths, batch):
        edit = kind == "edit"
        scores = draw(*batch, max(lengths) + edit, max(widths) + edit, *[3] * edit)
        may_skip = torch.arange(max(widths)) % 4 == 3 if kind == "ctc" else None
        of = lengths_of(widths, batch)
        return D.Alignment(scores, kind=kind, lengths=lengths_of(lengths, batch), widths=of, may_skip=may_skip)

    return make


def monotone(d, row):
    T, S = int(d.lengths[row]), int(d.widths[row])
    return [([*enumerate(a)],) for a in itertools.combinations_with_replacement(range(S), T)]


def edits(d, row):
    T, S = int(d.lengths[row]), int(d.widths[row])

    def into(i, j):
        if (i, j) == (0, 0):
            return [[]]
        ways = [(op, i - a, j - b) for op, (a, b) in enumerate([(1, 0), (1, 1), (0, 1)]) if i >= a and j >= b]
        return [[*path, (i, j, op)] for op, k, m in ways for path in into(k, m)]

    return [(path,) for path in into(T, S)]


def ctc(d, row):
    T, U = int(d.lengths[row]), int(d.widths[row])
    if T == 0:
        return [([],)] if U == 1 else []

    def allowed(a, b):
        return b - a in (0, 1) or (b - a == 2 and bool(d.may_skip[row, b]))

    return [
        ([*enumerate(a)],)
        for a in itertools.product(range(U), repeat=T)
        if a[0] < 2 and a[-1] >= U - 2 and all(allowed(*pair) for pair in itertools.pairwise(a))
    ]


ORDER = ((2, 0), (2, 1), (0, 1))


def automaton(draw, lengths, batch):
    T = max(lengths)
    parts = draw(*batch, 3), draw(*batch, T, 3, 3), draw(*batch, 3)
    return D.WFSA(*parts, epsilons=draw(*batch, T + 1, 3, 3), order=ORDER, lengths=lengths_of(lengths, batch))


def runs(d, row):
    T = int(d.lengths[row])

    def free(t, i):
        """Ways by epsilon arcs from a state at a time, and where they lead."""
        return [([], i)] + [([(t, i, j), *more], end) for k, j in ORDER if k == i for more, end in free(t, j)]

    def of(t, i):
        for way, j in free(t, i):
            if t == T:
                yield [], way, j
            else:
                for k in range(3):
                    for arcs, ways, end in of(t + 1, k):
                        yield [(t, j, k), *arcs], way + ways, end

    return [([(i,)], arcs, ways, [(end,)]) for i in range(3) for arcs, ways, end in of(0, i)]


def pushdown(draw, lengths, batch):
    return D.Pushdown(draw(*batch, max(lengths), 10), states=1, symbols=2, lengths=lengths_of(lengths, batch))


def stack_runs(d, row):
    Q, S = d.states, d.symbols
    width = 2 * Q * S + Q

    def place(action, state, symbol, to, top):
        column = {"push": to * S + top, "replace": Q * S + to * S + top, "pop": 2 * Q * S + to}[action]
        return (state * S + symbol) * width + column

    runs = every_run(torch.zeros(int(d.lengths[row]), Q * S * width), Q, S)
    return [([(t, place(*step[:5])) for t, step in enumerate(past)],) for _, past in runs]


def one_key(d, row):
    return [([(s,)],) for s in range(int(d.lengths[row]))]


def any_keys(d, row):
    n = int(d.lengths[row])
    return [([(s,) for s in keys],) for k in range(n + 1) for keys in itertools.combinations(range(n), k)]


def keys(kind):
    return lambda draw, lengths, batch: kind(draw(*batch, max(lengths)), lengths=lengths_of(lengths, batch))


def lengths_of(lengths, batch):
    """Of each row; where the batch is another, the first of all."""
    return torch.tensor(lengths if batch == (len(lengths),) else lengths[0]).expand(batch)


FAMILIES = {
    "chain": Family(chain, paths, (4, 0, 1, 3)),
    "hidden Markov": Family(hidden, paths, (5, 1, 2, 0)),
    "projective tree": Family(arcs(D.ProjectiveTree, False), trees, (3, 0, 1, 2)),
    "projective tree, one root": Family(arcs(D.ProjectiveTree, True), trees, (4, 0, 1, 2)),
    "tree": Family(arcs(D.NonProjectiveTree, False), trees, (3, 0, 1, 2)),
    "tree, one root": Family(arcs(D.NonProjectiveTree, True), trees, (3, 0, 1, 2)),
    "constituency tree": Family(spans, brackets, (4, 0, 1, 3)),
    "segments": Family(segments, segmentations, (4, 0, 1, 3)),
    "monotone": Family(alignment("monotone", (3, 2, 0, 4, 0)), monotone, (3, 1, 2, 2, 0)),
    "edits": Family(alignment("edit", (2, 3, 0, 0, 1)), edits, (3, 1, 2, 0, 1)),
    "ctc": Family(alignment("ctc", (5, 3, 1, 3, 1)), ctc, (4, 1, 2, 0, 0)),
    "automaton": Family(automaton, runs, (2, 0, 1)),
    "pushdown": Family(pushdown, stack_runs, (3, 0, 1, 2)),
    "categorical": Family(keys(D.Categorical), one_key, (5, 1, 0, 3)),
    "bernoulli": Family(keys(D.Bernoulli), any_keys, (5, 1, 0, 3)),
}
