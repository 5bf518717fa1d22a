"""Folders of labelled strings of a formal language, for the task `recognition`.

* `train.txt`, `valid.txt`, `valid_long.txt`, `test.txt`: a line has 1 for a member or 0, and the symbols, spaced.
* `dict.txt`: fairseq's dictionary, the symbols in their order.
* `meta.json`: the language, numbers and lengths of strings, the seed, SHA-256 of every other file.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

from seqstruct.data.arguments import add_intervals, add_numbers, at_least
from seqstruct.data.checked import check_file, check_split, write_meta
from seqstruct.data.checked import read_meta as read_checked
from seqstruct.data.files import new_folder, write_text
from seqstruct.data.recognition.examples import LabelledString, draw_examples
from seqstruct.data.recognition.languages import LANGUAGES, find_language
from seqstruct.data.text.aligned import read_lines

DICTIONARY = "dict.txt"
SPLITS = ("train", "valid", "valid_long", "test")


@dataclass(frozen=True)
class RecognitionRequest:
    """What a folder is to hold: `add_arguments` says what each field is; both ends of lengths are included."""

    language: str
    train: int = 10000
    valid: int = 1000
    valid_long: int = 1000
    test: int = 5010
    lengths: tuple[int, int] = (0, 40)
    long_lengths: tuple[int, int] = (0, 80)
    test_lengths: tuple[int, int] = (0, 500)
    seed: int = 1

    @property
    def of_split(self) -> dict[str, tuple[int, int]]:
        """The lengths of each split's strings."""
        return dict(zip(SPLITS, (self.lengths, self.lengths, self.long_lengths, self.test_lengths), strict=True))


def write_folder(request: RecognitionRequest, folder: str | os.PathLike) -> dict[str, Any]:
    """Draw the splits, each with a generator of its own, and write them; the contents of meta.json come back.

    Raises ValueError on an unknown language, numbers below 1, lengths that no member has, or a folder that holds files.
    """
    language = find_language(request.language)
    at_least(request, command=True, **dict.fromkeys(SPLITS, 1))
    with new_folder(folder) as beside:
        for split, lengths in request.of_split.items():
            generator = Random(f"{request.seed} {split}")
            examples = draw_examples(language, getattr(request, split), lengths, generator)
            write_text(beside / f"{split}.txt", (" ".join([str(int(e.member)), *e.string]) for e in examples))
            if split == "train":
                counts = Counter(symbol for example in examples for symbol in example.string)
                write_text(beside / DICTIONARY, (f"{symbol} {counts[symbol]}" for symbol in language.terminals))
        return write_meta(beside, asdict(request))


def read_meta(folder: str | os.PathLike) -> dict[str, Any]:
    """The contents of meta.json.  Raises ValueError as `checked.read_meta`, and on a language that there is not."""
    meta = read_checked(folder, "flare", ("language", "lengths", "long_lengths", "test_lengths"), (DICTIONARY,))
    find_language(meta["language"])
    return meta


def read_split(folder: str | os.PathLike, split: str, meta: Mapping[str, Any]) -> list[LabelledString]:
    """The strings of a split.

    Raises ValueError if there is no such split, the file is missing or altered, or a line has no label or a symbol that
    is not of the language, naming file and line.
    """
    check_split(folder, split, SPLITS)
    path, terminals = check_file(folder, meta, f"{split}.txt"), find_language(meta["language"]).terminals
    found = []
    for line_number, line in enumerate(read_lines(path), 1):
        label, *symbols = line.split() or [""]
        if label not in ("0", "1") or any(symbol not in terminals for symbol in symbols):
            wanted = f"0 or 1 and symbols of {' '.join(terminals)}"
            raise ValueError(f"{path}, line {line_number}: expected {wanted}, got {line.strip()!r}")
        found.append(LabelledString(label == "1", "".join(symbols)))
    return found


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument("language", metavar="LANGUAGE", help=", ".join(LANGUAGES))
    add_numbers(parser, {
        "--train": (10000, "strings to train on"), "--valid": (1000, "validation strings as long as those"),
        "--valid-long": (1000, "longer validation strings"), "--test": (5010, "test strings"), "--seed": (1, "of all"),
    })
    add_intervals(parser, {
        "--lengths": ((0, 40), "shortest and longest string to train and validate on"),
        "--long-lengths": ((0, 80), "of the longer validation strings"),
        "--test-lengths": ((0, 500), "of test strings"),
    })


def run(args: argparse.Namespace) -> None:
    request = RecognitionRequest(**{name: getattr(args, name) for name in RecognitionRequest.__dataclass_fields__})
    write_folder(request, args.out)
    sizes = ", ".join(f"{getattr(request, split)} {split} ({low} to {high})"
                      for split, (low, high) in request.of_split.items())
    print(f"{args.out}: {request.language}, strings by split and length: {sizes}")
