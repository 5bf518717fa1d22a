"""GLEU, the sentence score of Wu et al. (2016, sec. 5.2): the lesser of recall and precision over 1- to 4-grams.

Where BLEU is made for corpora, GLEU behaves on single sentences: it lies between 0 (nothing matches) and 1 (all
matches), and does not change when hypothesis and reference change places.  It is therefore the reward in training for
expected GLEU; tokens may be words or vocabulary indices.  Not to be confused with the measure of the same name for
grammatical error correction (Napoles et al. 2015).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

ORDER = 4


def ngrams(tokens: Sequence[Hashable], order: int = ORDER) -> Counter:
    """How often each run of 1 to `order` tokens occurs."""
    tokens = tuple(tokens)
    return Counter(tokens[i : i + n] for n in range(1, order + 1) for i in range(len(tokens) - n + 1))


def sentence_gleu(hypothesis: Sequence[Hashable], reference: Sequence[Hashable], order: int = ORDER) -> float:
    """GLEU of one sentence, 0 to 1: n-grams that match, over those of the side that has more of them.

    An n-gram matches as often as it occurs on both sides.  With the number of the hypothesis below it would be
    precision, with the reference's recall, and the larger divisor gives the lesser.  Two empty sentences are equal: 1.
    Cost: linear in both lengths.  Raises ValueError if the order is under 1.
    """
    if order < 1:
        raise ValueError(f"order: expected 1 or more, got {order}")
    ours, theirs = ngrams(hypothesis, order), ngrams(reference, order)
    longest = max(ours.total(), theirs.total())
    return (ours & theirs).total() / longest if longest else 1.0
