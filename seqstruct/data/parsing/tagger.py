"""Part-of-speech tags of words that come without: a hidden Markov model learned from tagged text.

A bigram model with the tags of rare words by their endings for words that it has not seen (Brants 2000, TnT; there,
trigrams).  Words count in lower case.  `read_brown` gives the text to learn from: the Brown corpus, whose tags are cut
to their base, "nn" of "nn-tl", "fw-nn" or "nn+bez".
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch

from seqstruct.data.corpora.language_modeling import brown_documents
from seqstruct.data.files import existing
from seqstruct.ops.chains import chain_best_path

RARE, LONGEST_ENDING = 10, 5  # a word seen at most so often teaches its endings; characters of an ending
SMOOTHING = 10.0  # weight of the coarser distribution, in occurrences


class Tagger:
    """Learned from sentences of (word, tag) pairs.  Raises ValueError if there is none."""

    def __init__(self, sentences: Iterable[Sequence[tuple[str, str]]]):
        by_word: dict[str, Counter[str]] = defaultdict(Counter)
        pairs: Counter[tuple[str, str]] = Counter()
        for sentence in sentences:
            for word, tag in sentence:
                by_word[word.lower()][tag] += 1
            tags = ["", *(tag for _, tag in sentence)]
            pairs.update(zip(tags, tags[1:], strict=False))
        self.tags = sorted({tag for _, tag in pairs})
        if not self.tags:
            raise ValueError("expected sentences with tags to learn from, got none")
        tags_alone: Counter[str] = Counter()
        for (_, tag), count in pairs.items():
            tags_alone[tag] += count
        self.prior = _share(self._counts(tags_alone))
        by_ending: dict[str, Counter[str]] = defaultdict(Counter)
        for word, counts in by_word.items():
            if counts.total() <= RARE:
                for length in range(1, min(LONGEST_ENDING, len(word)) + 1):
                    by_ending[word[-length:]].update(counts)
        # p(tag | ending), shorter endings first, each smoothed by the one before
        self.endings: dict[str, np.ndarray] = {"": self.prior}
        for ending in sorted(by_ending, key=len):
            self.endings.setdefault(ending, self._smoothed(by_ending[ending], self.endings[ending[1:]]))
        self.words = {word: self._smoothed(counts, self._of_ending(word), 1.0) for word, counts in by_word.items()}
        follow: dict[str, Counter[str]] = defaultdict(Counter)
        for (before, tag), count in pairs.items():
            follow[before][tag] += count
        rows = {before: np.log(self._smoothed(counts, self.prior)) for before, counts in follow.items()}
        self.first = torch.from_numpy(rows[""])
        unseen = np.log(self.prior)
        self.transitions = torch.from_numpy(np.stack([rows.get(tag, unseen) for tag in self.tags]))

    def tag(self, words: Sequence[str]) -> list[str]:
        """The most probable tags of a sentence's words, by Viterbi's algorithm."""
        if not words:
            return []
        lower = map(str.lower, words)
        given = [self.words[word] if word in self.words else self._of_ending(word) for word in lower]
        unary = torch.from_numpy(np.log(np.stack(given) / self.prior))  # p(word | tag) but for what tags share
        unary[0] += self.first
        edge = self.transitions.expand(1, len(words) - 1, -1, -1)
        return [self.tags[i] for i in chain_best_path(unary[None], edge).states[0].tolist()]

    def _of_ending(self, word: str) -> np.ndarray:
        """p(tag | longest ending that was seen)."""
        lengths = range(min(LONGEST_ENDING, len(word)), -1, -1)
        return next(self.endings[word[len(word) - n :]] for n in lengths if word[len(word) - n :] in self.endings)

    def _counts(self, counts: Counter[str]) -> np.ndarray:
        return np.array([counts[tag] for tag in self.tags], dtype=np.float64)

    def _smoothed(self, counts: Counter[str], coarser: np.ndarray, weight: float = SMOOTHING) -> np.ndarray:
        return _share(self._counts(counts) + weight * coarser)


def _share(counts: np.ndarray) -> np.ndarray:
    return counts / counts.sum()


def read_brown(archive: str | os.PathLike) -> list[list[tuple[str, str]]]:
    """The sentences of nltk's brown.zip, with base tags.  Raises ValueError if it is none."""
    lines = (line.split() for document in brown_documents(existing(Path(archive))) for line in document)
    return [[_pair(token) for token in tokens] for tokens in lines if tokens]


def _pair(token: str) -> tuple[str, str]:
    word, _, tag = token.rpartition("/")
    return word, re.sub(r"(?<=.)[-+*].*", "", tag.removeprefix("fw-"))
