"""Text, or pairs of sentences, of as many types and words as asked: what does a model take, before its corpus is here?

A folder of `fairseq-preprocess`, bin/: of one language for language modeling, of two for translation, with --documents
beside text/ that says where documents end; or, with --raw, files for the preparations of one's own data
(`made_up.raw`).  Words are drawn by rank, the r-th as 1/r (Zipf), and mean nothing.  Lengths of sentences follow a
gamma distribution of shape 3; that of a target is its source's times the means' ratio, and a tenth up or down.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from seqstruct.data.arguments import add_numbers, at_least
from seqstruct.data.files import new_folder, write_text
from seqstruct.data.made_up import raw
from seqstruct.data.text.binarise import write_items

SHAPE, SPREAD = 3.0, 0.1
HELD_OUT = 100  # sentences to validate on, and to test on
MOST = 10_000_000
KINDS = ("texts", "pairs", "graphs", "trees")


def lengths(sentences: int, means: tuple[int, ...], longest: int, generator: np.random.Generator) -> np.ndarray:
    """How many words each sentence has, by language: sentences x languages, from 1 to `longest`."""
    source = generator.gamma(SHAPE, means[0] / SHAPE, sentences)
    ratios = np.array([mean / means[0] for mean in means])
    factors = generator.normal(1.0, SPREAD, (sentences, len(means)))
    factors[:, 0] = 1.0
    return (source[:, None] * ratios * factors).round().clip(1, longest).astype(np.int64)


def ranks(count: int, types: int, generator: np.random.Generator) -> np.ndarray:
    """Ranks from 0, the r-th with probability in proportion to 1 / (r + 1)."""
    heights = np.cumsum(1.0 / np.arange(1, types + 1))
    return np.searchsorted(heights, generator.random(count) * heights[-1], side="right").clip(max=types - 1)


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument("--types", type=int, nargs="+", required=True, metavar="N",
                        help="words known; two numbers for two languages, one for a dictionary of both")
    parser.add_argument("--languages", nargs=2, metavar=("SOURCE", "TARGET"), help="pairs of sentences, not text")
    parser.add_argument("--length", type=int, nargs="+", default=[25], metavar="N",
                        help="words of a sentence on average; two numbers for two languages (default: 25)")
    add_numbers(parser, {"--longest": (175, "words of a sentence at most"),
                         "--sentences": (10_000, "to train on"), "--seed": (1, "of what is drawn"),
                         "--documents": (0, "sentences of a document of two languages, 0: there are none"),
                         "--labels": (2, "of --raw, of texts, pairs or arcs"),
                         "--vectors": (0, "numbers of a word's vector, beside --raw; 0: no vectors")})
    parser.add_argument("--raw", choices=KINDS, help="raw files, for preparations of your own data")


def run(args: argparse.Namespace) -> None:
    at_least(args, command=True, longest=1, sentences=1, seed=0, documents=0, labels=2, vectors=0)
    sides = 2 if args.languages or args.raw == "pairs" else 1
    for option, most in (("types", sides if args.languages else 1), ("length", sides)):
        numbers = getattr(args, option)
        if len(numbers) > most or min(numbers) < 1:
            raise ValueError(f"--{option} takes one number for each language, from 1, not {numbers}")
    if max(*args.types, args.sentences) > MOST:
        raise ValueError(f"--types and --sentences are at most {MOST:,}")
    if args.languages and args.languages[0] == args.languages[1]:
        raise ValueError(f"--languages are two, not {args.languages[0]!r} twice")
    if args.raw and (args.languages or args.documents):
        raise ValueError("--raw has neither --languages nor --documents")
    if args.documents and not args.languages or args.vectors and not args.raw:
        raise ValueError("--documents needs --languages, --vectors needs --raw")
    with new_folder(args.out) as folder:
        words = (_write_raw if args.raw else _write)(folder, args, sides)
    print(f"{args.out}: {args.sentences:,} sentences, {words:,} words, of {' and '.join(map(str, args.types))} types")


def _splits(args: argparse.Namespace, sides: int) -> Iterator[tuple[str, np.ndarray, np.random.Generator]]:
    """Of each split the name, how many words its sentences have by language, and what draws them."""
    for number, (split, count) in enumerate({"train": args.sentences, "valid": HELD_OUT, "test": HELD_OUT}.items()):
        generator = np.random.default_rng([args.seed, number])
        means = tuple(args.length) if len(args.length) == sides else (args.length[0],) * sides
        yield split, lengths(count, means, args.longest, generator), generator


def _write_raw(folder: Path, args: argparse.Namespace, sides: int) -> int:
    words, types = 0, args.types[0]
    for split, counts, generator in _splits(args, sides):
        drawn = [_words(counts[:, side], types, generator) for side in range(sides)]
        words += int(counts.sum()) if split == "train" else 0
        if args.raw == "graphs":
            raw.graphs(folder / split, drawn[0], args.labels, ranks, generator)
            raw.texts(folder / split, drawn, generator.integers(2, size=len(counts)))
        elif args.raw == "trees":
            raw.trees(folder / split, drawn[0], generator)
        else:
            raw.texts(folder / split, drawn, generator.integers(args.labels, size=len(counts)))
    if args.vectors:
        raw.vectors(folder / "vectors.txt", types, args.vectors, np.random.default_rng([args.seed, 3]))
    return words


def _words(counts: np.ndarray, types: int, generator: np.random.Generator) -> list[list[str]]:
    drawn = iter(ranks(int(counts.sum()), types, generator))
    return [[f"w{next(drawn) + 1}" for _ in range(count)] for count in counts]


def _write(folder: Path, args: argparse.Namespace, sides: int) -> int:
    (folder / "bin").mkdir()
    pair, words = "-".join(args.languages or ()), 0
    for split, counts, generator in _splits(args, sides):
        words += int(counts.sum()) if split == "train" else 0
        if args.documents:
            whole, rest = divmod(len(counts), args.documents)
            documents = [args.documents] * whole + [rest] * (rest > 0)
            write_text(folder / "text" / f"{split}.docs", map(str, documents))
        for side in range(sides):
            dictionary = _dictionary(args.types[side % len(args.types)])
            ending = f".{pair}.{args.languages[side]}" if pair else ""
            dictionary.save(str(folder / "bin" / (f"dict.{args.languages[side]}.txt" if pair else "dict.txt")))
            sentences = _sentences(counts[:, side], dictionary, generator)
            write_items(sentences, folder / "bin" / f"{split}{ending}", len(dictionary))
    return words


def _dictionary(types: int) -> Any:
    """Fairseq's, of so many words beside the special symbols."""
    from fairseq.data import Dictionary

    dictionary = Dictionary()
    for rank in range(types):
        dictionary.add_symbol(f"w{rank + 1}", max(1, MOST // (rank + 1)))
    return dictionary


def _sentences(counts: np.ndarray, dictionary: Any, generator: np.random.Generator) -> Iterator[Any]:
    """Entries of the dictionary, EOS at the end of each sentence."""
    import torch

    drawn = torch.from_numpy(ranks(int(counts.sum()), len(dictionary) - dictionary.nspecial, generator)).int()
    end = torch.tensor([dictionary.eos()], dtype=torch.int)
    for sentence in (drawn + dictionary.nspecial).split(counts.tolist()):
        yield torch.cat([sentence, end])
