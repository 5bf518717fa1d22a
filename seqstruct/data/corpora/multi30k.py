"""Multi30k task 1 (Elliott et al. 2016): 29,000 training, 1,014 validation and 1,000 test pairs (test_2016_flickr).

    multi30k        subwords of both languages, for fairseq's task translation, or by documents of a stated length
    multi30k-words  words or characters, each side with a dictionary of its own, as `word_pairs` cuts them

The raw files are {train,val,test_2016_flickr}.LANGUAGE, plain or .gz, in German, English and French.
"""

from __future__ import annotations

import argparse
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from seqstruct.data.arguments import add_numbers, at_least
from seqstruct.data.downloads import Remote, raw_folder
from seqstruct.data.files import new_folder, write_text
from seqstruct.data.text import parallel, word_pairs
from seqstruct.data.text.aligned import check_content, find_text, read_lines

ADDRESS = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
MANUAL = "the files are data/task1/raw of https://github.com/multi30k/dataset; name their folder by --from"
LANGUAGES = ("de", "en", "fr")
NAMES = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
SHA256 = {  # of the unpacked text
    "test_2016_flickr.de": "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
    "test_2016_flickr.en": "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
    "test_2016_flickr.fr": "cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6",
    "train.de": "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72",
    "train.en": "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
    "train.fr": "5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d",
    "val.de": "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
    "val.en": "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
    "val.fr": "5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc",
}


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument("--src", choices=LANGUAGES, default="de", help="source language (default %(default)s)")
    parser.add_argument("--trg", choices=LANGUAGES, default="en", help="target language (default %(default)s)")
    if name == "multi30k-words":
        word_pairs.add_unit_arguments(parser)
        add_numbers(parser, {"--seed": (1, "of the draw")})
        return
    add_numbers(parser, {
        "--pairs": (0, "the first N training pairs alone, and a twentieth as many to validate and to test, 0: all"),
        "--documents": (0, "sentences of a document in text/SPLIT.docs, in place of real ones, 0: none"),
    })
    parser.add_argument("--whole-tests", action="store_true",
                        help="validate and test by all pairs, however few there are to train by --pairs")
    parallel.add_pair_arguments(parser)


def run(args: argparse.Namespace) -> None:
    if args.entry == "multi30k":
        at_least(args, documents=0)
        if args.pairs and args.pairs < 20:
            raise ValueError(f"pairs: expected 20 or more, or 0 for all, got {args.pairs}")
        if args.whole_tests and not args.pairs:
            raise ValueError("whole-tests: all pairs are taken without --pairs")
    languages = tuple(dict.fromkeys((args.src, args.trg)))
    remotes = [Remote(f"{ADDRESS}/{name}.{language}.gz") for name in NAMES.values() for language in languages]
    raw = raw_folder(args, remotes, MANUAL)
    prefixes = {split: raw / name for split, name in NAMES.items()}
    if not args.unchecked:
        check_content([find_text(prefix, side) for prefix in prefixes.values() for side in languages], SHA256)
    if args.entry == "multi30k-words":
        word_pairs.prepare_as_told(args, prefixes, args.out)
        return
    with TemporaryDirectory() as scratch:
        if args.pairs:
            prefixes = {split: first(prefix, args, split, Path(scratch)) for split, prefix in prefixes.items()}
        with new_folder(args.out) as folder:
            parallel.prepare_and_binarise(args, prefixes, folder)
            if args.documents:
                write_documents(folder / "text", args.src, args.documents)


def first(prefix: Path, args: argparse.Namespace, split: str, into: Path) -> Path:
    """The prefix of copies of the first pairs, of all that are not to train by if so asked."""
    if args.whole_tests and split != "train":
        return prefix
    count = args.pairs if split == "train" else args.pairs // 20
    for language in (args.src, args.trg):
        write_text(into / f"{prefix.name}.{language}", islice(read_lines(find_text(prefix, language)), count))
    return into / prefix.name


def write_documents(text: Path, language: str, length: int) -> None:
    """text/SPLIT.docs with documents of `length` sentences, the last one perhaps shorter."""
    for split in NAMES:
        count = sum(1 for _ in read_lines(text / f"{split}.{language}"))
        parts = [length] * (count // length) + ([count % length] if count % length else [])
        write_text(text / f"{split}.docs", parts)
