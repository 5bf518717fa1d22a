"""ASPEC-JE (Nakazawa et al. 2016) from its distributed files to aligned text.

A line of train/train-N.txt has five fields between "|||": similarity, document, sentence, Japanese, English; a line of
dev/dev.txt and test/test.txt has four, without the similarity.  `python -m seqstruct.data.aspec --help` is what
data-prep/aspec.sh calls; it cuts the text into words and binarises it as `word_pairs` does.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import ExitStack
from pathlib import Path

from seqstruct.data import word_pairs
from seqstruct.data.aligned import read_lines
from seqstruct.data.command import exit_status
from seqstruct.data.files import atomic_write, new_folder

LANGUAGES = ("ja", "en")
FILES = {
    "train": [f"train/train-{number}.txt" for number in (1, 2, 3)],
    "valid": ["dev/dev.txt"],
    "test": ["test/test.txt"],
}
FIELDS = {"train": 5, "valid": 4, "test": 4}


def extract(folder: str | os.PathLike, out: str | os.PathLike) -> dict[str, int]:
    """Write `SPLIT.ja` and `SPLIT.en` for train, valid and test into `out`; the number of pairs by split comes back.

    folder: the corpus, as its archive unpacks.  Pairs with an empty side are left out.
    Raises ValueError if a file is missing, or a line has another number of fields.
    """
    folder, counts = Path(folder), {}
    missing = [name for names in FILES.values() for name in names if not (folder / name).is_file()]
    if missing:
        raise ValueError(f"{folder}: no ASPEC-JE: {missing[0]} is missing ({len(missing)} of 5 files)")
    for split, names in FILES.items():
        counts[split] = 0
        with ExitStack() as stack:
            streams = [stack.enter_context(atomic_write(Path(out, f"{split}.{language}"))) for language in LANGUAGES]
            for name in names:
                for number, line in enumerate(read_lines(folder / name), 1):
                    fields = [field.strip() for field in line.split("|||")]
                    if len(fields) != FIELDS[split]:
                        raise ValueError(
                            f"{folder / name}: line {number}: expected {FIELDS[split]} fields between '|||', "
                            f"found {len(fields)}"
                        )
                    if all(fields[-2:]):
                        counts[split] += 1
                        for text, stream in zip(fields[-2:], streams, strict=True):
                            stream.write(text + "\n")
    return counts


def main(argv: list[str] | None = None) -> int:
    """Run the command; the exit status comes back."""
    parser = argparse.ArgumentParser(prog="python -m seqstruct.data.aspec", description=__doc__.split("\n")[0])
    parser.add_argument("--from", dest="source", required=True, metavar="DIR", help="the unpacked corpus")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to make")
    parser.add_argument("--units", choices=("characters", "kytea", "mecab"), default="characters", help="of Japanese")
    parser.add_argument("--sample", type=int, default=500_000, metavar="N", help="training pairs drawn (0: all)")
    parser.add_argument("--threshold", type=int, default=10, metavar="N", help="occurrences that a token needs")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes that binarise (default 1)")
    args = parser.parse_args(argv)

    def run() -> None:
        options = word_pairs.Options(
            LANGUAGES, (args.units, "moses"), max_source=50, max_target=50, sample=args.sample, threshold=args.threshold
        )
        with new_folder(args.out) as folder:
            pairs = folder.parent / "pairs"
            counts = extract(args.source, pairs)
            word_pairs.prepare({split: pairs / split for split in FILES}, options, folder, args.workers)
        print(", ".join(f"{split}: {count} pairs" for split, count in counts.items()))

    return exit_status("aspec", run)


if __name__ == "__main__":
    sys.exit(main())
