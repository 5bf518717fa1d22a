"""`seqstruct baseline`: what the data of a prepared folder give without a model, as the baseline rows of the recipes.

    bigram, trigram, 5-gram            interpolated Kneser-Ney: perplexity of a word (text/), difference (strings)
    majority, "first token"            the most frequent class, of all or given the text's first token
    copy                               the source as its own translation (raw/), a prefix form as its infix form
    "linear rule"                      moves the first auxiliary; verbs agree with the noun before them
    constant                           one infix form for all formulas; one translation for all sentences
    "random answer", "most frequent answer"        of bAbI
    "simple rule", or "trivial rule"   given a little of what was read: strings to recognise, tasks of abilities
    "previous word", "next word"       as the head of each word, in trees and graphs
"""

from __future__ import annotations

import argparse
import json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="one of those above")
    parser.add_argument("folder", metavar="FOLDER", help="made by data-prep/ or `seqstruct prepare`")
    parser.add_argument("--sentences", action="store_true", default=None,
                        help="n-grams: each line is a text of its own (default: a file is one text)")
    parser.add_argument("--pieces", action="store_true", default=None,
                        help="n-grams: perplexity of a subword (default: of a word)")
    parser.add_argument("--discount", type=float, metavar="D",
                        help="n-grams: what is taken off each count, 0 to 1 (default: from counts of counts)")
    parser.add_argument("--languages", nargs=2, metavar=("SOURCE", "TARGET"), help="copy: two letters each")
    parser.add_argument("--metrics", nargs="+", metavar="NAME", help="copy: as of `seqstruct score`")
    parser.add_argument("--steps", type=int, metavar="K", help="answers: supporting facts that are chosen")
    parser.add_argument("--splits", nargs="+", metavar="SPLIT=NAME",
                        help="copy, neighbours: these splits alone, with how their metrics begin")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--out", metavar="FILE", help="write JSON there, for `seqstruct record`, and print nothing")


def run(args: argparse.Namespace) -> None:
    from seqstruct.harness.records import format_value
    from seqstruct.scoring.measurement import write
    from seqstruct.scoring.named_baselines import measure

    named = ("sentences", "pieces", "discount", "languages", "metrics", "steps")
    options = {name: getattr(args, name) for name in named}
    strange = [entry for entry in args.splits or () if not all(entry.partition("="))]
    if strange:
        raise ValueError(f"--splits: expected SPLIT=NAME, such as valid=validation, got {strange[0]!r}")
    options["splits"] = dict(entry.split("=", 1) for entry in args.splits) if args.splits else None
    found = measure(args.name, args.folder, **{name: value for name, value in options.items() if value is not None})
    if args.out:
        write(args.out, found)
        return
    if args.format == "json":
        print(json.dumps([measurement._asdict() for measurement in found], indent=1))
        return
    for measurement in found:
        print(f"{measurement.metric}\t{format_value(measurement.value)}\t{measurement.unit}")
