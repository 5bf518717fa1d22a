"""The sentences of a prepared folder as text, for an external parser: SPLIT.premise.txt and SPLIT.hypothesis.txt.

    python -m seqstruct.data.nli.texts DATA --out DIR
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from seqstruct.command import module_parser, run_module
from seqstruct.data.files import new_folder, undamaged, write_text
from seqstruct.data.nli.folder import SPLITS
from seqstruct.data.text.aligned import read_lines

SIDES = ("premise", "hypothesis")


def write_texts(data: str | Path, out: str | Path) -> None:
    """Make the folder `out`: a sentence a line, its words with spaces between them, in the order of the pairs.

    Raises ValueError naming file and line where there is no such pair; OSError if a file is missing.
    """
    with new_folder(out) as folder:
        for split in SPLITS:
            path, pairs = Path(data) / f"{split}.jsonl", []
            for number, line in enumerate(read_lines(path), 1):
                with undamaged(f"{path}, line {number}", ValueError, KeyError, TypeError):
                    pair = json.loads(line)
                    pairs.append([" ".join(pair[side]) for side in SIDES])
            for number, side in enumerate(SIDES):
                write_text(folder / f"{split}.{side}.txt", (pair[number] for pair in pairs))


def main(argv: Sequence[str] | None = None) -> int:
    parser = module_parser("seqstruct.data.nli.texts", __doc__)
    parser.add_argument("data", metavar="DATA", help="made by `seqstruct prepare snli`")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to make")
    return run_module(parser, argv, lambda args: write_texts(args.data, args.out))


if __name__ == "__main__":
    raise SystemExit(main())
