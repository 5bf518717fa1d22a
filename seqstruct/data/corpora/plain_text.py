"""Plain text of your own for language models: one sentence, or one paragraph, a line; words stand apart by spaces.

The folder holds text/SPLIT.txt and bin/, for fairseq's task language_modeling and for stream_language_modeling.  Where
a split is missing lines are drawn.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict

from seqstruct.data import own
from seqstruct.data.corpora import language_modeling as corpora
from seqstruct.data.files import new_folder
from seqstruct.data.text.aligned import read_lines


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    own.add_arguments(parser, "FILE", "text, one sentence or paragraph a line")
    corpora.add_text_arguments(parser, corpora.TextOptions())


def run(args: argparse.Namespace) -> None:
    (given, drawn), options = own.given_and_missing(args), corpora.chosen(args, corpora.TextOptions())
    lines = {split: [" ".join(line.split()) for line in read_lines(path)] for split, path in given.items()}
    for split, path in given.items():
        if not any(lines[split]):
            raise ValueError(f"{path}: the file is empty")
    texts = own.deal(lines, args)
    with new_folder(args.out) as folder:
        counts = corpora.write(folder, texts, options, subwords=bool(args.subwords))
        words = {split: found["words"] for split, found in counts.items()}
        about = {**own.description(args, list(given.values()), drawn), "options": asdict(options)}
        own.write_meta(folder, about, words)
    corpora.report(counts)
