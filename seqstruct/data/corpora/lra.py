"""Long texts byte by byte for the task text_classification, as in the Long Range Arena (Tay et al. 2021).

    imdb           25,000 reviews of films to train, 25,000 to test (Maas et al. 2011), two classes; the arena validates
                   on the test set, and so does this folder unless some of training is held out
    movie-reviews  2,000 reviews of films (Pang and Lee 2004), as nltk distributes them: a small stand-in for imdb,
                   split 80 : 10 : 10 at random
    aan            pairs of papers of the ACL Anthology Network (Radev et al. 2009): does one cite the other?  The .tsv
                   files of the arena's release: label, two names and two texts a line

A token is a byte (`byte_symbols`); texts end after `max_length` bytes, 4,000 in the arena.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from seqstruct.data.arguments import add_numbers, at_least
from seqstruct.data.checked import check_counts
from seqstruct.data.downloads import DAMAGE, Remote, collect, members, raw_folder
from seqstruct.data.files import existing, scratch_beside, undamaged
from seqstruct.data.text.byte_symbols import SYMBOLS, spell
from seqstruct.data.text_classification.folder import SPLITS, Labelled, write_sentences

IMDB = Remote("https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
              "c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe")
MOVIE_REVIEWS = Remote(
    "https://raw.githubusercontent.com/nltk/nltk_data/gh-pages/packages/corpora/movie_reviews.zip",
    "a41211ae685019137410268134db6a1a14428c89b671eb83056151a878539008",
)
REMOTES = {"imdb": (IMDB,), "movie-reviews": (MOVIE_REVIEWS,), "aan": ()}
COUNTS = {"imdb": {"train": 25000, "test": 25000}, "movie-reviews": {"train": 2000}, "aan": {}}
MANUAL = {
    "imdb": "the archive is linked from https://ai.stanford.edu/~amaas/data/sentiment/; name its folder by --from",
    "movie-reviews": "get movie_reviews.zip of nltk's data elsewhere; name its folder by --from",
    "aan": "the files are part of lra_release.gz of https://github.com/google-research/long-range-arena, in "
           "lra_release/tsv_data once it is unpacked",
}
AAN_FILES = {"train": "new_aan_pairs.train.tsv", "valid": "new_aan_pairs.eval.tsv", "test": "new_aan_pairs.test.tsv"}
REVIEW = re.compile(r"(?:^|/)(?:aclImdb/(train|test)|(movie_reviews))/(neg|pos)/[^/]+\.txt$")

Text = tuple[str, bytes]  # label and content


def read_reviews(archive: Path) -> dict[str, list[Text]]:
    """The labelled reviews of an archive by part, train or test, in the order of their names; of movie-reviews all are
    train.

    Raises ValueError if it is truncated or altered, or has none.
    """
    found: dict[str, list[tuple[str, Text]]] = {"train": [], "test": []}
    with undamaged(archive, *DAMAGE):
        for name, opened in members(archive):
            if match := REVIEW.search(name):
                with opened() as stream:
                    found[match[1] or "train"].append((name, (match[3], stream.read())))
    if not found["train"]:
        raise ValueError(f"{archive}: no reviews are in it")
    return {part: [text for _, text in sorted(texts)] for part, texts in found.items()}


def split_reviews(corpus: str, found: Mapping[str, list[Text]], valid: int, seed: int) -> dict[str, list[Text]]:
    """Train, valid and test.  valid: reviews of training that are held out, drawn by the seed; 0: the test set
    validates, or of movie-reviews a tenth.  Raises ValueError if fewer than two would be left to train."""
    train, test = list(found["train"]), found["test"]
    random.Random(seed).shuffle(train)
    if corpus == "movie-reviews":
        tenth = len(train) // 10
        test, train, valid = train[:tenth], train[tenth:], valid or tenth
    if not 0 <= valid <= len(train) - 2:
        raise ValueError(f"valid: expected 0 to {len(train) - 2} reviews, got {valid}")
    return {"train": train[valid:], "valid": train[:valid] if valid else test, "test": test}


def read_pairs(path: Path) -> Iterator[tuple[str, bytes, bytes]]:
    """Label, 0 or 1, and both texts of each line.  Raises ValueError naming file and line on anything else."""
    number = 0
    with open(path, "rb") as stream:
        for number, line in enumerate(stream, 1):
            fields = line.rstrip(b"\r\n").split(b"\t")
            if len(fields) != 5:
                raise ValueError(f"{path}, line {number}: {len(fields)} fields, expected a label, two names, two texts")
            label = {b"0": "0", b"0.0": "0", b"1": "1", b"1.0": "1"}.get(fields[0])
            if label is None:
                raise ValueError(f"{path}, line {number}: label {fields[0]!r}, expected 0 or 1")
            yield label, fields[3], fields[4]
    if not number:
        raise ValueError(f"{path}: the file is empty")


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    add_numbers(parser, {"--max-length": (4000, "bytes of a text; what is longer is cut off")})
    if name == "imdb":
        parser.add_argument("--corpus", choices=("imdb", "movie-reviews"), default=name, help="which (%(default)s)")
        add_numbers(parser, {"--valid": (0, "reviews of training held out to validate; 0: the test set validates"),
                             "--seed": (1, "of the draw")})
    else:
        parser.set_defaults(corpus=name, valid=0, seed=1)


def run(args: argparse.Namespace) -> None:
    at_least(args, max_length=1)
    corpus, manual, most = args.corpus, MANUAL[args.corpus], args.max_length
    raw = raw_folder(args, REMOTES[corpus], manual)
    info = {"corpus": corpus, "max_length": most}
    with scratch_beside(args.out) as scratch:
        if corpus == "aan":
            files = collect(raw, {split: [name] for split, name in AAN_FILES.items()}, scratch, manual)
            texts, labels = {split: read_pairs(files[split]) for split in SPLITS}, ("0", "1")
        else:
            archive, labels = existing(raw / REMOTES[corpus][0].file, f"; {manual}"), ("neg", "pos")
            found = read_reviews(archive)
            if not args.unchecked:
                check_counts(corpus, {part: len(given) for part, given in found.items()}, COUNTS[corpus], "reviews")
            texts = split_reviews(corpus, found, args.valid, args.seed)
            held_out = args.valid or corpus == "movie-reviews"
            info |= {"seed": args.seed, "validation": "held out" if held_out else "the test set"}
        splits = {
            split: (Labelled(label, *(spell(text[:most]) for text in sides)) for label, *sides in texts[split])
            for split in SPLITS
        }
        meta = write_sentences(args.out, splits, labels, dict.fromkeys(SYMBOLS, 1), info)
    what = "pairs" if meta["pairs"] else "texts"
    print(", ".join(f"{split}: {count} {what}" for split, count in meta["sentences"].items()))
