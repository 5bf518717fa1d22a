"""`seqstruct parse-dependencies`: dependency trees, by the parser of trees in a `joint_parser`'s checkpoint.

Inputs are CoNLL-U (.conllu, also .gz), whose own trees are not looked at, or text with one sentence a line and spaces
between words.  Each gives NAME.conllu in a new folder: the input's words, lemmas and tags with the predicted heads.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from seqstruct.command import add_data

if TYPE_CHECKING:
    from seqstruct.data.text.conllu import Token

EXTENSION = ".conllu"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("inputs", nargs="+", metavar="FILE", help="text or CoNLL-U")
    parser.add_argument("--checkpoint", required=True, metavar="PT", help="a joint_parser with a parser of trees")
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder to make; it must not exist or be empty")
    add_data(parser)
    parser.add_argument("--tags", choices=("upos", "xpos"), default="upos", help="tags of CoNLL-U (default: upos)")
    parser.add_argument("--tagger", metavar="ZIP",
                        help="tag the words anew, by a model of nltk's brown.zip: for parsers of a folder prepared so")


def run(args: argparse.Namespace) -> None:
    from seqstruct.data.files import atomic_write, new_folder
    from seqstruct.data.parsing.sentence import AnnotatedSentence
    from seqstruct.data.parsing.tagger import Tagger, read_brown
    from seqstruct.data.text.conllu import format_conllu
    from seqstruct.scoring.parsers import load_dependency_parser

    names = [_name(path) for path in args.inputs]
    if len(set(names)) < len(names):
        raise ValueError(f"expected files of different names, got {', '.join(args.inputs)}")
    texts = {name: list(_read(path)) for name, path in zip(names, args.inputs, strict=True)}
    for path, text in zip(args.inputs, texts.values(), strict=True):
        if not text:
            raise ValueError(f"{path}: expected sentences, found none")
    parse = load_dependency_parser(args.checkpoint, args.data)
    if args.tagger:
        tagger = Tagger(read_brown(args.tagger))
        texts = {name: [_retagged(tokens, tagger.tag, args.tags) for tokens in text] for name, text in texts.items()}
    with new_folder(args.out) as folder:
        for name, text in texts.items():
            trees = parse([AnnotatedSentence(*_columns(tokens, args.tags)) for tokens in text])
            with atomic_write(folder / name) as stream:
                stream.writelines(format_conllu(tokens, heads) for tokens, heads in zip(text, trees, strict=True))
    for name, text in texts.items():
        print(f"{Path(args.out) / name}: {len(text)} trees")


def _name(path: str) -> str:
    name = Path(path.removesuffix(".gz")).name
    return name if name.endswith(EXTENSION) else name.removesuffix(".txt") + EXTENSION


def _read(path: str) -> Iterable[list[Token]]:
    """The words of each sentence.  Raises ValueError, naming the line, if there is none in it."""
    from seqstruct.cli.parse import sentences_of
    from seqstruct.data.text.aligned import read_lines
    from seqstruct.data.text.conllu import Token, read_conllu

    if path.removesuffix(".gz").endswith(EXTENSION):
        yield from (list(sentence.tokens) for sentence in read_conllu(path))
    else:
        for words in sentences_of(read_lines(path), path):
            yield [Token(word, "_", "_", "_", None) for word in words]


def _retagged(tokens: list[Token], tag: Callable[[Sequence[str]], list[str]], column: str) -> list[Token]:
    tags = tag([token.form for token in tokens])
    return [replace(token, **{column: found}) for token, found in zip(tokens, tags, strict=True)]


def _columns(tokens: list[Token], tags: str) -> Iterable[tuple[str, ...]]:
    """Words, lemmas and tags; nothing of a column that is "_" in all lines."""
    for column in ("form", "lemma", tags):
        found = tuple(getattr(token, column) for token in tokens)
        yield () if column != "form" and set(found) == {"_"} else found
