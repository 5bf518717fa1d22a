"""COGS (Kim and Linzen 2020), made from its rules: text/, raw/ and bin/ for the task translation, sentences to logical
forms.

train has every word that is held out once, by itself or in one sentence; valid and test are like the rest of it, no
sentence twice.  gen (bin/test1) has the cases one after another, raw/gen.case a line for each sentence, lexical/NAME or
structural/NAME.  The dictionaries have what is in gen alone, too: the places of long sentences, which stand in forms.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from seqstruct.data.arguments import add_numbers, at_least
from seqstruct.data.checked import SPLITS
from seqstruct.data.cogs.cases import CASES, PRIMITIVES, derivations, draw, exposures, sentences_of
from seqstruct.data.cogs.meaning import Pair
from seqstruct.data.files import new_folder, write_json, write_text

SIDES = ("sentence", "form")
MOST = {"train": 200_000, "valid": 50_000, "test": 50_000, "gen_per_case": 5_000}


def sets(train: int, valid: int, test: int, gen_per_case: int, seed: int) -> dict[str, list[Pair]]:
    """The pairs of train, valid, test and gen, whose order it is.

    Test is drawn first, then valid, then train: more of the later ones leaves those before as they are.
    """
    seen: set[str] = set()
    found: dict[str, list[Pair]] = dict.fromkeys(("train", "valid", "test", "gen"), [])
    source, once = derivations(), [*PRIMITIVES, *exposures(random.Random(f"cogs exposures {seed}"))]
    for split, count in {"test": test, "valid": valid, "train": train - len(once)}.items():
        found[split] = list(draw(source, count, random.Random(f"cogs {split} {seed}"), seen))
    found["train"] += once
    cases = ((case, random.Random(f"cogs {case.name} {seed}")) for case in CASES)
    found["gen"] = [pair for case, generator in cases for pair in sentences_of(case, gen_per_case, generator)]
    return found


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    add_numbers(parser, {
        "--train": (24_155, "training pairs, as published"), "--valid": (3_000, "validation pairs, as published"),
        "--test": (3_000, "test pairs, as published"),
        "--gen-per-case": (1_000, "pairs of each of the 21 cases, as published"), "--seed": (1, "of what is drawn"),
    })


def run(args: argparse.Namespace) -> None:
    least = len(PRIMITIVES) + len({case.word for case in CASES if case.exposed}) + 1
    at_least(args, command=True, train=least, valid=1, test=1, gen_per_case=1, seed=0)
    for option, most in MOST.items():
        if getattr(args, option) > most:
            raise ValueError(f"{option.replace('_', '-')} is at most {most:,}, not {getattr(args, option):,}")
    with new_folder(args.out) as folder:
        found = sets(args.train, args.valid, args.test, args.gen_per_case, args.seed)
        write_folder(folder, found, [case.group for case in CASES for _ in range(args.gen_per_case)])
        counts = {split: len(pairs) for split, pairs in found.items()}
        write_json(folder / "meta.json", {"corpus": "cogs", "seed": args.seed, "counts": counts})
    print(f"{args.out}: " + ", ".join(f"{count:,} {split}" for split, count in counts.items()) + f"; {least - 1} of "
          "training are words by themselves or sentences that expose a word")


def write_folder(folder: Path, found: Mapping[str, Sequence[Pair]], groups: Sequence[str]) -> None:
    """What fairseq and scoring read.  groups: of the sentences of gen."""
    from fairseq.data import Dictionary

    from seqstruct.data.text.aligned import write_pairs
    from seqstruct.data.text.binarise import write_lines
    from seqstruct.data.text.word_pairs import WordPairOptions, prepare

    with TemporaryDirectory() as scratch:
        prefixes = {split: Path(scratch, split) for split in SPLITS}
        for split, prefix in prefixes.items():
            write_pairs(prefix, SIDES, found[split])
        prepare(prefixes, WordPairOptions(SIDES, ("spaces", "spaces"), max_target=10_000), folder)
    for part in ("text", "raw"):
        write_pairs(folder / part / "gen", SIDES, found["gen"])
    write_text(folder / "raw" / "gen.case", groups)
    for side, lines in zip(SIDES, zip(*found["gen"], strict=True), strict=True):
        path = str(folder / "bin" / f"dict.{side}.txt")
        dictionary = Dictionary.load(path)
        for symbol in sorted({symbol for line in lines for symbol in line.split()} - set(dictionary.symbols)):
            dictionary.add_symbol(symbol)  # a place that no sentence of training has: behind all others
        dictionary.save(path)
        write_lines(lines, folder / "bin" / f"test1.{SIDES[0]}-{SIDES[1]}.{side}", dictionary)
