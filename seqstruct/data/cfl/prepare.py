"""Strings of a context-free language for training, validation and test, with their true log-probabilities.

One of five languages by its name, or one of your own: weighted rules or an automaton in a file, or an expression.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from seqstruct.data.arguments import add_intervals, add_numbers

if TYPE_CHECKING:
    from seqstruct.data.cfl.own import OwnLanguage


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument("language", metavar="LANGUAGE", nargs="?",
                        help="marked-reversal, unmarked-reversal, padded-reversal, dyck or hardest-cfl; none where it "
                             "is your own")
    own = parser.add_mutually_exclusive_group()
    own.add_argument("--grammar", metavar="FILE|FORM", help='your own rules, such as S -> "a" S "b" [0.9] | [0.1]; '
                     "with LANGUAGE published, the distribution of the published numbers, without the root's unary "
                     "rules (default), or as-written, with every rule")
    own.add_argument("--regex", metavar="PATTERN", help="your own expression, such as '(a|b)*c{2,3}': each character "
                     "is a symbol, and all strings of a length that match are equally likely")
    own.add_argument("--wfsa", metavar="FILE", help="your own automaton, its lines being start STATE [WEIGHT], "
                     "final STATE [WEIGHT] and STATE STATE SYMBOL [WEIGHT]")
    add_numbers(parser, {
        "--train": (10000, "training strings"), "--valid": (1000, "validation strings"),
        "--test-per-length": (100, "test strings of each valid length"),
        "--batch": (10, "strings in a batch, all of one length"), "--seed": (1, "of training and validation"),
        "--test-seed": (0, "of the test set, the same for all --seed"),
    })
    add_intervals(parser, {
        "--lengths": ((40, 80), "shortest and longest training and validation string, in symbols"),
        "--test-lengths": ((40, 100), "shortest and longest test string, in symbols"),
    })


def run(args: argparse.Namespace) -> None:
    from seqstruct.data.cfl.folder import StringsRequest, write_folder

    own = own_of(args)
    named = {"language": own.name, "grammar": own.form} if own else {
        "language": args.language, "grammar": args.grammar or "published"
    }
    others = StringsRequest.__dataclass_fields__.keys() - named
    request = StringsRequest(**named, **{name: getattr(args, name) for name in others})
    meta = write_folder(request, args.out, own)
    for note in own.notes if own else ():
        print(f"{own.name}: {note}")
    counts = meta["valid_length_counts"]
    print(
        f"{args.out}: {request.language}, {request.train} training and {request.valid} validation strings of "
        f"{counts['train']} lengths ({request.lengths[0]} to {request.lengths[1]}), "
        f"{counts['test'] * request.test_per_length} test strings of {counts['test']} lengths "
        f"({request.test_lengths[0]} to {request.test_lengths[1]})"
    )


def own_of(args: argparse.Namespace) -> OwnLanguage | None:
    """The language that the options describe, None where they name one.

    Raises ValueError where they do both or neither, and as `own.own_language` does.
    """
    from seqstruct.data.cfl.own import own_language
    from seqstruct.data.text.aligned import read_lines

    given = {"rules": args.grammar, "regex": args.regex, "wfsa": args.wfsa}
    form = next((form for form, value in given.items() if value is not None), None)
    if args.language is not None and form in (None, "rules"):
        if args.grammar not in (None, "published", "as-written"):
            raise ValueError(f"a grammar of {args.language} is taken published or as-written, not {args.grammar!r}; "
                             "with rules of your own in a file, name no language")
        return None
    if args.language is not None:
        raise ValueError(f"expected one language, got {args.language} and --{form}")
    if form is None:
        raise ValueError("expected a language, by its name or by --grammar FILE, --regex PATTERN or --wfsa FILE")
    if form == "regex":
        return own_language(given[form], form, given[form])
    return own_language(Path(given[form]).name, form, "".join(f"{line}\n" for line in read_lines(given[form])))
