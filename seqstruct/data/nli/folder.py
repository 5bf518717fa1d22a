"""Folders for the task `nli`: pairs of sentences, their vocabulary and word vectors.

    snli    snli_1.0_{train,dev,test}.jsonl
    rte     rte.zip of nltk: RTE 1, 2 and 3; the development sets train, the last tenth of each validates, the test sets
            test

A folder holds SPLIT.jsonl (train, valid, test: premise, hypothesis, label and, where parses were given, heads),
vocabulary.txt, nli.json (labels, counts, how many pairs were skipped) and, if word vectors were given, vectors.npy, a
row for each word.  Heads come from CoNLL-U files SPLIT.premise.conllu and SPLIT.hypothesis.conllu with a tree for each
pair of the split in order.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from seqstruct.data.files import new_folder, write_text
from seqstruct.data.nli.read import RTE_LABELS, SNLI_LABELS, Pairs, SentencePair, find_snli, read_rte, read_snli
from seqstruct.data.text.aligned import read_lines
from seqstruct.data.text.conllu import read_conllu
from seqstruct.data.text.word_vectors import read_vectors, vectors_with_hashing

SPLITS = ("train", "valid", "test")
CORPORA = {"snli": SNLI_LABELS, "rte": RTE_LABELS}
VOCABULARY, META, VECTORS = "vocabulary.txt", "nli.json", "vectors.npy"
CHALLENGES = (1, 2, 3)


def read_corpus(corpus: str, source: str | os.PathLike) -> dict[str, Pairs]:
    """The pairs of each split.  Raises ValueError if the corpus is unknown, and what the readers raise."""
    if corpus not in CORPORA:
        raise ValueError(f"expected a corpus of {', '.join(CORPORA)}, got {corpus!r}")
    if corpus == "snli":
        return {split: read_snli(find_snli(source, split)) for split in SPLITS}
    archive = Path(source) / "rte.zip"
    if not archive.is_file():
        raise ValueError(f"{archive}: no such file")
    train: list[SentencePair] = []
    valid: list[SentencePair] = []
    test: list[SentencePair] = []
    for challenge in CHALLENGES:
        pairs = read_rte(archive, f"rte/rte{challenge}_dev.xml").pairs
        held = len(pairs) - len(pairs) // 10
        train += pairs[:held]
        valid += pairs[held:]
        test += read_rte(archive, f"rte/rte{challenge}_test.xml").pairs
    return {"train": Pairs(train, 0), "valid": Pairs(valid, 0), "test": Pairs(test, 0)}


def with_heads(pairs: Sequence[SentencePair], folder: str | os.PathLike, split: str) -> list[SentencePair]:
    """The pairs with the heads of an external parser.

    Raises ValueError naming the file where its words are not those of the pair, or sentences are missing or left.
    """
    sides = []
    for number, side in enumerate(("premise", "hypothesis")):
        path = Path(folder) / f"{split}.{side}.conllu"
        heads = []
        for sentence in read_conllu(path):
            pair = pairs[len(heads)] if len(heads) < len(pairs) else None
            words = None if pair is None else (pair.premise, pair.hypothesis)[number]
            if words != tuple(token.form for token in sentence.tokens):
                expected = "no further sentence" if words is None else " ".join(words)
                raise ValueError(f"{path}: line {sentence.line}: expected {expected!r}")
            heads.append(sentence.heads)
        if len(heads) != len(pairs):
            raise ValueError(f"{path}: expected {len(pairs)} sentences, found {len(heads)}")
        sides.append(heads)
    return [replace(pair, heads=found) for pair, *found in zip(pairs, *sides, strict=True)]


def write_pairs(
    splits: Mapping[str, Pairs],
    labels: Sequence[str],
    out: str | os.PathLike,
    about: Mapping[str, Any],
    *,
    vectors: str | os.PathLike | None = None,
    heads: str | os.PathLike | None = None,
    lowercase: bool = False,
) -> dict:
    """Write a folder of pairs; the contents of nli.json come back.

    about: what else nli.json should tell.  vectors: a file as `read_vectors` reads; words that it does not have share
    100 Gaussian vectors.  heads: folder of CoNLL-U files.  lowercase: whether words are.
    Raises ValueError for what does not fit, or if `out` holds files already.
    """
    made: dict[str, list[SentencePair]] = {}
    for split, (pairs, _) in splits.items():
        found = with_heads(pairs, heads, split) if heads is not None else list(pairs)
        made[split] = [_lowercase(pair) for pair in found] if lowercase else found
    words = sorted({w for pairs in made.values() for pair in pairs for w in (*pair.premise, *pair.hypothesis)})
    known = None if vectors is None else read_vectors(vectors, words)
    meta = {
        **about, "labels": list(labels), "lowercase": lowercase,
        "pairs": {split: len(pairs) for split, pairs in made.items()},
        "skipped": {split: splits[split].skipped for split in splits},
        "words": len(words), "words_with_vector": None if known is None else len(known),
    }  # fmt: skip
    with new_folder(out) as beside:
        for split, pairs in made.items():
            (beside / f"{split}.jsonl").write_text("".join(f"{_to_json(p)}\n" for p in pairs), encoding="utf-8")
        write_text(beside / VOCABULARY, words)
        if known is not None:
            if not known:
                raise ValueError(f"{vectors}: no word of the corpus has a vector")
            size = len(next(iter(known.values())))
            np.save(beside / VECTORS, vectors_with_hashing(words, known, size))
        (beside / META).write_text(json.dumps(meta, indent=1) + "\n", encoding="utf-8")
    return meta


def _lowercase(pair: SentencePair) -> SentencePair:
    sides = (tuple(word.lower() for word in side) for side in (pair.premise, pair.hypothesis))
    return SentencePair(*sides, pair.label, pair.heads)


def _to_json(pair: SentencePair) -> str:
    content = {"premise": pair.premise, "hypothesis": pair.hypothesis, "label": pair.label}
    if pair.heads is not None:
        content["heads"] = pair.heads
    return json.dumps(content, ensure_ascii=False)


def read_meta(folder: str | os.PathLike) -> dict:
    """The contents of nli.json.  Raises ValueError if it is missing or damaged."""
    path = Path(folder) / META
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
        len(meta["labels"])
    except (OSError, json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: expected a folder made by data-prep/snli.sh: {error}") from None
    return meta


def read_split(
    folder: str | os.PathLike, split: str, labels: Sequence[str], vocabulary: Mapping[str, int]
) -> list[SentencePair]:
    """The pairs of a split.

    Raises ValueError, naming file and line, for a damaged line, a label outside the set, a word that the vocabulary
    does not have, or heads that are not as many as the words.
    """
    path = Path(folder) / f"{split}.jsonl"
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    pairs = []
    for number, line in enumerate(read_lines(path), 1):
        place = f"{path}: line {number}"
        try:
            entry = json.loads(line)
            heads = entry.get("heads")
            pair = SentencePair(tuple(entry["premise"]), tuple(entry["hypothesis"]), entry["label"],
                        None if heads is None else (tuple(heads[0]), tuple(heads[1])))
        except (json.JSONDecodeError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise ValueError(f"{place}: not a pair of sentences: {type(error).__name__}: {error}") from None
        if pair.label not in labels:
            raise ValueError(f"{place}: expected a label of {', '.join(labels)}, got {pair.label!r}")
        for side, words in enumerate((pair.premise, pair.hypothesis)):
            strange = next((word for word in words if word not in vocabulary), None)
            if strange is not None or not words:
                raise ValueError(f"{place}: the word {strange!r} is not in the vocabulary" if words
                                 else f"{place}: a sentence without words")
            if pair.heads is not None and len(pair.heads[side]) != len(words):
                raise ValueError(f"{place}: {len(pair.heads[side])} heads for {len(words)} words")
        pairs.append(pair)
    if not pairs:
        raise ValueError(f"{path}: expected pairs of sentences, found none")
    return pairs
