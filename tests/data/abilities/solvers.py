"""The targets of each task found again from the symbols alone, in other ways than the generators'."""

from __future__ import annotations

import itertools
import statistics

import numpy as np


def recall(symbols):
    """By regarding the sequence from its end: a key's answer is what followed its first standing."""
    found = []
    for place, symbol in enumerate(symbols):
        first = symbols.index(symbol)
        found.append(symbols[first + 1] if symbol[0] == "k" and first < place else None)
    return found


def copying(symbols):
    """The n-th mark asks for the n-th item."""
    items = [symbol for symbol in symbols if symbol[0] == "v"]
    marks = itertools.count()
    return [items[next(marks)] if symbol == "?" else None for symbol in symbols]


def induction(symbols):
    """By searching backwards."""
    def before(place):
        return next((i for i in reversed(range(place)) if symbols[i] == symbols[place]), None)

    return [None if before(i) is None else symbols[before(i) + 1] for i in range(len(symbols))]


def counting(modulus):
    """By numpy's sums."""
    return lambda symbols: [str(n) for n in np.cumsum([int(s) for s in symbols]) % modulus]


def permutations(symbols):
    """By products of permutation matrices: M[i, j] = 1 where i goes to j, so that the first factor acts first."""
    state, found = np.eye(len(symbols[0]), dtype=int), []
    for symbol in symbols:
        state = state @ np.eye(len(symbol), dtype=int)[[int(image) for image in symbol]]
        found.append("".join(map(str, state.argmax(1))))
    return found


def dyck(symbols):
    """By striking out matched pairs until none is left."""
    def answer(prefix):
        while True:
            pair = next((i for i in range(len(prefix) - 1) if prefix[i][0] == "(" and prefix[i + 1][0] == ")"), None)
            if pair is None:
                return f"){prefix[-1][1:]}" if prefix else "end"
            assert prefix[pair][1:] == prefix[pair + 1][1:]
            prefix = prefix[:pair] + prefix[pair + 2 :]

    return [answer(symbols[: i + 1]) if symbol[0] == ")" else None for i, symbol in enumerate(symbols)]


def undo(symbols):
    """By walking back from each reading: an undoing takes away the writing before it that is not taken away yet."""
    def answer(place):
        owed = 0
        for symbol in reversed(symbols[:place]):
            if symbol == "undo":
                owed += 1
            elif symbol[0] == "+":
                if not owed:
                    return symbol[1:]
                owed -= 1
        return "empty"

    return [answer(i) if symbol == "read" else None for i, symbol in enumerate(symbols)]


def listops(symbols):
    """By recursion over the text between an operator and its bracket."""
    of = {"[MIN": min, "[MAX": max, "[MED": lambda v: int(statistics.median(v)), "[SM": lambda v: sum(v) % 10}
    found = [None] * len(symbols)

    def value(start):
        if symbols[start].isdigit():
            return int(symbols[start]), start + 1
        values, place = [], start + 1
        while symbols[place] != "]":
            one, place = value(place)
            values.append(one)
        result = of[symbols[start]](values)
        found[place] = str(result)
        return result, place + 1

    assert value(0)[1] == len(symbols)
    return found


SOLVERS = {
    "recall": recall, "copying": copying, "induction": induction, "parity": counting(2), "counting": counting(5),
    "z60": counting(60), "s3": permutations, "a5": permutations, "s5": permutations, "dyck": dyck, "undo": undo,
    "listops": listops,
}
