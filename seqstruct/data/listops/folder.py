"""ListOps as a folder for the task text_classification: the labels are the ten digits, the dictionary is `SYMBOLS`."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from seqstruct.data.listops.formulas import DIGITS, SYMBOLS, FormulaOptions, check_cost, draw_distinct
from seqstruct.data.text_classification.folder import SPLITS, Labelled, write_sentences


def write_folder(
    folder: str | os.PathLike, options: FormulaOptions, counts: Mapping[str, int], seed: int
) -> dict[str, Any]:
    """Draw formulas and make the folder; the contents of meta.json come back.

    counts: formulas by split, 1 or more each.  No formula is in two splits, or twice in one.  The test set is drawn
    first, then the validation set: more training data with the same seed leaves both as they are.
    Raises ValueError on counts below one, on a folder that holds files, and as `check_cost` and `draw_distinct` do.
    """
    for split in SPLITS:
        if counts[split] < 1:
            raise ValueError(f"{split}: expected 1 formula or more, got {counts[split]}")
    check_cost(options, sum(counts[split] for split in SPLITS))
    generator, seen = random.Random(seed), set()

    def sentences(count: int) -> Iterator[Labelled]:
        for tokens, value in draw_distinct(options, count, generator, seen):
            yield Labelled(str(value), tokens)

    splits = {split: sentences(counts[split]) for split in reversed(SPLITS)}
    info = {"corpus": "listops", **asdict(options), "seed": seed}
    return write_sentences(folder, splits, DIGITS, dict.fromkeys(SYMBOLS, 1), info)
