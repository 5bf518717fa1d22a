"""English sentences to be repeated or rewritten as a cue says, ambiguous in training between two rules (McCoy et al.
2020): the question moves the main auxiliary or the first one, verbs agree with their subject or the noun before them.

Half of the sentences are repeated.  Those that are rewritten are such that both rules agree in train, valid and test:
no question's subject has a relative clause, no present tense's subject ends in a noun of the other number; such
sentences are repeated, though.  In gen all are rewritten, and the rules differ: in the first word of the question, in
the main verb.  Sentences are drawn by the grammar, and again where they do not fit; no source is in two splits.

* `text/SPLIT.source` with the cue as last word, `text/SPLIT.target`; bin/ for fairseq, where gen is called test1.
* setting language-model: for the task language_modeling, `text/SPLIT.txt` has source and target as one line;
  setting translation: for the task translation, from `source` to `target`.
* `meta.json`: the request, SHA-256 of what is in text/.

`seqstruct score-transformations` says how well a model does.
"""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seqstruct.data.arguments import add_numbers, at_least
from seqstruct.data.checked import META, check_file, check_split
from seqstruct.data.checked import read_meta as read_checked
from seqstruct.data.files import new_folder, sha256, write_json, write_text
from seqstruct.data.text.aligned import read_lines
from seqstruct.data.text.binarise import write_lines
from seqstruct.data.transformations.grammar import TRANSFORMATIONS, Pair, Transformation

SPLITS = ("train", "valid", "test", "gen")
SIDES = ("source", "target")
SETTINGS = ("language-model", "translation")
MOST = 1_000_000  # pairs of a split: all are held


@dataclass(frozen=True)
class PairsRequest:
    """What a folder is to hold: `add_arguments` says what each field is.  transformation: of `TRANSFORMATIONS`."""

    transformation: str
    setting: str = SETTINGS[0]
    train: int = 100_000
    valid: int = 1_000
    test: int = 10_000
    gen: int = 10_000
    seed: int = 1
    test_seed: int = 0


def draw(request: PairsRequest) -> dict[str, list[Pair]]:
    """The pairs of each split; a source may be there twice in one split, never in two.

    The test sets are drawn first, then validation: more training data with the same seeds leaves those as they are.
    Raises ValueError on numbers out of range.
    """
    at_least(request, command=True, train=1, valid=1, test=1, gen=1, seed=0, test_seed=0)
    for split in SPLITS:
        if getattr(request, split) > MOST:
            raise ValueError(f"{split} is at most {MOST:,}, not {getattr(request, split):,}")
    rule, seen, found = TRANSFORMATIONS[request.transformation], set(), {}
    for split in ("test", "gen", "valid", "train"):
        seed = request.test_seed if split in ("test", "gen") else request.seed
        generator = random.Random(f"{request.transformation} {split} {seed}")
        pairs: list[Pair] = []
        while len(pairs) < getattr(request, split):
            pair = draw_pair(rule, split == "gen", generator)
            if tuple(pair.source) not in seen:
                pairs.append(pair)
        seen.update(tuple(pair.source) for pair in pairs)
        found[split] = pairs
    return found


def draw_pair(rule: Transformation, gen: bool, generator: random.Random) -> Pair:
    """For gen a sentence to be rewritten of which the rules do not make the same; else one to be repeated or, as often,
    one to be rewritten of which they do."""
    change = gen or generator.random() < 0.5
    while True:
        pair = rule.pair(rule.sample(generator), change)
        if rule.tells(pair) if gen else rule.by_linear_rule(pair.source) == pair.target:
            return pair


def write_folder(request: PairsRequest, folder: str | os.PathLike) -> dict[str, Any]:
    """Draw all splits and write them; the contents of meta.json come back.

    The folder appears when it is complete.  Raises ValueError on a request that cannot be met, or if the folder exists
    and is not empty.
    """
    splits = draw(request)
    with new_folder(folder) as beside:
        text = beside / "text"
        for split, pairs in splits.items():
            for side, name in enumerate(SIDES):
                write_text(text / f"{split}.{name}", (" ".join(pair[side]) for pair in pairs))
            if request.setting == SETTINGS[0]:
                write_text(text / f"{split}.txt", (" ".join(pair.source + pair.target) for pair in pairs))
            _binarise(beside / "bin", "test1" if split == "gen" else split, pairs, request)
        about = asdict(request)
        if request.setting != SETTINGS[0]:  # how a trained model's text is cut (text/pipeline.py)
            about["options"] = {"languages": SIDES, "units": ["spaces", "spaces"], "lowercase": False}
        about["sha256"] = {f"text/{path.name}": sha256(path) for path in sorted(text.iterdir())}
        write_json(beside / META, about)
    return about


def _binarise(folder: Path, split: str, pairs: Sequence[Pair], request: PairsRequest) -> None:
    """What fairseq-preprocess would write, with every word of the grammar in the dictionary."""
    from fairseq.data import Dictionary

    dictionary = Dictionary()
    for word in TRANSFORMATIONS[request.transformation].words:
        dictionary.add_symbol(word)
    folder.mkdir(exist_ok=True)
    if request.setting == SETTINGS[0]:
        dictionary.save(str(folder / "dict.txt"))
        write_lines((" ".join(pair.source + pair.target) for pair in pairs), folder / split, dictionary)
    else:
        for side, name in enumerate(SIDES):
            dictionary.save(str(folder / f"dict.{name}.txt"))
            lines = (" ".join(pair[side]) for pair in pairs)
            write_lines(lines, folder / f"{split}.{SIDES[0]}-{SIDES[1]}.{name}", dictionary)


def read_meta(folder: str | os.PathLike) -> dict[str, Any]:
    """The contents of meta.json.  Raises ValueError as `checked.read_meta`, and on a folder of something else."""
    meta = read_checked(folder, "question-formation", ("transformation", "setting", "sha256"))
    if meta["transformation"] not in TRANSFORMATIONS:
        raise ValueError(
            f"{Path(folder) / META}: expected one of {', '.join(TRANSFORMATIONS)}, got {meta['transformation']!r}"
        )
    return meta


def read_split(folder: str | os.PathLike, split: str, meta: dict[str, Any]) -> list[Pair]:
    """The pairs of a split.  Raises ValueError if there is no such split, or a file is missing or altered."""
    check_split(folder, split, SPLITS)
    sides = [read_lines(check_file(folder, meta, f"text/{split}.{side}")) for side in SIDES]
    return [Pair(source.split(), target.split()) for source, target in zip(*sides, strict=True)]


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument(
        "--setting", choices=SETTINGS, default=SETTINGS[0], help="which task bin/ is for (default: %(default)s)"
    )
    add_numbers(parser, {
        "--train": (100_000, "training pairs, as published"), "--valid": (1_000, "validation pairs"),
        "--test": (10_000, "test pairs, as published"), "--gen": (10_000, "pairs that tell the rules apart"),
        "--seed": (1, "of training and validation"),
        "--test-seed": (0, "of test and gen, the same for all --seed"),
    })


def run(args: argparse.Namespace) -> None:
    fields = [name for name in PairsRequest.__dataclass_fields__ if name != "transformation"]
    request = PairsRequest(args.entry, **{name: getattr(args, name) for name in fields})
    write_folder(request, args.out)
    sizes = ", ".join(f"{getattr(request, split)} {split}" for split in SPLITS)
    print(f"{args.out}: {args.entry} for a {request.setting.replace('-', ' ')}, {sizes}")
