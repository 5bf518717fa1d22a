"""Folders of tagged sequences: written whole or not at all, checked by checksum when read.

* `train.txt`, `valid.txt`, `test.txt`, `test_long.txt`: a sequence a line, in three columns with tabs between them:
  symbols, targets ("-" where nothing is asked for), and the level of each target ("-" likewise); in a column spaces
  stand between. Sequences of `test_long` are longer, and only what stands beyond the training lengths is asked for.
* `dict.txt`: fairseq dictionary of all symbols.
* `meta.json`: task, options, lengths, seed, what `rules` reach, SHA-256 of every other file.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from seqstruct.data.abilities.ability import NONE, Ability, Tagged, expect
from seqstruct.data.abilities.rules import rules_of, shares
from seqstruct.data.abilities.tasks import make
from seqstruct.data.arguments import at_least
from seqstruct.data.checked import META, check_file, check_split, write_meta
from seqstruct.data.checked import read_meta as read_checked
from seqstruct.data.files import new_folder, write_text
from seqstruct.data.text.aligned import read_lines

SPLITS = ("train", "valid", "test", "test_long")
DICTIONARY = "dict.txt"
CALLED = {"valid": "validation_{}", "test": "{}", "test_long": "{}_long"}  # metrics, by a task's name
WHOLE, LEVELS = "abilities-sequences", "abilities-levels"  # their tables beside that of accuracies
MOST_DRAWS = 100_000  # in a row without an example that will do


@dataclass(frozen=True)
class SequencesRequest:
    """What a folder is to hold: `prepare.add_arguments` says what each field is; both ends of lengths are included."""

    task: str
    options: Mapping[str, object] = field(default_factory=dict)
    train: int = 16000
    valid: int = 500
    test: int = 500
    lengths: tuple[int, int] = (16, 32)
    long_lengths: tuple[int, int] = (48, 64)
    seed: int = 1


def write_folder(request: SequencesRequest, folder: str | os.PathLike) -> dict[str, Any]:
    """Draw the four splits and write them; the contents of meta.json come back.

    The test sets are drawn first, then validation, then training, which has no sequence of another split.
    Raises ValueError on a request that cannot be met, or if the folder exists and is not empty.
    """
    at_least(request, command=True, train=1, valid=1, test=1, seed=0)
    ability, longest = make(request.task, request.options), request.lengths[1]
    expect(request.long_lengths[0] > longest, "long-lengths", f"more than the longest of training, {longest}",
           request.long_lengths[0])
    with new_folder(folder) as beside:
        seen: set[tuple[str, ...]] = set()
        splits: dict[str, list[Tagged]] = {}
        for number, split in enumerate(reversed(SPLITS)):
            generator = random.Random(f"{request.seed} {number}")
            lengths = request.long_lengths if split == "test_long" else request.lengths
            count = getattr(request, split.removesuffix("_long"))
            drawn = _draws(ability, lengths, generator, seen if split == "train" else set())
            splits[split] = [_beyond(next(drawn), longest if split == "test_long" else 0) for _ in range(count)]
            seen.update(tuple(example.symbols) for example in splits[split])
        for split in SPLITS:
            write_text(beside / f"{split}.txt", map(_line, splits[split]))
        write_text(beside / DICTIONARY, (f"{symbol} 1" for symbol in dict.fromkeys(ability.symbols())))
        rules = {name: shares(contexts, splits["train"], splits) for name, contexts in rules_of(ability).items()}
        about = {**asdict(request), "options": asdict(ability), "axis": ability.axis, "rules": rules}
        return write_meta(beside, about)


def _draws(
    ability: Ability, lengths: tuple[int, int], generator: random.Random, seen: set[tuple[str, ...]]
) -> Iterator[Tagged]:
    """Examples without an end, none of them seen.  Raises ValueError if very many draws in a row will not do."""
    while True:
        for _ in range(MOST_DRAWS):
            drawn = ability.draw(lengths, generator)
            if drawn is not None and tuple(drawn.symbols) not in seen:
                yield drawn
                break
        else:
            raise ValueError(
                f"{MOST_DRAWS} draws brought no new sequence of {lengths[0]} to {lengths[1]} symbols: with these "
                "options there are too few of them"
            )


def _beyond(example: Tagged, longest: int) -> Tagged:
    """Nothing is asked for within the first symbols, unless all is."""
    targets = [None] * longest + list(example.targets[longest:])
    return example._replace(targets=targets) if any(t is not None for t in targets) else example


def _line(example: Tagged) -> str:
    asked = [target is not None for target in example.targets]
    targets = (target if there else NONE for target, there in zip(example.targets, asked, strict=True))
    levels = (str(level) if there else NONE for level, there in zip(example.levels, asked, strict=True))
    return "\t".join(" ".join(column) for column in (example.symbols, targets, levels))


def best_rule(meta: Mapping[str, Any]) -> str:
    """The rule that has most targets of validation right, of equal ones the first."""
    return max(meta["rules"], key=lambda name: meta["rules"][name]["valid"][0])


def read_meta(folder: str | os.PathLike) -> dict[str, Any]:
    """The contents of meta.json.  Raises ValueError as `checked.read_meta`, and on a task that there is not."""
    meta = read_checked(folder, "abilities", ("task", "options", "axis", "rules", "lengths"), (DICTIONARY,))
    make(meta["task"], {name: tuple(value) if isinstance(value, list) else value
                        for name, value in meta["options"].items() if name != "group"})
    return meta


def read_split(folder: str | os.PathLike, split: str, meta: Mapping[str, Any]) -> list[Tagged]:
    """The sequences of a split.

    Raises ValueError if the split does not exist, its file is missing or altered, or a line is not of three columns
    of one length of which the second asks for something.
    """
    check_split(folder, split, SPLITS)
    path = check_file(folder, meta, f"{split}.txt")
    found = []
    for number, line in enumerate(read_lines(path), 1):
        columns = [column.split() for column in line.split("\t")]
        if len(columns) != 3 or len(set(map(len, columns))) != 1 or all(target == NONE for target in columns[1]):
            raise ValueError(f"{path}, line {number}: expected symbols, targets and levels, as many of each")
        symbols, targets, levels = columns
        found.append(Tagged(symbols, [None if t == NONE else t for t in targets],
                             [0 if level == NONE else int(level) for level in levels]))
    return found


def tasks_of(data: Path, names: Sequence[str] | None = None) -> dict[str, Path]:
    """The folders of the tasks by name; a prepared folder is one of its task.

    Raises ValueError if there is none, or none of a name.
    """
    alone = (data / META).is_file()
    inside = {path.parent.name: path.parent for path in sorted(data.glob(f"*/{META}"))}
    found = {read_meta(data)["task"]: data} if alone else inside
    missing = sorted(set(names or ()) - found.keys())
    if missing or not found:
        raise ValueError(f"{data}: expected a folder of {missing[0] if missing else 'tasks'}, made by "
                         f"`seqstruct prepare abilities`; there are: {', '.join(found) or 'none'}")
    return {name: found[name] for name in names or found}
