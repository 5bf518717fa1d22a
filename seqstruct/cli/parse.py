"""`seqstruct parse`: constituency trees from a language model's span attention or syntactic distances.

Text has one sentence a line, words separated by spaces; its trees are drawn.  Gold trees (.mrg, a folder or .zip of
such files) are parsed without traces and punctuation, and the trees scored: unlabeled F1 on sentences of at most
--max-words words that are left then (40 for WSJ-40, 10 for WSJ-10), brackets around single words apart.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from seqstruct.command import add_data, refuse_unused
from seqstruct.data.arguments import SEED


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", metavar="FILE", help="text, - for standard input; or trees: .mrg, .zip or a folder")
    by = parser.add_mutually_exclusive_group(required=True)
    by.add_argument("--checkpoint", metavar="PT", help="a model that parses")
    by.add_argument("--untrained", metavar="WORD", nargs="+", help="a model as fairseq-train would begin with: the "
                    "folder and the options in one word, or with --config-dir and --config-name the overrides; --seed "
                    "draws its parameters")
    by.add_argument("--branching", choices=("left", "right", "random", "gold"), help="trees without a model")
    parser.add_argument("--config-dir", metavar="DIR", help="as of fairseq-hydra-train, for --untrained")
    parser.add_argument("--config-name", metavar="NAME", help="as of fairseq-hydra-train, for --untrained")
    add_data(parser)
    parser.add_argument("--lowercase", action="store_true",
                        help="the model reads words in lower case and numbers as N, as data-prep/ptb_trees.sh has them")
    parser.add_argument("--left-score", action="store_true", help="add the left span's score (Peng 2022, note 7)")
    parser.add_argument("--seed", type=SEED, default=1, metavar="N",
                        help="of random branching or an untrained model (default %(default)s)")
    parser.add_argument("--max-words", type=int, default=40, metavar="N",
                        help="longest sentence scored, punctuation apart (default %(default)s)")
    parser.add_argument("--convention", choices=("corpus", "sentence"), default="corpus",
                        help="corpus: brackets of all sentences, that around the whole one among them; sentence: mean "
                        "F1 of the sentences, without it (default %(default)s)")
    parser.add_argument("--format", choices=("scores", "json", "drawn", "brackets"),
                        help="default scores for trees, drawn for text; the last two show the model's trees")
    parser.add_argument("--out", metavar="FILE", help="write the scores there as JSON, for `seqstruct record`")


def run(args: argparse.Namespace) -> None:
    path = Path(args.input)
    trees = args.input != "-" and (path.is_dir() or path.suffix.lower() in (".mrg", ".zip"))
    if not trees and (args.branching == "gold" or args.format in ("scores", "json")):
        raise ValueError(f"{args.input}: gold branching and scores need trees: .mrg, .zip or a folder")
    if (args.config_dir is None) != (args.config_name is None) or (args.config_dir and not args.untrained):
        raise ValueError("--config-dir and --config-name: expected both, with --untrained")
    refuse_unused(
        args,
        (args.branching, "expected --checkpoint or --untrained with it", ("left_score", "lowercase")),
        (not args.checkpoint, "expected --checkpoint with it", ("data",)),
        (args.checkpoint, "expected --untrained or --branching with it", ("seed",)),
        (not trees, "expected trees to score", ("out", "convention", "max_words")),
        (args.format, "expected no --format with it", ("out",)),
        (args.format in ("drawn", "brackets"), "expected scores, not --format", ("convention",)),
    )
    if args.max_words < 1:
        raise ValueError(f"--max-words: expected 1 or more, got {args.max_words}")
    if trees:
        _score(args, path)
        return
    from seqstruct.data.text.aligned import read_lines
    from seqstruct.data.text.trees import binary_tree

    parse = _parser(args)
    lines = (line.rstrip("\n") for line in sys.stdin) if args.input == "-" else read_lines(args.input)
    for words in sentences_of(lines, args.input):
        _show(binary_tree(words, parse(words)), args.format)


def sentences_of(lines: Iterable[str], name: str) -> Iterable[list[str]]:
    """The words of each line.  Raises ValueError, naming the line, if one is empty or there is none."""
    number = 0
    for number, line in enumerate(lines, 1):
        if not line.split():
            raise ValueError(f"{name}: line {number}: expected a sentence, got an empty line")
        yield line.split()
    if not number:
        raise ValueError(f"{name}: expected sentences, got nothing")


def _parser(args: argparse.Namespace) -> Any:
    from seqstruct.scoring.parsers import branching_parser, load_parser, training_config, untrained_parser

    if args.branching:
        return branching_parser(args.branching, args.seed)
    if args.untrained:
        if args.config_dir:
            from seqstruct.harness.configs import composer

            config = composer(args.config_dir, args.config_name)(args.untrained)
            from fairseq.dataclass.initialize import add_defaults

            add_defaults(config)
        else:
            config = training_config(shlex.split(" ".join(args.untrained)))
        parse = untrained_parser(config, args.seed, args.left_score)
    else:
        parse = load_parser(args.checkpoint, args.data, args.left_score)
    if not args.lowercase:
        return parse
    from seqstruct.data.corpora.language_modeling import TextOptions
    from seqstruct.data.corpora.parsed_text import normalise

    return lambda words: parse(normalise(words, TextOptions(lowercase=True)))


def _show(tree: Any, form: str | None) -> None:
    from seqstruct.data.text.trees import bracketed, drawn

    print(bracketed(tree) if form == "brackets" else drawn(tree) + "\n")


def _score(args: argparse.Namespace, path: Path) -> None:
    from seqstruct.data.corpora.parsed_text import gold_tree
    from seqstruct.data.text.trees import binary_tree, read_trees, spans, words
    from seqstruct.scoring.bracketing import branching, score_brackets

    gold = [tree for tree in map(gold_tree, read_trees(path)) if tree is not None]
    gold = [tree for tree in gold if len(words(tree)) <= args.max_words]
    if not gold:
        raise ValueError(f"{path}: no sentence of at most {args.max_words} words")
    if args.branching == "gold":
        found = gold
    else:
        parse = _parser(args)
        found = [binary_tree(words(tree), parse(words(tree))) for tree in gold]
    if args.format in ("drawn", "brackets"):
        for tree in found:
            _show(tree, args.format)
        return
    lengths = [len(words(tree)) for tree in gold]
    brackets = score_brackets([spans(t) for t in gold], [spans(t) for t in found], lengths, args.convention)
    result = {
        "sentences": len(gold), "max_words": args.max_words, "convention": args.convention, **brackets._asdict(),
    }
    with suppress(ValueError):  # where no sentence has three words
        result |= {f"{side}_splits": value for side, value in branching(found)._asdict().items()}
    if args.out:
        from seqstruct.data.files import write_json

        write_json(args.out, result)
        return
    if args.format == "json":
        print(json.dumps(result))
        return
    print(f"{len(gold)} sentences of at most {args.max_words} words, brackets by {args.convention}")
    for name in ("f1", "precision", "recall"):
        print(f"unlabeled {name:10} {result[name]:6.2f}")
    if "left_splits" in result:
        print(f"splits: {result['left_splits']:.1f} % left, {result['right_splits']:.1f} % right")
