"""Folders of strings of a context-free language: written whole or not at all, checked by checksum when read.

* `train.txt`, `valid.txt`, `test.txt`: one string a line, symbols separated by spaces; the strings of one batch stand
  together and share a length.
* `valid.log_probability`, `test.log_probability`: log p(w | l) of each string, nats, one a line.
* `dict.txt`: fairseq dictionary, the terminals in the order of their ids.
* `language.txt`: what a language of one's own was made from: rules, a regular expression or an automaton.
* `meta.json`: language, grammar, seeds, batch size, lengths, number of valid lengths, SHA-256 of every other file.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from seqstruct.data.arguments import at_least
from seqstruct.data.cfl.chart import log_probabilities
from seqstruct.data.cfl.languages import Language, get_language
from seqstruct.data.cfl.own import READERS, OwnLanguage, own_language
from seqstruct.data.cfl.sampler import sample_strings
from seqstruct.data.checked import SPLITS, check_file, check_split, write_meta
from seqstruct.data.checked import read_meta as read_checked
from seqstruct.data.files import new_folder, write_text
from seqstruct.data.text.aligned import read_lines

DICTIONARY = "dict.txt"
KEYS = ("language", "grammar", "batch", "lengths", "test_lengths", "valid_length_counts")  # of meta.json
OWN = "language.txt"


@dataclass(frozen=True)
class StringsRequest:
    """What a folder is to hold: `prepare.add_arguments` says what each field is; both ends of lengths are included.

    language, grammar: one of the five and its form; or the name of a language of one's own and one of `own.READERS`.
    """

    language: str
    grammar: str = "published"
    train: int = 10000
    valid: int = 1000
    test_per_length: int = 100
    batch: int = 10
    lengths: tuple[int, int] = (40, 80)
    test_lengths: tuple[int, int] = (40, 100)
    seed: int = 1
    test_seed: int = 0


class Strings(NamedTuple):
    """One split of a folder: terminal ids of each string; log p(w | l) in nats (float64) or None for training."""

    strings: list[np.ndarray]
    log_probability: np.ndarray | None


def write_folder(
    request: StringsRequest, folder: str | os.PathLike, own: OwnLanguage | None = None
) -> dict[str, Any]:
    """Sample the three splits and write them; the contents of meta.json come back.

    own: the language, if it is not one of the five.
    The folder appears when it is complete.  Raises ValueError on a request that cannot be met, or if the folder
    exists and is not empty.
    """
    at_least(request, command=True, train=1, valid=1, test_per_length=1, batch=1, seed=0, test_seed=0)
    language = own or get_language(request.language, request.grammar)
    lengths = _lengths(language, "--lengths", request.lengths)
    test_lengths = _lengths(language, "--test-lengths", request.test_lengths)
    with new_folder(folder) as beside:
        for number, (split, count) in enumerate((("train", request.train), ("valid", request.valid))):
            generator = np.random.default_rng([request.seed, number])
            batches = -(-count // request.batch)
            chosen = np.repeat(generator.choice(lengths, batches), request.batch)[:count]
            _write_split(beside, split, language, sample_strings(language, chosen, generator))
        generator = np.random.default_rng([request.test_seed, SPLITS.index("test")])
        every = np.repeat(test_lengths, request.test_per_length)
        _write_split(beside, "test", language, sample_strings(language, every, generator))
        if own:
            write_text(beside / OWN, own.text.removesuffix("\n").split("\n"))
        counts = {"train": len(lengths), "valid": len(lengths), "test": len(test_lengths)}
        return write_meta(beside, {**asdict(request), "valid_length_counts": counts})


def _lengths(language: Language, option: str, bounds: tuple[int, int]) -> list[int]:
    try:
        return language.valid_lengths(*bounds)
    except ValueError as error:  # the bounds may be a default that nobody wrote
        raise ValueError(f"{option}: {error}") from None


def _write_split(folder: Path, split: str, language: Language, strings: list[np.ndarray]) -> None:
    names = language.terminals
    write_text(folder / f"{split}.txt", (" ".join(names[i] for i in string) for string in strings))
    if split == "train":
        counts = Counter(np.concatenate(strings).tolist())
        write_text(folder / DICTIONARY, (f"{name} {counts[i]}" for i, name in enumerate(names)))
    else:
        values = log_probabilities(language, strings)
        write_text(folder / f"{split}.log_probability", (f"{value:.17g}" for value in values))


def read_meta(folder: str | os.PathLike) -> dict[str, Any]:
    """The contents of meta.json.  Raises ValueError as `checked.read_meta`, and on a language that there is not."""
    meta = read_checked(folder, "cfl", KEYS, (DICTIONARY,))
    language_of(folder, meta)
    return meta


def language_of(folder: str | os.PathLike, meta: Mapping[str, Any]) -> Language:
    """What the folder is a sample of.  Raises ValueError if there is no such language, or its file is altered."""
    if meta["grammar"] not in READERS:
        return get_language(meta["language"], meta["grammar"])
    path = check_file(folder, meta, OWN)
    return own_language(meta["language"], meta["grammar"], "".join(f"{line}\n" for line in read_lines(path)))


def read_split(folder: str | os.PathLike, split: str, meta: Mapping[str, Any]) -> Strings:
    """The strings of a split, with their log-probabilities where the folder has them.

    Raises ValueError if the split does not exist, a file is missing or altered, a line is empty, a symbol is not of
    the language, or lines and log-probabilities do not pair up.
    """
    check_split(folder, split)
    language = language_of(folder, meta)
    path = check_file(folder, meta, f"{split}.txt")
    strings = []
    for number, line in enumerate(read_lines(path), 1):
        if not line.split():
            raise ValueError(f"{path}, line {number}: an empty line is no string of {language.name}")
        try:
            strings.append(np.array(language.encode(line.split())))
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
    if split == "train":
        return Strings(strings, None)
    path = check_file(folder, meta, f"{split}.log_probability")
    values = []
    for number, line in enumerate(read_lines(path), 1):
        try:
            values.append(float(line))
        except ValueError:
            raise ValueError(f"{path}, line {number}: {line.strip()!r} is no log-probability") from None
    if len(values) != len(strings):
        raise ValueError(f"{path}: {len(values)} log-probabilities for {len(strings)} strings")
    return Strings(strings, np.array(values))
