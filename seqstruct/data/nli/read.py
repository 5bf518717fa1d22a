"""Pairs of sentences from SNLI (JSON lines) and from the challenges on recognising textual entailment (RTE, XML)."""

from __future__ import annotations

import json
import os
import re
import zipfile
from dataclasses import dataclass
from typing import NamedTuple
from xml.etree import ElementTree

from seqstruct.data.downloads import DAMAGE
from seqstruct.data.text.aligned import read_lines

SNLI_LABELS = ("entailment", "neutral", "contradiction")
RTE_LABELS = ("entailment", "no entailment")
RTE_ANSWERS = {"TRUE": "entailment", "FALSE": "no entailment", "YES": "entailment", "NO": "no entailment"}
NO_LABEL = "-"


@dataclass(frozen=True)
class SentencePair:
    """One question of inference.

    premise, hypothesis: words.  label: by name.  heads: of the premise and the hypothesis, the number of each word's
    head counted from 1, 0 the root; or None where there is no parse.
    """

    premise: tuple[str, ...]
    hypothesis: tuple[str, ...]
    label: str
    heads: tuple[tuple[int, ...], tuple[int, ...]] | None = None


class Pairs(NamedTuple):
    """What a file has.  skipped: pairs without a label, on which the annotators did not agree."""

    pairs: list[SentencePair]
    skipped: int


def words_of(sentence: str) -> tuple[str, ...]:
    """Words, numbers and single punctuation marks of a sentence that nobody has cut into words."""
    return tuple(re.findall(r"\w+(?:[.,]\d+)*(?:['’]\w+)?|[^\w\s]", sentence))


def leaves(binary_parse: str) -> tuple[str, ...]:
    """The words of a parse in brackets."""
    return tuple(word for word in binary_parse.split() if word not in "()")


def read_snli(path: str | os.PathLike) -> Pairs:
    """The pairs of a file of JSON lines, cut into words as its binary parses are; the label "-" is skipped and counted.

    Raises ValueError naming file and line for a line that is no JSON object with the fields gold_label,
    sentence1_binary_parse and sentence2_binary_parse, a label outside the set, or a sentence without words.
    """
    pairs, skipped = [], 0
    for number, line in enumerate(read_lines(path), 1):
        place = f"{path}: line {number}"
        try:
            entry = json.loads(line)
            label = entry["gold_label"]
            sentences = [leaves(entry[f"sentence{side}_binary_parse"]) for side in (1, 2)]
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{place}: not a pair of SNLI: {type(error).__name__}: {error}") from None
        if label == NO_LABEL:
            skipped += 1
            continue
        if label not in SNLI_LABELS:
            raise ValueError(f"{place}: expected a label of {', '.join(SNLI_LABELS)} or {NO_LABEL}, got {label!r}")
        if not all(sentences):
            raise ValueError(f"{place}: a sentence without words")
        pairs.append(SentencePair(sentences[0], sentences[1], label))
    if not pairs:
        raise ValueError(f"{path}: expected pairs of sentences, found none")
    return Pairs(pairs, skipped)


def read_rte(archive: str | os.PathLike, member: str) -> Pairs:
    """The pairs of one XML file (rte/rte1_dev.xml and so on) in the archive rte.zip of nltk.

    Raises ValueError naming file and pair for an answer other than TRUE, FALSE, YES or NO, a sentence that is missing
    or without words, or a file that is missing, damaged, or no XML.
    """
    place = f"{archive}, {member}"
    try:
        with zipfile.ZipFile(archive) as opened:
            root = ElementTree.fromstring(opened.read(member))
    except (KeyError, ElementTree.ParseError, OSError, *DAMAGE) as error:
        raise ValueError(f"{place}: cannot be read: {error}") from None
    pairs = []
    for pair in root.iter("pair"):
        here = f"{place}, pair {pair.get('id')}"
        answer = pair.get("value", pair.get("entailment"))
        if answer not in RTE_ANSWERS:
            raise ValueError(f"{here}: expected an answer of {', '.join(RTE_ANSWERS)}, got {answer!r}")
        sentences = [words_of(pair.findtext(tag) or "") for tag in ("t", "h")]
        if not all(sentences):
            raise ValueError(f"{here}: a sentence is missing or without words")
        pairs.append(SentencePair(sentences[0], sentences[1], RTE_ANSWERS[answer]))
    if not pairs:
        raise ValueError(f"{place}: expected pairs of sentences, found none")
    return Pairs(pairs, 0)
