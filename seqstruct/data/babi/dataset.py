"""bAbI questions as arrays, and batches in which several seeds train side by side."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import torch

from seqstruct.data.babi.stories import Question
from seqstruct.data.sized import SizedDataset


@dataclass(frozen=True)
class EncodedQuestions:
    """Questions of one file as arrays; -1 stands where nothing is.

    sentences: U L, word ids of each distinct fact or question.  facts: N M, the remembered facts of each question as
    rows of `sentences`, the newest first.  question: N, a row of `sentences`.  answer: N, word ids.
    support: N F, supporting facts as places in `facts`; -2 for a fact that the memory has lost.
    """

    sentences: np.ndarray
    facts: np.ndarray
    question: np.ndarray
    answer: np.ndarray
    support: np.ndarray

    def __len__(self) -> int:
        return len(self.question)


def _padded(rows: Sequence[Sequence[int]]) -> np.ndarray:
    columns = list(zip_longest(*rows, fillvalue=-1))
    return np.array(columns, dtype=np.int64).reshape(-1, len(rows)).T.copy()


def encode(
    questions: Sequence[Question], vocabulary: Mapping[str, int], memory: int, path: str | os.PathLike
) -> EncodedQuestions:
    """Words to ids; the memory keeps the last `memory` facts.

    Raises ValueError naming file (path) and line if an answer or another word is not in the vocabulary.
    """
    table: dict[tuple[str, ...], int] = {}
    for q in questions:
        if q.answer not in vocabulary:
            raise ValueError(f"{path}: line {q.line}: the answer {q.answer!r} is not in the vocabulary")
        for sentence in (*q.facts, q.question):
            for word in sentence:
                if word not in vocabulary:
                    raise ValueError(f"{path}: in or before line {q.line}: the word {word!r} is not in the vocabulary")
            table.setdefault(sentence, len(table))
    support = [[place if place >= 0 else -2 for place in q.support_from_newest(memory)] for q in questions]
    return EncodedQuestions(
        sentences=_padded([[vocabulary[word] for word in sentence] for sentence in table]),
        facts=_padded([[table[fact] for fact in q.facts[::-1][:memory]] for q in questions]),
        question=np.array([table[q.question] for q in questions]),
        answer=np.array([vocabulary[q.answer] for q in questions]),
        support=_padded(support),
    )


class StackedQuestions(SizedDataset):
    """Questions for models of S seeds at once.

    A batch takes as many questions for every seed; in training each seed has an order of its own, drawn for each epoch
    from the seed and the epoch alone, so that a seed sees the same batches alone and beside others.
    seeds: one for each model of the stack.  shuffle: whether to draw orders; else all models see the file's order.
    """

    def __init__(self, questions: EncodedQuestions, seeds: Sequence[int], shuffle: bool):
        self.questions = questions
        self.seeds = tuple(seeds)
        self.shuffle = shuffle
        self.sizes = np.ones(len(questions), dtype=np.int64)  # an example has a single answer
        self.sentences = torch.from_numpy(questions.sentences)
        self.set_epoch(1)

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        """Not in training: the workers of a data loader that goes on never hear of another epoch."""
        return not self.shuffle

    def set_epoch(self, epoch: int) -> None:
        """Draw the orders of an epoch, counted from 1."""
        self.epoch = epoch
        count = len(self.questions)
        if self.shuffle:
            self.order = np.stack([np.random.default_rng((seed, epoch)).permutation(count) for seed in self.seeds])
        else:
            self.order = np.tile(np.arange(count), (len(self.seeds), 1))

    def __getitem__(self, index: int) -> int:
        """A place in the orders of all seeds."""
        return int(index)

    def collater(self, samples: Sequence[int]) -> dict[str, Any]:
        """A batch of B questions for each of S seeds.

        net_input.sentences: U L long.  facts: S B M long, question: S B long, as in `EncodedQuestions`, M the most
        facts in the batch.  epoch: the number that the dataset was told last, from 1.
        target: S B long.  support: S B F long.
        """
        if not len(samples):
            return {}
        places = self.order[:, np.asarray(samples)]  # S B
        q = self.questions
        facts = q.facts[places]
        facts = facts[:, :, : int((facts >= 0).sum(2).max())]
        return {
            "id": torch.from_numpy(places),
            "nsentences": len(samples),
            "ntokens": len(samples),
            "net_input": {
                "sentences": self.sentences,
                "facts": torch.from_numpy(np.ascontiguousarray(facts)),
                "question": torch.from_numpy(q.question[places]),
                "epoch": self.epoch,
            },
            "target": torch.from_numpy(q.answer[places]),
            "support": torch.from_numpy(q.support[places]),
        }
