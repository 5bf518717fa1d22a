"""What is reached without a model: figures of the data alone, beside which those of a model have to stand."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

UNKNOWN = "<unk>"
FALLBACK_DISCOUNT = 0.75
_BEFORE = 0  # stands before the beginning of each text


class _Grams(NamedTuple):
    """The n-grams of one order.

    keys: context * types + token, ascending; a context is the number of an (n-1)-gram.  discounted: count less the
    discount, of each.  totals: sum of counts, by context.  shares: what was taken off, by context.
    """

    keys: np.ndarray
    discounted: np.ndarray
    totals: np.ndarray
    shares: np.ndarray


class KneserNey:
    """Interpolated Kneser-Ney n-grams (Kneser and Ney 1995; Chen and Goodman 1999, sec. 3, "interpolated"):

        p_n(w | h) = (c(h w) - D_n)^+ / c(h) + D_n N(h) / c(h) p_{n-1}(w | h'),        p_0(w) = 1 / V

    where h' is h without its first token, N(h) the number of types seen after h, and p_n = p_{n-1} after a context that
    was never seen.  c counts occurrences for the highest order, for each lower one the different tokens before them.
    D_n = n_1 / (n_1 + 2 n_2), of the n-grams that are counted once and twice, or 0.75 where there are none of either.
    V counts the types seen and `UNKNOWN`, which stands for all others.  Before its beginning a text has a token of its
    own, which is never predicted.  O(N order log N) time, O(N order) memory for N tokens.
    """

    def __init__(self, texts: Iterable[Iterable[str]], order: int, discount: float | None = None):
        """texts: tokens, those that end a sentence among them.  discount: D_n of every order; None: from the counts.

        Raises ValueError for an order below 1, a discount outside its range or texts without a token.
        """
        if order < 1:
            raise ValueError(f"order: expected 1 or more, got {order}")
        if discount is not None and not 0 < discount <= 1:
            raise ValueError(f"discount: expected a number above 0 and at most 1, got {discount}")
        self.order = order
        self._numbers = {UNKNOWN: 1}
        tokens = self._encode(texts, grow=True)
        if not len(tokens) or not tokens.any():
            raise ValueError("expected texts to count, found no token")
        self._types = len(self._numbers) + 1
        numbers, keys = [np.zeros(len(tokens), dtype=np.int64)], []
        for _ in range(order):
            found, number = np.unique(self._contexts(numbers[-1]) * self._types + tokens, return_inverse=True)
            numbers.append(number)
            keys.append(found)
        self._orders: list[_Grams] = []
        counts = np.bincount(numbers[order][tokens != _BEFORE], minlength=len(keys[-1]))
        for n in range(order, 0, -1):
            contexts = len(keys[n - 2]) if n > 1 else 1
            self._orders.insert(0, _grams(keys[n - 1], counts, self._types, contexts, discount))
            if n > 1:
                shorter = np.zeros(len(keys[n - 1]), dtype=np.int64)
                shorter[numbers[n]] = numbers[n - 1]
                counts = np.bincount(shorter[counts > 0], minlength=contexts)

    def log_probabilities(self, texts: Iterable[Iterable[str]]) -> np.ndarray:
        """Of every token of the texts, in order; nats."""
        tokens = self._encode(texts, grow=False)
        probability = np.full(len(tokens), 1.0 / (self._types - 1))
        number = np.zeros(len(tokens), dtype=np.int64)
        for grams in self._orders:
            context = self._contexts(number)
            keys = context * self._types + tokens
            place = np.minimum(np.searchsorted(grams.keys, keys), len(grams.keys) - 1)
            found = (grams.keys[place] == keys) & (context >= 0)
            own = np.where(found, grams.discounted[place], 0.0)
            known = np.maximum(context, 0)
            total = np.where(context >= 0, grams.totals[known], 0.0)
            mixed = (own + grams.shares[known] * probability) / np.maximum(total, 1.0)
            probability = np.where(total > 0, mixed, probability)
            number = np.where(found, place, -1)
        return np.log(probability[tokens != _BEFORE])

    def _encode(self, texts: Iterable[Iterable[str]], grow: bool) -> np.ndarray:
        """Numbers of the tokens, `_BEFORE` so often before each text that the first token has a whole context."""
        numbers = self._numbers

        def found() -> Iterator[int]:
            for text in texts:
                yield from (_BEFORE,) * max(1, self.order - 1)
                for token in text:
                    yield numbers.setdefault(token, len(numbers) + 1) if grow else numbers.get(token, numbers[UNKNOWN])

        return np.fromiter(found(), dtype=np.int64)

    def _contexts(self, number: np.ndarray) -> np.ndarray:
        """The number of the shorter n-gram that ends before each token; nothing stands before the first."""
        return np.concatenate([number[:1] * 0, number[:-1]])


def _grams(keys: np.ndarray, counts: np.ndarray, types: int, contexts: int, discount: float | None) -> _Grams:
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    if discount is None:
        discount = once / (once + 2 * twice) if once and twice else FALLBACK_DISCOUNT
    taken, context = np.minimum(counts, discount), keys // types
    return _Grams(
        keys, counts - taken, np.bincount(context, counts, contexts), np.bincount(context, taken, contexts)
    )


def most_frequent_accuracy(
    train: Iterable[tuple[Hashable, Hashable]], test: Sequence[tuple[Hashable, Hashable]]
) -> float:
    """Percentage of test labels that are the one most frequent in training with what is given, the first of equals.

    train, test: pairs (given, label); what training never gives has the most frequent label of all.  Given the same for
    all, it is the share of the majority.  Raises ValueError if either is empty.
    """
    overall: Counter[Hashable] = Counter()
    by_given: dict[Hashable, Counter[Hashable]] = {}
    for given, label in train:
        overall[label] += 1
        by_given.setdefault(given, Counter())[label] += 1
    if not overall or not test:
        raise ValueError(f"expected labels to train and to test on, got {overall.total()} and {len(test)}")
    majority, *chosen = (counts.most_common(1)[0][0] for counts in (overall, *by_given.values()))
    chosen = dict(zip(by_given, chosen, strict=True))
    return 100.0 * sum(chosen.get(given, majority) == label for given, label in test) / len(test)


def most_frequent_sequence(sequences: Iterable[Sequence[str]], longest: int = 1000) -> list[str]:
    """One sequence, symbol by symbol: the most frequent one among the sequences that begin as what was chosen before.

    It ends where most of them end.
    """
    chosen: list[str] = []
    left = list(sequences)
    while left and len(chosen) < longest:
        at = len(chosen)
        counts = Counter(sequence[at] if at < len(sequence) else None for sequence in left)
        symbol = counts.most_common(1)[0][0]
        if symbol is None:
            break
        chosen.append(symbol)
        left = [sequence for sequence in left if at < len(sequence) and sequence[at] == symbol]
    return chosen


def neighbour_heads(words: int, side: str) -> list[int]:
    """Of each word, counted from 1, the word before it ("previous") or after it ("next"); at the end 0, the root.

    Raises ValueError for another side.
    """
    if side == "previous":
        return list(range(words))
    if side == "next":
        return [*range(2, words + 1), 0][:words]
    raise ValueError(f"expected the side previous or next, got {side!r}")


def random_choice(things: int, chosen: int) -> float:
    """The chance, 0 to 1, that so many things drawn in turn, none twice, are those that are sought, in their order."""
    return 0.0 if chosen > things else 1.0 / math.perm(things, chosen)
