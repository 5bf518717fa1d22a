"""Data of one's own: the options that all of its kinds share, what is drawn where a split is missing, and meta.json.

meta.json says under which name and licence the data goes, the SHA-256 of its files, and which share of training
validates or tests where no file was given for that: it is drawn once, by a seed.
"""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from seqstruct.data.arguments import language
from seqstruct.data.checked import META, SPLITS
from seqstruct.data.files import new_folder, read_json, write_json
from seqstruct.data.text.aligned import checksums, find_text, pair_writer, read_lines, read_pairs, survey
from seqstruct.data.text.subwords import tidy

PAIRS_META = "nli.json"
T = TypeVar("T")


def add_arguments(parser: argparse.ArgumentParser, metavar: str | None, said: str, nargs: str | None = None) -> None:
    """--train, --valid and --test, unless `metavar` is None, the shares of those that are missing, --seed, --name and
    --licence."""
    for split in SPLITS if metavar else ():
        parser.add_argument(f"--{split}", required=split == "train", metavar=metavar, nargs=nargs,
                            help=said if split == "train" else "likewise (default: a share of --train is drawn)")
    for split in SPLITS[1:]:
        parser.add_argument(f"--{split}-share", type=float, default=0.1, metavar="P",
                            help=f"of --train, without a file to {split}; drawn by --seed (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of what is drawn (default %(default)s)")
    parser.add_argument("--name", help="of the data, for meta.json (default: that of the folder)")
    parser.add_argument("--licence", default="not stated", help="of the data, for meta.json (default: %(default)s)")


def add_pair_arguments(parser: argparse.ArgumentParser) -> None:
    """The same for aligned files, and their languages."""
    add_arguments(parser, "PREFIX", "path without .LANGUAGE[.gz]")
    for option, side in (("--src", "source"), ("--trg", "target")):
        parser.add_argument(option, required=True, metavar="LANGUAGE", help=f"{side} language, two letters")


def add_word_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--language", metavar="LANGUAGE", type=language, help="cut text into Moses tokens of this "
                        "language, two letters (default: words stand apart already)")
    parser.add_argument("--lowercase", action="store_true", help="lowercase all words")


def cutter(args: argparse.Namespace) -> Callable[[str], list[str]]:
    """From a text to its words, as `add_word_arguments` says."""
    tokenize = str
    if args.language is not None:
        from seqstruct.data.text.subwords import moses_tokenizer

        tokenize = moses_tokenizer(args.language)
    return lambda line: tokenize(line.lower() if args.lowercase else line).split()


def given_and_missing(args: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """What is given by split, and the splits for which no file is.

    Raises ValueError as `check_shares` does.
    """
    lacking = [split for split in SPLITS[1:] if getattr(args, split) is None]
    check_shares(args, lacking)
    return {split: getattr(args, split) for split in SPLITS if split not in lacking}, lacking


def check_shares(args: argparse.Namespace, splits: Sequence[str]) -> None:
    """Raise ValueError if the shares of the splits that are drawn leave nothing to train on."""
    shares = [getattr(args, f"{split}_share") for split in splits]
    if not all(0 < share < 1 for share in shares) or sum(shares) >= 1:
        raise ValueError(f"shares: expected more than 0 each and less than 1 together, got {shares}")


def draw(count: int, splits: Sequence[str], args: argparse.Namespace) -> dict[str, set[int]]:
    """Which of `count` examples go to each of the splits that are drawn; 1 or more.

    Raises ValueError if there are too few.
    """
    order = random.Random(args.seed).sample(range(count), count)
    drawn: dict[str, set[int]] = {}
    for split in splits:
        size = max(1, round(getattr(args, f"{split}_share") * count))
        drawn[split], order = set(order[:size]), order[size:]
    if not order:
        raise ValueError(f"--train has {count} example{'s' * (count != 1)}, too few to draw {' and '.join(splits)}")
    return drawn


def deal(
    given: Mapping[str, Sequence[T]], args: argparse.Namespace, lacking: Sequence[str] | None = None
) -> dict[str, list[T]]:
    """All three splits: those given, but what is `lacking`, if None whatever is missing, is drawn out of train; the
    order stays."""
    lacking = [split for split in SPLITS if split not in given] if lacking is None else lacking
    drawn = draw(len(given["train"]), lacking, args)
    taken = set().union(*drawn.values())
    splits = {split: list(given[split]) for split in SPLITS if split in given}
    splits["train"] = [item for number, item in enumerate(given["train"]) if number not in taken]
    splits |= {split: [given["train"][number] for number in sorted(numbers)] for split, numbers in drawn.items()}
    return {split: splits[split] for split in SPLITS if split in splits}


def pair_prefixes(args: argparse.Namespace, scratch: Path) -> dict[str, Path]:
    """The prefixes of all three splits of aligned files, of `args.src` and `args.trg`; what is drawn is written into
    `scratch`, and so is then what is left to train on.  Raises ValueError as `draw` and `aligned.read_pairs` do, and,
    where `args` has options for such lines, `aligned.survey`: later on the files in `scratch` alone would be named."""
    (given, lacking), languages = given_and_missing(args), (args.src, args.trg)
    prefixes = {split: Path(prefix) for split, prefix in given.items()}
    if not lacking:
        return prefixes
    sides = [find_text(prefixes["train"], language) for language in languages]
    filtered = hasattr(args, "drop_empty")
    if filtered:
        survey({"train": sides}, args.drop_empty, args.deescape)
    drawn = draw(sum(1 for _ in read_lines(sides[0])), lacking, args)
    with ExitStack() as stack:
        write = {split: stack.enter_context(pair_writer(scratch / split, languages)) for split in ("train", *lacking)}
        for number, pair in enumerate(read_pairs(*sides, empty=filtered)):
            write[next((split for split in lacking if number in drawn[split]), "train")](pair)
    return {**prefixes, **{split: scratch / split for split in ("train", *lacking)}}


def make_pairs(args: argparse.Namespace, work: Callable[[argparse.Namespace, dict[str, Path], Path], Any]) -> None:
    """The folder of aligned files, by work(args, prefixes, folder) that gives the numbers of pairs, and meta.json."""
    with new_folder(args.out) as folder:
        counts = work(args, pair_prefixes(args, folder.parent / "drawn"), folder)
        given, lacking = given_and_missing(args)
        files = [find_text(prefix, language) for prefix in given.values() for language in (args.src, args.trg)]
        write_meta(folder, description(args, files, lacking), counts)


def labelled_rows(
    args: argparse.Namespace, columns: Sequence[str], last: str
) -> tuple[dict[str, list[tuple[str, ...]]], list[str], dict[str, Any]]:
    """Rows by split as of `read_columns`, the labels as of `check_labels`, and what meta.json says."""
    given, drawn = given_and_missing(args)
    rows = deal({split: read_columns(paths, columns, last) for split, paths in given.items()}, args)
    labels = check_labels({split: [row[0] for row in found] for split, found in rows.items()})
    return rows, labels, description(args, [path for paths in given.values() for path in paths], drawn)


def description(args: argparse.Namespace, files: Sequence[str | os.PathLike], drawn: Sequence[str]) -> dict[str, Any]:
    return {
        "corpus": args.name or Path(args.out).resolve().name,
        "licence": args.licence,
        "drawn": {"seed": args.seed, **{split: getattr(args, f"{split}_share") for split in drawn}} if drawn else None,
        "input_sha256": checksums([(Path(path).name, str(path), path) for path in files]),
        **({"cut": {"language": args.language, "lowercase": args.lowercase}} if hasattr(args, "language") else {}),
    }


def about(folder: Path) -> str:
    """Name and licence of a folder of one's own data, for records: "mine (licence: CC0)"; empty for any other."""
    for path in (folder / META, folder / PAIRS_META):
        meta = read_json(path) if path.is_file() else {}
        if {"corpus", "licence"} <= meta.keys():
            return f"{meta['corpus']} (licence: {meta['licence']})"
    return ""


def write_meta(folder: Path, about: Mapping[str, Any], counts: Mapping[str, int]) -> None:
    """meta.json of a folder whose kind has none of its own."""
    write_json(folder / META, {**about, "counts": dict(counts)})


def read_columns(paths: Sequence[str], columns: Sequence[str], last: str) -> list[tuple[str, ...]]:
    """The rows of one file with tabs, or of one file for each column, line by line.

    columns: their names, for errors; the label is the first column, and `last` says what comes after it.
    Raises ValueError naming file and line where a column is missing or has no more than white space and control
    characters, if files are of unlike length or empty, and as `read_lines` does.
    """
    for path in paths:
        if not Path(path).is_file():
            raise ValueError(f"{path}: no such file, or a folder")
    if len(paths) == 1:
        rows = [tuple(line.split("\t")) for line in read_lines(paths[0])]
    elif len(paths) == len(columns):
        sides = [list(read_lines(path)) for path in paths]
        if len(set(map(len, sides))) > 1:
            counts = ", ".join(f"{path}: {len(side)}" for path, side in zip(paths, sides, strict=True))
            raise ValueError(f"expected files with as many lines as each other, got {counts}")
        rows = list(zip(*sides, strict=True))
    else:
        raise ValueError(f"expected one file with tabs, or {len(columns)} files, got {len(paths)}")
    if not rows:
        raise ValueError(f"{paths[0]}: the file is empty")
    for number, row in enumerate(rows, 1):
        if len(paths) == 1 and (len(row) != len(columns) or not all(map(tidy, row))):
            got = " | ".join(row)[:60]
            raise ValueError(f"{paths[0]}, line {number}: expected a label, a tab and {last}, got {got!r}")
        for path, column, field in zip(paths, columns, row, strict=False):
            if not tidy(field):
                raise ValueError(f"{path}, line {number}: expected {column}, got an empty line")
    return [tuple(field.strip() for field in row) for row in rows]


def check_labels(splits: Mapping[str, Sequence[str]]) -> list[str]:
    """The labels of training, sorted.  Raises ValueError if there is one alone, or another split has others."""
    labels = sorted(set(splits["train"]))
    if len(labels) < 2:
        raise ValueError(f"expected two labels or more to train on, got {labels[0]!r} alone")
    for split, found in splits.items():
        strange = sorted(set(found) - set(labels))
        if strange:
            raise ValueError(f"{split}: the label {strange[0]!r} is not one of training: {', '.join(labels)}")
    return labels
