"""A fairseq folder whose dictionaries have a number of entries, filled up with words that no text has.

    python -m seqstruct.data.fill_dictionary FOLDER --entries N --out DIR

For costs of a vocabulary of a known size on another text.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from itertools import count, islice
from pathlib import Path

from seqstruct.command import module_parser, run_module
from seqstruct.data.files import new_folder, write_text
from seqstruct.data.text.byte_symbols import SPECIAL


def copy_filled(source: str | os.PathLike, entries: int, out: str | os.PathLike) -> None:
    """Copy a folder of fairseq-preprocess and fill up its dict*.txt to a number of entries, special symbols counted.

    Raises ValueError if it has none, one has more entries already, or `out` is inside of the folder.
    """
    if Path(out).resolve().is_relative_to(Path(source).resolve()):
        raise ValueError(f"expected a folder outside of {source}, got {out}")
    with new_folder(out) as folder:
        shutil.copytree(source, folder, dirs_exist_ok=True)
        dictionaries = list(folder.glob("dict*.txt"))
        if not dictionaries:
            raise ValueError(f"{source}: expected dict.txt or dict.LANGUAGE.txt, found none")
        for path in dictionaries:
            lines = path.read_text(encoding="utf-8").splitlines()
            missing = entries - SPECIAL - len(lines)
            if missing < 0:
                raise ValueError(f"{path}: expected at most {entries} entries, found {entries - missing}")
            known = {line.rpartition(" ")[0] for line in lines}
            new = (word for word in map("madeupword{}".format, count()) if word not in known)
            write_text(path, [*lines, *(f"{word} 0" for word in islice(new, missing))])


def main(argv: Sequence[str] | None = None) -> int:
    parser = module_parser("seqstruct.data.fill_dictionary", __doc__)
    parser.add_argument("folder", metavar="FOLDER", help="made by fairseq-preprocess")
    parser.add_argument("--entries", type=int, required=True, metavar="N", help="of each dictionary, special ones too")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to make")
    return run_module(parser, argv, lambda args: copy_filled(args.folder, args.entries, args.out))


if __name__ == "__main__":
    raise SystemExit(main())
