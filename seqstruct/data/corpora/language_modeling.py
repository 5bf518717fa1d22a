"""Word-level corpora for language modeling: Penn Treebank, WikiText, Brown; from raw files to a fairseq folder.

    ptb          ptb.{train,valid,test}.txt as Mikolov et al. (2010) cut it down to 10,000 types, one sentence a line
    wikitext2    wiki.{train,valid,test}.raw (Merity et al. 2017), one paragraph or heading a line, words apart
    wikitext103  wiki.{train,valid,test}.tokens, the same with rare words as <unk>: 268,000 types (Peng 2022, Table 4.2)
    brown        brown.zip of nltk: 500 documents, one sentence a line; 450, 25 and 25 documents, all genres in each

A folder of raw files is read, or an archive of them (`ARCHIVES`).  The result
holds text/SPLIT.txt and bin/, for a stream (`stream_language_modeling`) and by sentence (fairseq's own task
`language_modeling --sample-break-mode eos`) alike, and corpus.json with checksums and counts.
"""

from __future__ import annotations

import argparse
import os
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path

from seqstruct.data.arguments import at_least
from seqstruct.data.checked import SPLITS
from seqstruct.data.downloads import DAMAGE, Remote, raw_folder, unpack
from seqstruct.data.files import atomic_write, existing, new_folder, sha256, undamaged, verify, write_json, write_text
from seqstruct.data.text import aligned
from seqstruct.data.text.binarise import preprocess

ARCHIVES = {"ptb": "simple-examples.tgz", "wikitext2": "wikitext-2-raw-v1.zip", "wikitext103": "wikitext-103-v1.zip",
            "brown": "brown.zip"}
NAMES = {"ptb": "ptb.{}.txt", "wikitext2": "wiki.{}.raw", "wikitext103": "wiki.{}.tokens"}
BROWN_SHA256 = "9b275f9b3b95d7bd66ccfb7cd259f445a13bbe5d1f4107aba09fd3e8364bafa6"
WIKITEXT_SHA256 = {
    "wikitext2": "ef7edb566e3e2b2d31b29c1fdb0c89a4cc683597484c3dc2517919c615435a11",
    "wikitext103": "242ba0f20b329cfdf1ccc61e9e9e5b59becf189db7f7a81cd2a0e2fc31539590",
}
REMOTES = {  # the Penn Treebank is licensed
    "brown": Remote(
        "https://raw.githubusercontent.com/nltk/nltk_data/gh-pages/packages/corpora/brown.zip", BROWN_SHA256
    ),
    **{corpus: Remote(
        f"https://wikitext.smerity.com/{ARCHIVES[corpus]}", digest,
        mirrors=(Remote(f"https://s3.amazonaws.com/research.metamind.io/wikitext/{ARCHIVES[corpus]}", digest),),
    ) for corpus, digest in WIKITEXT_SHA256.items()},
}
MANUAL_ARCHIVE = "get {} elsewhere and name its folder by --from"
MANUAL = {
    "ptb": "the text is licensed by the Linguistic Data Consortium (LDC99T42); who has the licence finds {} on Tomas "
           "Mikolov's page of RNNLM; `brown` is of much the same size",
}
COUNTS = {  # lines and words of each split, as published
    "ptb": {"train": (42068, 887521), "valid": (3370, 70390), "test": (3761, 78669)},
    "wikitext2": {"train": (36718, 2051910), "valid": (3760, 213886), "test": (4358, 241211)},
    "wikitext103": {"train": (1801350, 101425671), "valid": (3760, 213886), "test": (4358, 241211)},
}
NUMBER = re.compile(r"(?=.*\d)[\d.,:/$%'-]+", re.ASCII)
SUBWORDS = 8000  # types of byte-pair encoding
BROWN_PARTS = 20  # documents are dealt into so many parts; the last but one validates, the last tests


@dataclass(frozen=True)
class TextOptions:
    """How a corpus is cut down, as `add_text_arguments` says; the special symbols count in the vocabulary, and numbers
    become N as in Mikolov's text.
    """

    vocabulary: int = 0
    min_count: int = 1
    lowercase: bool = False
    train_lines: int = 0
    skip_empty: bool = False

    def __post_init__(self) -> None:
        at_least(self, vocabulary=0, min_count=1, train_lines=0)


DEFAULTS = {"ptb": TextOptions(), "wikitext2": TextOptions(min_count=3), "wikitext103": TextOptions(),
            "brown": TextOptions(vocabulary=10000, lowercase=True)}


class _Words:
    """The lines of a file, words separated by single spaces; they can be read again and again."""

    def __init__(self, path: Path):
        self.path = path

    def __iter__(self) -> Iterator[str]:
        return (" ".join(line.split()) for line in aligned.read_lines(self.path))


def read_lines(
    corpus: str, folder: Path, scratch: Path, checked: bool = True, splits: Sequence[str] = SPLITS
) -> dict[str, Iterable[str]]:
    """The raw lines of each split, words separated by spaces; they can be read again and again.

    corpus: ptb, wikitext2, wikitext103 or brown.  folder: of raw files or the archive.  scratch: to unpack it into.
    checked: whether the archive of Brown must have its checksum.  splits: of the other corpora, those wanted.
    Raises ValueError if a file is missing or altered; and on reading a line that is not UTF-8.
    """
    archive = folder / ARCHIVES[corpus]
    if corpus == "brown":
        existing(archive)
        if checked:
            verify(archive, BROWN_SHA256)
        return _read_brown(archive)
    paths = {split: folder / NAMES[corpus].format(split) for split in splits}
    if archive.is_file() and not all(path.is_file() for path in paths.values()):
        paths |= unpack(archive, {path.name: split for split, path in paths.items()}, scratch)
    return {split: _Words(existing(path, f", nor is it in {archive.name} beside it")) for split, path in paths.items()}


def brown_documents(archive: str | os.PathLike) -> list[list[str]]:
    """The lines of each document of nltk's brown.zip, tokens as word/tag, in the order of the names.

    Raises ValueError if it is damaged, is not UTF-8 or has none.
    """
    with undamaged(archive, OSError, UnicodeDecodeError, *DAMAGE), zipfile.ZipFile(archive) as opened:
        names = sorted(name for name in opened.namelist() if re.fullmatch(r"brown/c[a-r]\d\d", name))
        documents = [opened.read(name).decode("utf-8").split("\n") for name in names]
    if not any(line.strip() for document in documents for line in document):
        raise ValueError(f"{archive}: no document of the Brown corpus is in it")
    return documents


def _read_brown(archive: Path) -> dict[str, list[str]]:
    """Words without their tags; documents are dealt out one by one, so that each part has all genres."""
    documents = brown_documents(archive)
    lines: dict[str, list[str]] = {split: [] for split in SPLITS}
    for part in range(BROWN_PARTS):
        split = SPLITS[max(0, part - BROWN_PARTS + len(SPLITS))]
        for line in (line.split() for document in documents[part::BROWN_PARTS] for line in document):
            if line:
                lines[split].append(" ".join(token.rpartition("/")[0] or token for token in line))
    return lines


def clean(lines: Iterable[str], options: TextOptions) -> Iterator[str]:
    """Lines as the options want them; of training the caller takes the first ones."""
    for line in lines:
        if options.lowercase:
            line = " ".join("N" if NUMBER.fullmatch(word) else word.lower() for word in line.split())
        if line or not options.skip_empty:
            yield line


def write(
    folder: Path, raw: Mapping[str, Iterable[str]], options: TextOptions, *, subwords: bool = False
) -> dict[str, dict[str, int]]:
    """text/ and bin/ of raw lines by split; lines and words of each split come back.

    subwords: whether words are cut by byte-pair encoding, learned from training, into `options.vocabulary` types; its
    merges are codes.bpe.  Raises ValueError if a split has no words.
    """
    counts = {}
    for split in SPLITS:
        most = options.train_lines if split == "train" and options.train_lines else None
        counts[split] = _write(folder / "text" / f"{split}.txt", islice(clean(raw[split], options), most))
        if not counts[split]["words"]:
            raise ValueError(f"no words in the {split} set")
    if subwords:
        cut(folder, list(counts), options.vocabulary)
        options = replace(options, vocabulary=0, min_count=1)
    binarise(folder, options, 8 if subwords else 1)  # that of subwords as fairseq-preprocess makes it
    return counts


def _check_counts(corpus: str, raw: Mapping[str, Iterable[str]]) -> None:
    for split, (lines, words) in COUNTS.get(corpus, {}).items():
        found = [len(line.split()) for line in raw[split]]
        if (len(found), sum(found)) != (lines, words):
            raise ValueError(f"{corpus}: the {split} set has {len(found)} lines and {sum(found)} words, "
                             f"expected {lines} and {words}: truncated or altered")


def _write(path: Path, lines: Iterable[str]) -> dict[str, int]:
    counts = {"lines": 0, "words": 0}
    with atomic_write(path) as stream:
        for line in lines:
            stream.write(line + "\n")
            counts["lines"] += 1
            counts["words"] += len(line.split())
    return counts


def cut(folder: Path, splits: Sequence[str], vocabulary: int) -> None:
    """Cut text/SPLIT.txt into subwords, in place, by an encoding of the training text, codes.bpe."""
    from seqstruct.data.text import subwords

    paths = {split: folder / "text" / f"{split}.txt" for split in splits}
    subwords.learn_bpe(aligned.read_lines(paths["train"]), folder / "codes.bpe", vocabulary)
    apply = subwords.load_bpe(folder / "codes.bpe")
    for path in paths.values():
        write_text(path, map(apply, aligned.read_lines(path)))


def binarise(folder: Path, options: TextOptions, padding: int = 1) -> None:
    """fairseq-preprocess from folder/text/SPLIT.txt to folder/bin; made-up words fill its dictionary up to a multiple
    of `padding`.

    Raises ValueError with its last line if it fails.
    """
    command = ["--only-source", "--thresholdsrc", options.min_count, "--padding-factor", padding, "--workers", "1"]
    for split in SPLITS:
        names = [f"{split}.txt", "test1.txt"] if split == "test" else [f"{split}.txt"]
        paths = [folder / "text" / name for name in names]
        command += [f"--{split}pref", ",".join(str(path) for path in paths if path.is_file())]
    if options.vocabulary:
        command += ["--nwordssrc", options.vocabulary]
    preprocess(folder / "bin", command)


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    add_text_arguments(parser, DEFAULTS[name])


def add_text_arguments(parser: argparse.ArgumentParser, default: TextOptions) -> None:
    """How a text is cut down; the values are None where the default holds."""
    parser.add_argument("--vocabulary", type=int, metavar="N",
                        help=f"most frequent types kept, 0: all (default {default.vocabulary})")
    parser.add_argument("--min-count", type=int, metavar="N",
                        help=f"occurrences in training that a type needs (default {default.min_count})")
    parser.add_argument("--lowercase", action="store_true", default=None, help="lowercase words; numbers become N")
    parser.add_argument("--train-lines", type=int, metavar="N", help="take the first N lines of training alone")
    parser.add_argument("--subwords", choices=("bpe",), help="byte-pair encoding learned from training; --vocabulary "
                        f"is then the number of its types (default {SUBWORDS}), and no word is left out")
    parser.add_argument("--skip-empty", action="store_true", default=None, help="leave out empty lines")


def chosen(args: argparse.Namespace, default: TextOptions) -> TextOptions:
    """The options that the command line says, else those of `default`."""
    given = {name: getattr(args, name) for name in TextOptions.__dataclass_fields__}
    options = replace(default, **{name: value for name, value in given.items() if value is not None})
    return replace(options, vocabulary=args.vocabulary or SUBWORDS) if args.subwords else options


def report(counts: Mapping[str, Mapping[str, int]]) -> None:
    for split, found in counts.items():
        print(f"{split}: {found['lines']} lines, {found['words']} words")


def run(args: argparse.Namespace) -> None:
    corpus, checked = args.entry, not args.unchecked
    remotes = [REMOTES[corpus]] if corpus in REMOTES else []
    source = raw_folder(args, remotes, MANUAL.get(corpus, MANUAL_ARCHIVE).format(ARCHIVES[corpus]))
    options = chosen(args, DEFAULTS[corpus])
    with new_folder(args.out) as folder:
        raw = read_lines(corpus, source, folder.parent / "unpacked", checked)
        if checked:
            _check_counts(corpus, raw)
        counts = write(folder, raw, options, subwords=bool(args.subwords))
        sums = {f"{split}.txt": sha256(folder / "text" / f"{split}.txt") for split in counts}
        content = {"corpus": corpus, "options": asdict(options), "counts": counts, "sha256": sums}
        write_json(folder / "corpus.json", content)
    report(counts)
