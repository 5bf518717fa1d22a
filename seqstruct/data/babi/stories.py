"""Reading bAbI stories (Weston et al. 2015).

A line is a number, counted from 1 within a story, and a fact or a question.  A question goes on with its answer and the
numbers of its supporting facts, apart by tabs:

    2 Sandra journeyed to the bedroom.
    3 Where is Sandra? \tbedroom\t2
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from seqstruct.data.text.aligned import read_lines

TASKS = {
    1: "single-supporting-fact",
    2: "two-supporting-facts",
    3: "three-supporting-facts",
    4: "two-arg-relations",
    5: "three-arg-relations",
    6: "yes-no-questions",
    7: "counting",
    8: "lists-sets",
    9: "simple-negation",
    10: "indefinite-knowledge",
    11: "basic-coreference",
    12: "conjunction",
    13: "compound-coreference",
    14: "time-reasoning",
    15: "basic-deduction",
    16: "basic-induction",
    17: "positional-reasoning",
    18: "size-reasoning",
    19: "path-finding",
    20: "agents-motivations",
}


@dataclass(frozen=True)
class Question:
    """One question with what was told before it.

    facts: the words of each fact, the oldest first; numbers: the facts' line numbers within the story.  question: its
    words.  answer: one token, whatever stands there ("n,w").  support: numbers of the supporting facts, in the file's
    order.  line: of the question in its file, counted from 1.
    """

    facts: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...]
    question: tuple[str, ...]
    answer: str
    support: tuple[int, ...]
    line: int

    def support_from_newest(self, memory: int) -> tuple[int, ...]:
        """Supporting facts as places in a memory of the last facts, the newest first; -1 for one that it has lost."""
        places = {number: place for place, number in enumerate(self.numbers[::-1][:memory])}
        return tuple(places.get(number, -1) for number in self.support)


def words_of(sentence: str) -> tuple[str, ...]:
    """Lowercased words; punctuation is left out."""
    return tuple(re.findall(r"[\w']+", sentence.lower()))


def read_questions(path: str | os.PathLike) -> list[Question]:
    """All questions of a file, in order.

    Raises ValueError naming file and line for a line that is neither fact nor question, numbers that do not count up,
    a question before any fact or without an answer, a support that is no fact before it, and a file without questions.
    """
    questions: list[Question] = []
    facts: list[tuple[str, ...]] = []
    numbers: list[int] = []
    previous = 0
    for line, text in enumerate(read_lines(path), 1):
        number, _, rest = text.partition(" ")
        if not number.isascii() or not number.isdigit() or number.startswith("0") or not rest.strip():
            raise ValueError(f"{path}: line {line}: expected a number and a sentence, got {text!r}")
        if int(number) == 1:
            facts, numbers = [], []
        elif int(number) != previous + 1:
            raise ValueError(f"{path}: line {line}: expected the number {previous + 1} or 1, got {number}")
        previous = int(number)
        if "\t" not in rest:
            facts.append(words_of(rest))
            numbers.append(previous)
            continue
        if not facts:
            raise ValueError(f"{path}: line {line}: a question before any fact of its story")
        sentence, answer, support = _fields(rest, f"{path}: line {line}")
        strange = [n for n in support if n not in numbers]
        if strange:
            raise ValueError(f"{path}: line {line}: supporting fact {strange[0]} is no fact before the question")
        questions.append(Question(tuple(facts), tuple(numbers), words_of(sentence), answer, support, line))
    if not questions:
        raise ValueError(f"{path}: expected questions, found none")
    return questions


def _fields(rest: str, place: str) -> tuple[str, str, tuple[int, ...]]:
    fields = rest.split("\t")
    if len(fields) != 3 or not fields[1].strip() or not words_of(fields[0]):
        raise ValueError(f"{place}: expected a question, its answer and its supporting facts apart by tabs")
    support = fields[2].split()
    if not all(n.isascii() and n.isdigit() for n in support):
        raise ValueError(f"{place}: expected numbers of supporting facts, got {fields[2]!r}")
    return fields[0], fields[1].strip().lower(), tuple(int(n) for n in support)


def vocabulary_of(questions: Iterable[Question]) -> list[str]:
    """All words of facts, questions and answers, sorted; an answer is one word, whatever stands in it."""
    words: set[str] = set()
    for question in questions:
        words.update(question.question, (question.answer,), *question.facts)
    return sorted(words)


def file_name(task: int, split: str) -> str:
    """The official file of a task (1 to 20) and split (train or test).  Raises ValueError if the number is no task."""
    if task not in TASKS:
        raise ValueError(f"expected a task from 1 to {len(TASKS)}, got {task}")
    return f"qa{task}_{TASKS[task]}_{split}.txt"
