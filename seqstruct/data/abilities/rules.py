"""What simple rules reach: the most frequent target of training given a little of what was read.

    majority                      nothing
    first symbol, last symbol     the sequence's first, or the one that was read last
    last two, last three          symbols; fewer where training has not seen them together
    and what a task's `clue_name` says, where it has clues
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

from seqstruct.data.abilities.ability import Ability, Tagged

NOTHING = ()  # the context of no symbol
Contexts = Callable[[Sequence[str]], Sequence[Sequence[Hashable]]]


def rules_of(ability: Ability) -> dict[str, Contexts]:
    """Of each rule what it goes by at each position of a sequence, the narrowest context first."""
    found: dict[str, Contexts] = {
        "majority": lambda symbols: [[] for _ in symbols],
        "first symbol": lambda symbols: [[symbols[0]] for _ in symbols],
        "last symbol": lambda symbols: _last(symbols, 1),
        "last two": lambda symbols: _last(symbols, 2),
        "last three": lambda symbols: _last(symbols, 3),
    }
    if ability.clue_name:
        found[ability.clue_name] = lambda symbols: [[clue] for clue in ability.clues(symbols)]
    return found


def _last(symbols: Sequence[str], most: int) -> list[list[Hashable]]:
    return [[tuple(symbols[i + 1 - n : i + 1]) for n in range(min(most, i + 1), 0, -1)] for i in range(len(symbols))]


def shares(
    contexts: Contexts, train: Sequence[Tagged], splits: Mapping[str, Sequence[Tagged]]
) -> dict[str, tuple[float, float]]:
    """A rule learned on training: of each split the percentage of targets, and of sequences, that it has right.

    Of targets equally frequent the one that came first in training is said; a context that training has not is
    shortened, in the end to none.
    """
    counts: dict[Hashable, Counter[str]] = defaultdict(Counter)
    for example in train:
        for target, widths in _asked(example, contexts):
            for context in (*widths, NOTHING):
                counts[context][target] += 1
    best = {context: max(counter, key=counter.__getitem__) for context, counter in counts.items()}
    found = {}
    for split, examples in splits.items():
        right = targets = whole = 0
        for example in examples:
            hits = [
                best[next((context for context in widths if context in best), NOTHING)] == target
                for target, widths in _asked(example, contexts)
            ]
            right, targets, whole = right + sum(hits), targets + len(hits), whole + all(hits)
        found[split] = 100 * right / targets, 100 * whole / len(examples)
    return found


def _asked(example: Tagged, contexts: Contexts) -> Iterator[tuple[str, Sequence[Hashable]]]:
    for target, widths in zip(example.targets, contexts(example.symbols), strict=True):
        if target is not None:
            yield target, widths
