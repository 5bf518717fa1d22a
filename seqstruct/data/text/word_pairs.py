"""Parallel text to whole words, or to single characters, on either side: read, segment, filter, sample, binarise.

As in Kim et al. (2017, sec. 4.2):
lengths are limited on both sides and in every split, a given number of training pairs is drawn at random, and each side
has a dictionary of the tokens that occur often enough.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryFile

from seqstruct.data import own
from seqstruct.data.arguments import add_numbers, at_least
from seqstruct.data.checked import SPLITS
from seqstruct.data.files import new_folder, write_json, write_text
from seqstruct.data.text.aligned import find_pairs, read_lines, read_pairs, write_pairs
from seqstruct.data.text.binarise import preprocess_pairs
from seqstruct.data.text.subwords import SENTENCEPIECE_SPACE, moses_tokenizer, normalize_spaces

PROGRAMS = {"kytea": ["kytea", "-notags"], "mecab": ["mecab", "-Owakati"]}
UNITS = ("characters", "spaces", "moses", *PROGRAMS)


@dataclass(frozen=True)
class WordPairOptions:
    """How a corpus is prepared, as `add_unit_arguments` says.

    languages: source and target, two-letter codes.  units: of source and target, each one of `UNITS`: single characters
    (U+2581 for a space), words apart as they are, Moses tokens, or words by a program for Japanese.  Pairs beyond
    max_source and max_target are left out everywhere.  seed: of the draw.
    """

    languages: tuple[str, str]
    units: tuple[str, str] = ("moses", "moses")
    max_source: int = 250
    max_target: int = 250
    sample: int = 0
    seed: int = 1
    lowercase: bool = False
    threshold: int = 1

    def __post_init__(self) -> None:
        if self.languages[0] == self.languages[1]:
            raise ValueError(f"languages: expected two different ones, got {self.languages[0]} twice")
        for unit in self.units:
            if unit not in UNITS:
                raise ValueError(f"units: expected some of {', '.join(UNITS)}, got {unit!r}")
        at_least(self, max_source=1, max_target=1, sample=0, threshold=1)


def characters(line: str) -> str:
    """The characters of a line, separated by spaces; U+2581 stands for a space."""
    return " ".join(normalize_spaces(line).replace(" ", SENTENCEPIECE_SPACE))


def segmented(lines: Iterable[str], unit: str, language: str) -> Iterator[str]:
    """Each line as units separated by single spaces.

    Raises ValueError if a program is not installed, fails, or gives another number of lines.
    """
    if unit in PROGRAMS:
        return _by_program(lines, PROGRAMS[unit])
    cut = characters if unit == "characters" else moses_tokenizer(language) if unit == "moses" else normalize_spaces
    return (cut(normalize_spaces(line)) for line in lines)


def _by_program(lines: Iterable[str], command: list[str]) -> Iterator[str]:
    if shutil.which(command[0]) is None:
        raise ValueError(f"{command[0]} is not installed: install it, or choose another segmenter")
    with TemporaryFile("w+", encoding="utf-8") as text, TemporaryFile("w+", encoding="utf-8") as words:
        given = 0
        for line in lines:
            text.write(normalize_spaces(line).replace(" ", "") + "\n")
            given += 1
        text.seek(0)
        status = subprocess.run(command, stdin=text, stdout=words).returncode
        if status:
            raise ValueError(f"{' '.join(command)} failed with status {status}")
        words.seek(0)
        found = 0
        for line in words:
            found += 1
            yield normalize_spaces(line)
        if found != given:
            raise ValueError(f"{' '.join(command)}: {given} lines in, {found} lines out")


def prepare(
    prefixes: Mapping[str, str | os.PathLike], options: WordPairOptions, out: str | os.PathLike, workers: int = 1
) -> dict:
    """Prepare one corpus into the new folder `out`.

    prefixes: by split (train, valid, test), the path without its language suffix.  workers: processes that binarise.
    Writes `text/SPLIT.LANGUAGE` (units), `raw/{valid,test}.LANGUAGE` (the kept lines, to score against), `bin/` (for
    fairseq) and `corpus.json` (options, checksums of the input, counts), which also comes back.
    The folder appears when all of it is there.  Raises ValueError for what is missing, empty, not aligned or not UTF-8,
    if `out` is there, or if fairseq-preprocess fails.
    """
    files, sums = find_pairs(prefixes, options.languages)
    for pair in files.values():  # before there are copies, whose names say nothing
        for _ in read_pairs(*pair):
            pass
    summary = {"options": asdict(options), "sha256": sums, "counts": {}}
    with new_folder(out) as corpus:
        for split in SPLITS:
            words = [corpus.parent / f"{split}.{language}" for language in options.languages]
            for path, into, unit, language in zip(files[split], words, options.units, options.languages, strict=True):
                lines = (line.lower() if options.lowercase else line for line in read_lines(path))
                write_text(into, segmented(lines, unit, language))
            summary["counts"][split] = _write_split(split, files[split], words, options, corpus)
        thresholds = ["--thresholdsrc", str(options.threshold), "--thresholdtgt", str(options.threshold)]
        preprocess_pairs(corpus / "text", corpus / "bin", options.languages, joined=False, workers=workers,
                         arguments=thresholds)
        write_json(corpus / "corpus.json", summary)
    return summary


def _write_split(split: str, raw: list[Path], words: list[Path], options: WordPairOptions, out: Path) -> dict[str, int]:
    limits = options.max_source, options.max_target
    fit = [all(len(line.split()) <= limit for line, limit in zip(pair, limits, strict=True))
           for pair in read_pairs(*words)]
    fitting = chosen = [number for number, fits in enumerate(fit) if fits]
    if not fitting:
        raise ValueError(f"{split}: every pair is longer than the limits on length")
    if split == "train" and options.sample:
        if len(fitting) < options.sample:
            raise ValueError(f"{split}: {len(fitting)} pairs are within the limits, expected {options.sample} or more")
        chosen = random.Random(options.seed).sample(fitting, options.sample)
    kept = set(chosen)
    for folder, paths in {"text": words, **({} if split == "train" else {"raw": raw})}.items():
        pairs = enumerate(zip(*map(read_lines, paths), strict=True))
        write_pairs(out / folder / split, options.languages, (pair for number, pair in pairs if number in kept))
    return {"pairs": len(kept), "too_long": len(fit) - len(fitting)}


def add_unit_arguments(parser: argparse.ArgumentParser) -> None:
    for side in ("source", "target"):
        parser.add_argument(f"--{side}-units", choices=UNITS, default="moses", help="default: %(default)s")
        add_numbers(parser, {f"--max-{side}": (WordPairOptions.max_source, f"{side} units in a sentence")})
    parser.add_argument("--lowercase", action="store_true", help="lowercase both sides")
    add_numbers(parser, {
        "--sample": (0, "training pairs drawn at random, 0: all"), "--workers": (1, "processes that binarise"),
        "--threshold": (1, "occurrences in training that a token needs"),
    })


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    own.add_pair_arguments(parser)
    add_unit_arguments(parser)


def run(args: argparse.Namespace) -> None:
    own.make_pairs(args, prepare_as_told)


def prepare_as_told(
    args: argparse.Namespace, prefixes: Mapping[str, str | os.PathLike], out: str | os.PathLike
) -> dict[str, int]:
    """Make a folder as `args` says, and print the counts; those of pairs come back."""
    options = WordPairOptions((args.src, args.trg), (args.source_units, args.target_units), args.max_source,
                      args.max_target, args.sample, args.seed, args.lowercase, args.threshold)
    summary = prepare(prefixes, options, out, args.workers)
    for split, counts in summary["counts"].items():
        print(f"{split}: {counts['pairs']} pairs, {counts['too_long']} left out for their length")
    return {split: counts["pairs"] for split, counts in summary["counts"].items()}
