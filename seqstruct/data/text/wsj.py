"""The Penn Treebank's files of the Wall Street Journal, wsj_SSNN.mrg, by section or, of nltk's sample, by number."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

from seqstruct.data.checked import SPLITS
from seqstruct.data.text.trees import Tree, read_tree_files

SAMPLE_ENDS = {"train": 159, "valid": 179, "test": 199}  # the last file of each split
_FILE = re.compile(r"wsj_(\d\d)(\d\d)\.mrg", re.IGNORECASE)


def read_sections(source: str | os.PathLike, split_of: Mapping[int, str]) -> dict[str, list[Tree]]:
    """The trees of each split, by the split of each section.  source: as of `read_tree_files`, at any depth.

    Raises ValueError if a section is missing.
    """
    found, sections = _read(source, lambda section, _: split_of.get(section))
    missing = sorted(split_of.keys() - sections)
    if missing:
        raise ValueError(f"{source}: no wsj_SSNN.mrg of the sections {', '.join(f'{s:02}' for s in missing)}")
    return found


def read_sample(source: str | os.PathLike) -> dict[str, list[Tree]]:
    """The trees of nltk's sample by split: 199 files of the sections 00 and 01."""
    def split_of(section: int, number: int) -> str | None:
        return next((split for split, end in SAMPLE_ENDS.items() if section * 100 + number <= end), None)

    return _read(source, split_of)[0]


def _read(
    source: str | os.PathLike, split_of: Callable[[int, int], str | None]
) -> tuple[dict[str, list[Tree]], set[int]]:
    """Trees by split, and the sections seen."""
    found: dict[str, list[Tree]] = {split: [] for split in SPLITS}
    sections = set()
    for name, trees in read_tree_files(source):
        match = _FILE.fullmatch(PurePosixPath(name.replace(os.sep, "/")).name)
        split = split_of(int(match[1]), int(match[2])) if match else None
        if split is not None:
            sections.add(int(match[1]))
            found[split] += trees
    return found, sections
