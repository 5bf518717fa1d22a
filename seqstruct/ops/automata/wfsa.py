"""Weighted finite-state automata over a semiring, with epsilon arcs (Peng 2022, section 6.2, definitions 4 to 6).

The score of a path is the product of its initial weight, its arcs' weights and its final weight; the score of a string
is the sum over all paths that derive it (eq. 6.2).  Weights are the semiring's own numbers: any real numbers for
`RealSemiring`, logarithms or scores for the others.  Any semiring of one component serves.

Axis letters: Q states, V symbols 0 .. V-1, and `*` for leading axes: a family of automata of one shape, such as one for
each feature of a recurrent network.  An automaton whose weights depend on more than the symbol is given a symbol for
each position (V = T), and run without naming symbols.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import torch
from torch import Tensor

from seqstruct.ops.masking import check_padding_mask
from seqstruct.ops.semiring import LogSemiring, MaxSemiring, RealSemiring
from seqstruct.ops.symbols import whole_numbers

Weight = Tensor | float


class Arc(NamedTuple):
    """source -> target; weight: * V, one for each symbol; of an epsilon arc: *; or one number for all."""

    source: int
    target: int
    weight: Weight


class Wfsa(NamedTuple):
    """initial, final: * Q; arcs: * V Q Q, [v, i, j] from i to j; epsilon: * Q Q, sums where arcs are parallel.

    best_arcs, best_epsilon: the same of the greatest weight of parallel arcs.
    epsilon_order: (source, target) of the epsilon arcs, those that lead to a state before those that leave it.
    """

    initial: Tensor
    arcs: Tensor
    epsilon: Tensor
    final: Tensor
    best_arcs: Tensor
    best_epsilon: Tensor
    epsilon_order: tuple[tuple[int, int], ...]
    semiring: LogSemiring


class Prefixes(NamedTuple):
    """Of each prefix of 0 .. T symbols: states * T+1 Q, the sum over paths to each state; scores * T+1 (eq. 6.3)."""

    states: Tensor
    scores: Tensor


class Path(NamedTuple):
    """A path and its score; arcs: (source, target, position), with the position of the symbol taken, None: epsilon.

    Of parallel arcs the one of the greatest weight is meant.
    start: its first state.  Where no path derives the string: score -inf, start -1 and no arcs.
    """

    score: float
    start: int
    arcs: list[tuple[int, int, int | None]]


def wfsa(
    states: int,
    arcs: Sequence[Arc],
    *,
    initial: Mapping[int, Weight],
    final: Mapping[int, Weight],
    epsilons: Sequence[Arc] = (),
    semiring: LogSemiring,
) -> Wfsa:
    """An automaton from its arcs; what is not given has the weight zero, arcs between the same two states add up.

    initial, final: by state, weights * or numbers.  At least one arc has a tensor * V for its weight, which says how
    many symbols there are.  Differentiable in all weights.
    Raises ValueError on a state out of range, on a cycle of epsilon arcs (over which a sum need not exist), naming it,
    and if no arc has a weight for each symbol.
    """
    named = [(f"arc {n}", state) for n, arc in enumerate(arcs) for state in arc[:2]]
    named += [(f"epsilon arc {n}", state) for n, arc in enumerate(epsilons) for state in arc[:2]]
    named += [("initial", state) for state in initial] + [("final", state) for state in final]
    for where, state in named:
        if not 0 <= state < states:
            raise ValueError(f"{where}: state {state} is out of range, expected 0 .. {states - 1}")
    tables = [arc.weight for arc in arcs if isinstance(arc.weight, Tensor) and arc.weight.dim()]
    if not tables:
        raise ValueError("expected at least one arc with a weight for each symbol, got numbers alone")
    order = _epsilon_order([arc[:2] for arc in epsilons])
    zero = semiring.zero((), tables[0])[0]
    pairs = [(i, j) for i in range(states) for j in range(states)]

    def ends(weights: Mapping[int, Weight]) -> Tensor:
        return _join(weights.items(), range(states), zero, semiring)

    def matrices(given: Sequence[Arc]) -> tuple[Tensor, Tensor]:
        """Sums of parallel arcs, and the greatest."""
        weights = [(arc[:2], arc.weight) for arc in given]
        sums = _join(weights, pairs, zero, semiring)
        if len({ends for ends, _ in weights}) == len(weights):
            best = sums
        else:
            best = _join(weights, pairs, zero, _RealMaximum() if isinstance(semiring, RealSemiring) else MaxSemiring())
        return sums.unflatten(-1, (states, states)), best.unflatten(-1, (states, states))

    (of_arcs, best_arcs), (of_epsilons, best_epsilon) = matrices(arcs), matrices(epsilons)
    return Wfsa(ends(initial), of_arcs, of_epsilons, ends(final), best_arcs, best_epsilon, order, semiring)


def forward(
    automaton: Wfsa,
    symbols: Tensor | None = None,
    padding_mask: Tensor | None = None,
    *,
    states: Tensor | None = None,
) -> Prefixes:
    """The Forward algorithm: the sums over all paths, of all prefixes.

    symbols: B T long; or None for one string, of all V symbols in order.  With symbols, or a padding_mask, `*` gains a
    last axis B.
    padding_mask: B T bool, True = padding, or None; a padded symbol is skipped.
    states: * Q, of a prefix, to go on from it.
    Differentiable.  Epsilon arcs are taken before the first symbol and after each.
    Raises ValueError on a symbol out of range, or shapes that do not fit.
    Cost, for each automaton and string: O(T Q^2) time and memory, with epsilon arcs O(T Q^3).
    """
    semiring = automaton.semiring
    initial, steps, epsilon, final = _on_string(automaton, symbols, padding_mask)
    unit = _unit(automaton)
    if automaton.epsilon_order:
        closure = unit
        for _ in range(epsilon.size(-1) - 1):
            closure = semiring.add(unit, semiring.product(epsilon, closure))
        initial = semiring.product(initial.unsqueeze(-2), closure).squeeze(-2)
        steps = semiring.product(steps, closure.unsqueeze(-3))
    steps = _skip(steps, padding_mask, unit)
    found = [initial if states is None else states.expand_as(initial)]
    for step in steps.unbind(-3):
        found.append(semiring.product(found[-1].unsqueeze(-2), step).squeeze(-2))
    every = torch.stack(found, -2)
    return Prefixes(every, semiring.sum(semiring.times(every, final.unsqueeze(-2)), -1))


def best_path(automaton: Wfsa, symbols: Tensor | None = None, padding_mask: Tensor | None = None) -> list[Path]:
    """The path of the greatest score that derives a string (Viterbi), for each automaton and string, `*` flattened.

    Arguments as for `forward`.  Of several best paths one, without preference.  No gradient.  Scores are in log space;
    in the real semiring they are the logarithms of the weights, none of which may be negative.
    Raises ValueError as `forward` does, and on negative weights.
    Cost: O(T Q^2) for each.
    """
    automaton = automaton._replace(arcs=automaton.best_arcs, epsilon=automaton.best_epsilon)
    tables = [table.detach() for table in _on_string(automaton, symbols, padding_mask)]
    unit = _unit(automaton)
    if isinstance(automaton.semiring, RealSemiring):
        if any(bool((table < 0).any()) for table in tables):
            raise ValueError("a best path needs weights of 0 or more, got negative ones")
        *tables, unit = (table.log() for table in (*tables, unit))
    initial, steps, epsilon, final = tables
    steps = _skip(steps, padding_mask, unit)
    best, by_epsilon = _take_epsilons(initial, epsilon, automaton.epsilon_order)
    layers = [(torch.full_like(by_epsilon, -1), by_epsilon)]
    for step in steps.unbind(-3):
        best, source = (best.unsqueeze(-1) + step).max(-2)
        best, by_epsilon = _take_epsilons(best, epsilon, automaton.epsilon_order)
        layers.append((source, by_epsilon))
    score, end = (best + final).max(-1)
    T = len(layers) - 1
    pointers = [torch.stack(x, -2).reshape(-1, T + 1, x[0].size(-1)).tolist() for x in zip(*layers, strict=True)]
    skipped = steps.new_zeros(T, dtype=torch.bool) if padding_mask is None else padding_mask
    skipped = skipped.expand(*score.shape, T).reshape(-1, T).tolist() if T else [[]] * score.numel()
    ends = zip(score.flatten().tolist(), end.flatten().tolist(), *pointers, skipped, strict=True)
    return [_trace(*row) for row in ends]


def _trace(
    score: float, state: int, sources: list[list[int]], by_epsilon: list[list[int]], skipped: list[bool]
) -> Path:
    if score == -torch.inf:
        return Path(score, -1, [])
    arcs: list[tuple[int, int, int | None]] = []
    for t in reversed(range(len(sources))):
        while (source := by_epsilon[t][state]) >= 0:
            arcs.append((source, state, None))
            state = source
        if t and not skipped[t - 1]:
            arcs.append((sources[t][state], state, t - 1))
            state = sources[t][state]
    return Path(score, state, arcs[::-1])


def _take_epsilons(best: Tensor, epsilon: Tensor, order: tuple[tuple[int, int], ...]) -> tuple[Tensor, Tensor]:
    """Best scores * Q once epsilon arcs may be taken, and the state each was reached from by one, -1: by none."""
    scores, chosen = list(best.unbind(-1)), [torch.full(best.shape[:-1], -1, device=best.device)] * best.size(-1)
    for source, target in order:
        found = scores[source] + epsilon[..., source, target]
        better = found > scores[target]
        scores[target] = torch.where(better, found, scores[target])
        chosen[target] = torch.where(better, source, chosen[target])
    return torch.stack(scores, -1), torch.stack(chosen, -1)


class _RealMaximum(LogSemiring):
    """The greatest of weights; a negative one, of which there is no best path, stays to be seen."""

    def sum(self, terms: Tensor, dim: int) -> Tensor:
        least = terms.amin(dim)
        return torch.where(least < 0, least, terms.amax(dim))


def _epsilon_order(arcs: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    try:
        sources = TopologicalSorter({source: [] for source, _ in arcs})
        for source, target in arcs:
            sources.add(target, source)
        place = list(sources.static_order())
    except CycleError as error:
        raise ValueError(f"epsilon arcs form a cycle of states: {' -> '.join(map(str, error.args[1]))}") from None
    return tuple(sorted(set(arcs), key=lambda arc: place.index(arc[0])))


def _join(given: Iterable[tuple], keys: Iterable, zero: Tensor, semiring: LogSemiring) -> Tensor:
    """Weights by key as one tensor, the keys as its last axis; of the type of `zero`, which stands where none is."""
    cells: dict = {}
    for key, weight in given:
        weight = torch.as_tensor(weight, dtype=zero.dtype, device=zero.device)
        cells[key] = semiring.add(cells[key], weight) if key in cells else weight
    return torch.stack(torch.broadcast_tensors(*(cells.get(key, zero) for key in keys)), -1)


def _on_string(
    automaton: Wfsa, symbols: Tensor | None, padding_mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """initial * Q, steps * T Q Q, epsilon * Q Q, final * Q, with all leading axes the same."""
    initial, arcs, epsilon, final, *_ = automaton
    if symbols is not None:
        V = arcs.size(-3)
        if symbols.dim() != 2:
            raise ValueError(f"expected symbols B T, got {tuple(symbols.shape)}")
        symbols = whole_numbers("symbols", symbols)
        if symbols.numel() and not 0 <= int(symbols.min()) <= int(symbols.max()) < V:
            wrong = ((symbols < 0) | (symbols >= V)).nonzero()[0].tolist()
            raise ValueError(
                f"symbol {int(symbols[tuple(wrong)])} of row {wrong[0]}, position {wrong[1]} is out of range, "
                f"expected 0 .. {V - 1}"
            )
        initial, final, epsilon = initial.unsqueeze(-2), final.unsqueeze(-2), epsilon.unsqueeze(-3)
        arcs = arcs[..., symbols, :, :]
    elif padding_mask is not None and padding_mask.dim() == 2:
        initial, final, epsilon, arcs = (x.unsqueeze(dim) for x, dim in (
            (initial, -2), (final, -2), (epsilon, -3), (arcs, -4)))
        arcs = arcs.expand(*arcs.shape[:-4], len(padding_mask), *arcs.shape[-3:])
    if padding_mask is not None:
        batch = symbols.size(0) if symbols is not None else padding_mask.size(0)
        check_padding_mask(padding_mask, batch, arcs.size(-3))
    lead = torch.broadcast_shapes(initial.shape[:-1], arcs.shape[:-3], epsilon.shape[:-2], final.shape[:-1])
    return (
        initial.expand(*lead, *initial.shape[-1:]),
        arcs.expand(*lead, *arcs.shape[-3:]),
        epsilon.expand(*lead, *epsilon.shape[-2:]),
        final.expand(*lead, *final.shape[-1:]),
    )


def _skip(steps: Tensor, padding_mask: Tensor | None, unit: Tensor) -> Tensor:
    return steps if padding_mask is None else torch.where(padding_mask[..., None, None], unit, steps)


def _unit(automaton: Wfsa) -> Tensor:
    """Q Q, the matrix that changes nothing."""
    semiring, like = automaton.semiring, automaton.arcs
    Q = like.size(-1)
    diagonal = torch.eye(Q, dtype=torch.bool, device=like.device)
    return torch.where(diagonal, semiring.one((), like)[0], semiring.zero((), like)[0])
