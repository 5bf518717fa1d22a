"""The sentences of a prepared folder as text, for an external parser: SPLIT.premise.txt and SPLIT.hypothesis.txt.

    python -m seqstruct.data.nli.texts DATA --out DIR
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from seqstruct.data.files import atomic_write, new_folder
from seqstruct.data.nli.folder import SPLITS
from seqstruct.data.text.aligned import read_lines

SIDES = ("premise", "hypothesis")


def write_texts(data: str | Path, out: str | Path) -> None:
    """Make the folder `out`: a sentence a line, its words with spaces between them, in the order of the pairs."""
    with new_folder(out) as folder:
        for split in SPLITS:
            pairs = [json.loads(line) for line in read_lines(Path(data) / f"{split}.jsonl")]
            for side in SIDES:
                with atomic_write(folder / f"{split}.{side}.txt") as stream:
                    stream.writelines(" ".join(pair[side]) + "\n" for pair in pairs)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit status comes back."""
    parser = argparse.ArgumentParser(prog="python -m seqstruct.data.nli.texts", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", metavar="DATA", help="made by `seqstruct prepare snli`")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to make")
    args = parser.parse_args(argv)
    try:
        write_texts(args.data, args.out)
    except (ValueError, OSError) as error:
        print(f"seqstruct.data.nli.texts: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
