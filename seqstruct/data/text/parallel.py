"""Parallel text to subwords: read two aligned files, tokenise, learn one segmentation for both sides, apply, filter.

Text is streamed; only the word counts (or SentencePiece's sample) are held.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from seqstruct.data import own
from seqstruct.data.arguments import add_numbers, at_least
from seqstruct.data.checked import SPLITS
from seqstruct.data.files import new_folder, write_json, write_text
from seqstruct.data.text import subwords
from seqstruct.data.text.aligned import (
    check_content,
    clean_pairs,
    find_pairs,
    find_text,
    pair_writer,
    read_checksums,
    read_lines,
    read_pairs,
    survey,
    write_pairs,
)
from seqstruct.data.text.binarise import preprocess_pairs

ESCAPES = ("keep", "refuse", "undo")


@dataclass(frozen=True)
class SubwordOptions:
    """How a corpus is prepared, as `add_pair_arguments` says.

    languages: source and target, two-letter codes.  subwords: "bpe" (after Moses tokenisation), "sentencepiece" (its
    unigram model), "sentencepiece-bpe", or Moses tokens as "words" with "<unk>" for all others, as "mixed" words and
    characters, or the text's "characters"; one kind for both sides, or that of each.  vocabulary: two sizes make a
    model for each language; of "words" and "mixed" how many words are kept whole; of "characters" nothing, all are
    kept.  min_frequency: a piece that is used less is cut into smaller ones.  max_length: of training pairs; longer
    sentences that are not for training are an error where they are beyond 250 subwords, too.  truecase: whether Moses
    tokens are truecased, as training has them.  drop_empty: else a pair with an empty side is an error.  escapes:
    whether the XML entities of Moses's tokeniser (`&apos;` and the like) are kept as text, refused, or undone, in the
    references too.
    """

    languages: tuple[str, str]
    subwords: str | tuple[str, str] = "bpe"
    vocabulary: int | tuple[int, int] = 6000
    min_frequency: int = 1
    lowercase: bool = False
    max_length: int = 250
    max_ratio: float = 3.0
    truecase: bool = False
    drop_empty: bool = False
    escapes: str = "keep"

    def __post_init__(self) -> None:
        if self.languages[0] == self.languages[1]:
            raise ValueError(f"languages: expected two different ones, got {self.languages[0]} twice")
        for kind in self.kinds:
            if kind not in subwords.KINDS:
                raise ValueError(f"subwords: expected one of {', '.join(subwords.KINDS)}, got {kind!r}")
        if self.kinds[0] != self.kinds[1] and len(self.vocabularies) == 1:
            raise ValueError("vocabulary: expected two sizes for two kinds of subwords, got one")
        if self.escapes not in ESCAPES:
            raise ValueError(f"escapes: expected one of {', '.join(ESCAPES)}, got {self.escapes!r}")
        for size in self.vocabularies:
            if size < 1:
                raise ValueError(f"vocabulary: expected 1 or more, got {size}")
        at_least(self, min_frequency=1, max_length=1, max_ratio=1)
        for kind in self.kinds:
            if self.min_frequency > 1 and not kind.startswith("sentencepiece"):
                raise ValueError(f"min_frequency: expected sentencepiece or sentencepiece-bpe with it, got {kind}")
            if self.truecase and (not subwords.KINDS[kind][0] or self.lowercase):
                raise ValueError("truecase: expected bpe, words or mixed with it, and no lowercase")

    @property
    def kinds(self) -> tuple[str, str]:
        """Of the subwords of source and target."""
        return (self.subwords, self.subwords) if isinstance(self.subwords, str) else self.subwords

    @property
    def vocabularies(self) -> tuple[int, ...]:
        """One size for a joint model, or two."""
        return (self.vocabulary,) if isinstance(self.vocabulary, int) else self.vocabulary


def within(lengths: tuple[int, int], options: SubwordOptions) -> bool:
    """Whether a pair of lengths in subwords passes the length and ratio limits."""
    return max(lengths) <= options.max_length and max(lengths) <= options.max_ratio * min(lengths)


def tokenise(pairs: Iterator[tuple[str, str]], options: SubwordOptions, into: Path) -> None:
    """Write both sides as words, into.LANGUAGE: Moses tokens or, before subwords that know spaces, the text."""
    cut = [
        subwords.moses_tokenizer(language) if subwords.KINDS[kind][0] else subwords.normalize_spaces
        for language, kind in zip(options.languages, options.kinds, strict=True)
    ]
    with pair_writer(into, options.languages) as write:
        for pair in pairs:
            lines = (line.lower() if options.lowercase else line for line in map(subwords.normalize_spaces, pair))
            write(tuple(side(line) for side, line in zip(cut, lines, strict=True)))


def learn(
    words: Sequence[Path], model: Path, kind: str, options: SubwordOptions, vocabulary: int
) -> Callable[[str], str]:
    """Learn one segmentation for sides of the training set and write it; the function that applies it."""
    def text() -> Iterator[str]:
        return (line for path in words for line in read_lines(path))

    if kind in ("words", "mixed"):
        subwords.learn_words(text(), model, vocabulary)
    elif kind == "bpe":
        subwords.learn_bpe(text(), model, vocabulary)
    elif kind.startswith("sentencepiece"):
        subwords.learn_sentencepiece(text(), model, vocabulary, "bpe" if kind == "sentencepiece-bpe" else "unigram")
        if options.min_frequency > 1:
            subwords.drop_rare_pieces(text(), model, options.min_frequency)
    return subwords.LOAD[kind](model)


def learn_all(words: Sequence[Path], out: Path, options: SubwordOptions) -> list[Callable[[str], str]]:
    """What `text` needs, learnt from the training set and written into `out`; the functions for source and target."""
    if len(options.vocabularies) == 1:
        kind = options.kinds[0]
        model = out / subwords.KINDS[kind][1].replace("%s", "")
        return [learn(words, model, kind, options, options.vocabularies[0])] * 2
    sides = zip(words, options.languages, options.kinds, options.vocabularies, strict=True)
    return [
        learn([side], out / subwords.KINDS[kind][1].replace("%s", f".{language}"), kind, options, size)
        for side, language, kind, size in sides
    ]


def segment(
    words: Sequence[Path], apply: Sequence[Callable[[str], str]], split: str, options: SubwordOptions, into: Path
) -> dict[str, int]:
    """Apply the segmentations of both sides to one split and write into.LANGUAGE.  Returns counts of pairs kept, pairs
    dropped and subwords kept on both sides; raises ValueError if a sentence that is not for training is over-long."""
    counts = {"pairs": 0, "dropped": 0, "subwords": 0}
    most = max(options.max_length, SubwordOptions.max_length)
    with pair_writer(into, options.languages) as write:
        for number, pair in enumerate(read_pairs(*words), 1):
            lines = [cut(line) for cut, line in zip(apply, pair, strict=True)]
            lengths = tuple(len(line.split()) for line in lines)
            if split == "train" and not within(lengths, options):
                counts["dropped"] += 1
                continue
            for language, length in zip(options.languages, lengths, strict=True):
                if length > most:
                    raise ValueError(f"{split}.{language}: line {number} has {length} subwords, "
                                     f"expected at most {most} (see --max-length)")
            write(lines)
            counts["pairs"] += 1
            counts["subwords"] += sum(lengths)
    if not counts["pairs"]:
        raise ValueError(f"{split}: all {counts['dropped']} pairs exceed the limits on length and ratio")
    return counts


def prepare(
    prefixes: Mapping[str, str | os.PathLike],
    options: SubwordOptions,
    out: str | os.PathLike,
) -> dict:
    """Prepare one corpus into the folder `out`.

    prefixes: by split (train, valid, test), the path without its language suffix.
    Writes `text/SPLIT.LANGUAGE` (subwords), `raw/{valid,test}.LANGUAGE` (to score against), `codes.bpe`,
    `sentencepiece.model` or `words.txt` (with the language before the dot where each has its own), `truecase.LANGUAGE`
    if wanted, and `corpus.json`: the options, the input's checksums and the counts, which also come back.
    The folder appears when all of it is there.
    Raises ValueError for what is missing, truncated, altered, empty, escaped or not aligned, or if `out` holds files
    already.
    """
    files, found = find_pairs(prefixes, options.languages)
    with new_folder(out) as corpus:
        empty = survey(files, options.drop_empty, options.escapes != "refuse")
        counts = _build(files, options, corpus.parent, corpus)
        summary = {
            "options": asdict(options),
            "sha256": found,
            "counts": {split: {**counts[split], "empty": empty[split]} for split in SPLITS},
        }
        write_json(corpus / "corpus.json", summary)
    return summary


def _build(files: Mapping[str, Sequence[Path]], options: SubwordOptions, scratch: Path, out: Path) -> dict:
    """Words in `scratch`, all the rest in `out`; returns the counts by split."""
    words = {split: [scratch / f"{split}.{language}" for language in options.languages] for split in SPLITS}

    def pairs(split: str) -> Iterator[tuple[str, str]]:
        return clean_pairs(files[split], options.escapes == "undo")

    for split in SPLITS:
        tokenise(pairs(split), options, scratch / split)
    if options.truecase:
        for side, language in enumerate(options.languages):
            truecase = subwords.learn_truecase(read_lines(words["train"][side]), out / f"truecase.{language}")
            for split in SPLITS:
                cased = scratch / f"{split}.truecased.{language}"
                write_text(cased, map(truecase, read_lines(words[split][side])))
                words[split][side] = cased
    apply = learn_all(words["train"], out, options)
    counts = {}
    for split in SPLITS:
        counts[split] = segment(words[split], apply, split, options, out / "text" / split)
    for split in ("valid", "test"):
        write_pairs(out / "raw" / split, options.languages, pairs(split))
    return counts


def vocabulary(text: str) -> int | tuple[int, int]:
    """`6000` or `9000,7000`.  Raises ValueError on anything else."""
    sizes = tuple(int(size) for size in text.split(","))
    if len(sizes) > 2:
        raise ValueError(f"vocabulary: expected one size or two, got {text}")
    return sizes[0] if len(sizes) == 1 else sizes


def kinds(text: str) -> str | tuple[str, str]:
    """`bpe`, or `words,sentencepiece` for source and target.  Raises ValueError on anything else."""
    found = tuple(text.split(","))
    if len(found) > 2 or not set(found) <= set(subwords.KINDS):
        raise ValueError(f"subwords: expected one or two of {', '.join(subwords.KINDS)}, got {text}")
    return found[0] if len(found) == 1 else found


def add_subword_arguments(parser: argparse.ArgumentParser, defaults: SubwordOptions | None = None) -> None:
    """--subwords and --vocabulary; their defaults are None without `defaults`."""
    shown = "(default %(default)s)" if defaults else "(default: the corpus's own)"
    parser.add_argument("--subwords", type=kinds, default=defaults and defaults.subwords, metavar="KIND[,KIND]",
                        help=f"of both languages, or of each: {', '.join(subwords.KINDS)}; bpe, words and mixed are of "
                        f"Moses tokens {shown}")
    parser.add_argument("--vocabulary", type=vocabulary, default=defaults and defaults.vocabulary, metavar="N[,N]",
                        help=f"subword types of both languages together, or of each {shown}")


def add_pair_arguments(parser: argparse.ArgumentParser) -> None:
    """How pairs are cut and filtered, with the defaults of `SubwordOptions`."""
    add_subword_arguments(parser, SubwordOptions(("", "-")))
    add_numbers(parser, {
        "--min-frequency": (SubwordOptions.min_frequency, "uses in training that a piece of sentencepiece needs"),
        "--max-length": (SubwordOptions.max_length, "subwords in a sentence; longer training pairs are dropped"),
        "--workers": (1, "processes that binarise"),
    })
    parser.add_argument("--lowercase", action="store_true", help="lowercase both sides")
    parser.add_argument("--max-ratio", type=float, default=SubwordOptions.max_ratio, metavar="R",
                        help="longer to shorter side of a training pair (default %(default)s)")
    parser.add_argument("--drop-empty", action="store_true", help="leave out pairs with an empty side")
    parser.add_argument("--deescape", action="store_true",
                        help="undo the XML entities that Moses's tokeniser writes (&apos; and the like)")


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    own.add_pair_arguments(parser)
    add_pair_arguments(parser)
    parser.add_argument("--checksums", metavar="FILE", help="SHA-256 of the unpacked input, as sha256sum writes it")


def run(args: argparse.Namespace) -> None:
    if args.checksums:
        given = [prefix for prefix in (args.train, args.valid, args.test) if prefix is not None]
        found = [find_text(prefix, language) for prefix in given for language in (args.src, args.trg)]
        check_content(found, read_checksums(args.checksums))
    own.make_pairs(args, prepare_and_binarise)


def prepare_and_binarise(
    args: argparse.Namespace, prefixes: Mapping[str, str | os.PathLike], folder: Path
) -> dict[str, int]:
    """Fill a new folder, bin/ included, as `args` says, and print the counts; those of pairs come back."""
    options = SubwordOptions((args.src, args.trg), args.subwords, args.vocabulary, args.min_frequency, args.lowercase,
                      args.max_length, args.max_ratio, drop_empty=args.drop_empty,
                      escapes="undo" if args.deescape else "refuse")
    summary = prepare(prefixes, options, folder)
    preprocess_pairs(folder / "text", folder / "bin", options.languages, joined=len(options.vocabularies) == 1,
                     workers=args.workers)
    for split, counts in summary["counts"].items():
        empty = f", {counts['empty']} with an empty side left out" if args.drop_empty else ""
        print(f"{split}: {counts['pairs']} pairs, {counts['subwords']} subwords, {counts['dropped']} pairs dropped"
              + empty)
    return {split: counts["pairs"] for split, counts in summary["counts"].items()}
