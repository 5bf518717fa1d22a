"""All structures of small distributions, found by trying, and the distributions that they are held against."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

import torch

from seqstruct import distributions as D

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


def one_key(d, row):
    return [([(s,)],) for s in range(int(d.lengths[row]))]


def any_keys(d, row):
    n = int(d.lengths[row])
    return [([(s,) for s in keys],) for k in range(n + 1) for keys in itertools.combinations(range(n), k)]


def keys(kind):
    return lambda draw, lengths, batch: kind(draw(*batch, max(lengths)), lengths=lengths_of(lengths, batch))


def lengths_of(lengths, batch):
    return torch.tensor(lengths).expand(batch)


FAMILIES = {
    "chain": Family(chain, paths, (4, 0, 1, 3)),
    "hidden Markov": Family(hidden, paths, (5, 1, 2, 0)),
    "categorical": Family(keys(D.Categorical), one_key, (5, 1, 0, 3)),
    "bernoulli": Family(keys(D.Bernoulli), any_keys, (5, 1, 0, 3)),
}
