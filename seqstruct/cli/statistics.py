"""`seqstruct statistics`: what ways to cut words make of a text: tokens, types, and unknown tokens of a test text.

The table of Sennrich et al. (2016) for any corpus: words, characters, character bigrams (with a shortlist of words
too) and trigrams, compound splitting, Morfessor, hyphenation, and byte-pair encoding of one language or of both.
Morfessor and hyphenation need the packages morfessor and pyphen; where one is missing its line says so.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from seqstruct.command import markdown_table, text_table
from seqstruct.data.arguments import language


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--train", required=True, metavar="FILE", help="training text, UTF-8, plain or .gz")
    parser.add_argument("--test", required=True, metavar="FILE", help="text in which unknown tokens are counted")
    parser.add_argument("--language", required=True, metavar="LANGUAGE", type=language,
                        help="of the text, two letters")
    parser.add_argument("--other", metavar="FILE", help="training text of the other language, for joint BPE")
    parser.add_argument("--other-language", metavar="LANGUAGE", type=language,
                        help="of that text, two letters; needed to tokenise it")
    parser.add_argument("--tokenize", action="store_true", help="cut the text into Moses tokens first")
    parser.add_argument("--segmentations", nargs="+", metavar="NAME", help="these lines alone")
    parser.add_argument("--vocabulary", type=int, default=6000, metavar="N",
                        help="subword types that BPE of this language aims at (default %(default)s)")
    parser.add_argument("--joint-vocabulary", type=int, default=9000, metavar="N",
                        help="subword types that BPE of both languages aims at (default %(default)s)")
    parser.add_argument("--shortlist", type=int, default=5000, metavar="N",
                        help="most frequent words that stay whole among character bigrams (default %(default)s)")
    parser.add_argument("--format", choices=("text", "markdown", "json"), default="text")
    parser.add_argument("--record", metavar="FILE.json", help="write one line's numbers for `seqstruct record`")


def run(args: argparse.Namespace) -> None:
    from seqstruct.data.text.aligned import read_lines
    from seqstruct.data.text.statistics import SEGMENTATIONS, CutOptions, count_words, line_of
    from seqstruct.data.text.subwords import moses_tokenizer

    if args.other and args.tokenize and not args.other_language:
        raise ValueError("--other: expected --other-language with it, for Moses to tokenise it")
    names = args.segmentations or SEGMENTATIONS
    if args.record and len(names) != 1:
        raise ValueError(f"--record: expected one segmentation, got {len(names)}")

    def counted(path: str, language: str | None) -> object:
        lines = read_lines(path)
        found = count_words(map(moses_tokenizer(language), lines) if args.tokenize and language else lines)
        if not found:
            raise ValueError(f"{path}: the file has no words")
        return found

    options = CutOptions(args.language, args.vocabulary, args.joint_vocabulary, args.shortlist)
    train, test = counted(args.train, args.language), counted(args.test, args.language)
    other = counted(args.other, args.other_language) if args.other else None
    lines = [line_of(name, train, test, other, options) for name in names]
    if args.record:
        _record(*lines, args.record)
    if args.format == "json":
        print(json.dumps([asdict(line) for line in lines], indent=1))
        return
    rows = []
    for line in lines:
        numbers = [f"{n:,}" for n in (line.tokens, line.types, line.unknown)]
        rows.append([line.segmentation, *(["", "", line.missing] if line.missing else numbers)])
    shown = markdown_table if args.format == "markdown" else text_table
    print(shown(["segmentation", "tokens", "types", "unknown"], rows))


def _record(line: Any, path: str) -> None:
    from seqstruct.scoring.measurement import Measurement, write

    if line.missing:
        raise ValueError(f"--record: {line.missing}")
    write(path, [Measurement("tokens", line.tokens, "tokens"), Measurement("types", line.types, "types"),
                 Measurement("unknown", line.unknown, "tokens")])
