"""Scores of parsers as the official scorers define them, from counts that add up over batches.

Trees: unlabeled attachment, with and without punctuation.  Graphs: precision, recall and F1 over arcs, labeled and
unlabeled, the top words counted as arcs from a root (Oepen et al. 2015, section 5).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch import Tensor

PUNCTUATION = frozenset(("PUNCT", "``", "''", ",", ".", ":"))


def attachment_counts(heads: Tensor, gold: Tensor, punctuation: Tensor) -> dict[str, int]:
    """Words and right heads, of all words and of those that are no punctuation.

    heads, gold: B N long, -1 at padding of gold; punctuation: B N bool.
    """
    real = gold >= 0
    right = (heads == gold) & real
    return {
        "words": int(real.sum()),
        "right": int(right.sum()),
        "unpunctuated_words": int((real & ~punctuation).sum()),
        "unpunctuated_right": int((right & ~punctuation).sum()),
    }


def graph_counts(chosen: Tensor, gold: Tensor) -> dict[str, int]:
    """Arcs predicted, in the gold graphs, and shared, without and with labels; both B N N long, -1 without an arc."""
    both = (chosen >= 0) & (gold >= 0)
    return {
        "predicted": int((chosen >= 0).sum()),
        "gold": int((gold >= 0).sum()),
        "unlabeled": int(both.sum()),
        "labeled": int((both & (chosen == gold)).sum()),
    }


def f1(shared: float, predicted: float, gold: float) -> float:
    """Harmonic mean of precision and recall, 0 to 100; 0 where nothing is shared, 100 where both are empty."""
    if predicted + gold == 0:
        return 100.0
    return 200.0 * shared / (predicted + gold)


def share(part: float, whole: float) -> float:
    """Percentage, 0 to 100; 0 of nothing."""
    return 100.0 * part / whole if whole else 0.0


def kinds_of_change(
    before: Sequence[int], after: Sequence[int], arcs: Iterable[tuple[int, int]]
) -> dict[str, int]:
    """How changes of a tree relate to the sentence's semantic graph (Peng 2022, section 2.5).

    before, after: the head of each word, h and h' of a word m.  arcs: (head, dependent) of the graph.  A change counts
    as `to_head` if h' is a head of m in the graph, else as `to_dependent` if h' is a dependent of m, else as
    `from_dependent` if h is a dependent of m, else as `other`; `changes` is their sum.
    """
    graph = set(arcs)
    counts = {"changes": 0, "to_head": 0, "to_dependent": 0, "from_dependent": 0, "other": 0}
    for m, (old, new) in enumerate(zip(before, after, strict=True), 1):
        if old != new:
            arcs_of = {"to_head": (new, m), "to_dependent": (m, new), "from_dependent": (m, old)}
            counts[next((kind for kind, arc in arcs_of.items() if arc in graph), "other")] += 1
            counts["changes"] += 1
    return counts
