"""Trees (CoNLL-U), graphs (CoNLL-U's enhanced ones, or SDP 2015) and classified sentences, for parsers."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seqstruct.data import own
from seqstruct.data.files import new_folder

if TYPE_CHECKING:
    from seqstruct.data.parsing.folder import Annotated
    from seqstruct.data.parsing.sentence import AnnotatedSentence


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument("--trees", nargs="+", default=[], metavar="SPLIT=FILE",
                        help="a treebank in CoNLL-U; splits: train, valid, test, ood")
    parser.add_argument("--graphs", nargs="+", action="append", default=[], metavar=("NAME", "SPLIT=FILE"),
                        help="graphs: SDP (.sdp) or the enhanced graphs of CoNLL-U; once for each formalism")
    parser.add_argument("--classes", nargs="+", default=[], metavar="SPLIT=FILE",
                        help="a class, a space and words that are split already on each line; latin-1")
    parser.add_argument("--tags", choices=("upos", "xpos"), default="upos", help="tags of CoNLL-U (default: upos)")
    parser.add_argument("--tagger", metavar="ZIP",
                        help="tag the words of all corpora anew, by a model of nltk's brown.zip; for corpora without")
    parser.add_argument("--coarse-labels", action="store_true",
                        help='cut the labels of enhanced graphs to the universal part: "nmod:of" becomes "nmod"')
    parser.add_argument("--max-length", type=int, default=120, metavar="N",
                        help="words of a training sentence; longer ones are left out and counted (default: 120)")
    parser.add_argument("--non-projective", choices=("drop", "lift", "keep"), default="drop",
                        help="training trees with crossing arcs: leave out, make projective, or keep (default: drop)")
    own.add_arguments(parser, None, "")
    parser.add_argument("--min-count", type=int, default=1, metavar="N",
                        help="occurrences that a word needs for an entry of its own (default: 1)")


def run(args: argparse.Namespace) -> None:
    from seqstruct.data.parsing.folder import Annotated, ParsingOptions, write_folder
    from seqstruct.data.parsing.tagger import Tagger, read_brown, retagged

    corpora = {}
    if args.trees:
        corpora["trees"] = Annotated("trees", _splits("--trees", args.trees, "trees", args))
    for name, *files in args.graphs:
        if "=" in name or name in ("trees", "classes") or name in corpora:
            raise ValueError(f"--graphs: expected a name of its own before the files, got {name!r}")
        corpora[name] = Annotated("graphs", _splits(f"--graphs {name}", files, "graphs", args))
    if args.classes:
        corpora["classes"] = Annotated("classes", _splits("--classes", args.classes, "classes", args))
    if args.tagger:
        corpora = retagged(corpora, Tagger(read_brown(args.tagger)))
    drawn = sorted({split for corpus in corpora.values() for split in lacking(corpus)})
    for name, corpus in corpora.items():
        if lacking(corpus):
            dealt = own.deal(corpus.splits, args, lacking(corpus))
            corpora[name] = Annotated(corpus.kind, {**corpus.splits, **dealt})
    options = ParsingOptions(max_length=args.max_length, non_projective=args.non_projective, min_count=args.min_count)
    with new_folder(args.out) as folder:
        meta = write_folder(corpora, folder, options)
        counts = {f"{name} {split}": found["sentences"] for name, described in meta["corpora"].items()
                  for split, found in described["files"].items()}  # fmt: skip
        entries = [*args.trees, *(entry for _, *entries in args.graphs for entry in entries), *args.classes]
        files = [entry.partition("=")[2] for entry in entries]
        own.write_meta(folder, own.description(args, files, drawn), counts)
    report(args.out, meta)


def lacking(corpus: Annotated) -> list[str]:
    """What is drawn: sentences to validate, and to test if there is only training."""
    return [] if "valid" in corpus.splits or not corpus.splits.get("train") else [
        split for split in ("valid", "test") if split not in corpus.splits
    ]


def report(folder: str, meta: Mapping[str, Any]) -> None:
    """Print what a folder holds, by its description."""
    for name, described in meta["corpora"].items():
        counts = ", ".join(f"{split} {found['sentences']}" for split, found in described["files"].items())
        left = "; ".join(f"{reason}: {count}" for reason, count in described["left_out"].items())
        print(f"{folder}: {name} ({described['kind']}): {counts}" + (f"; {left}" if left else ""))


def _splits(
    option: str, files: Sequence[str], kind: str, args: argparse.Namespace
) -> dict[str, list[AnnotatedSentence]]:
    found: dict[str, list[AnnotatedSentence]] = {}
    for entry in files:
        split, equals, path = entry.partition("=")
        if not equals:
            raise ValueError(f"{option}: expected SPLIT=FILE, got {entry!r}")
        found.setdefault(split, []).extend(_read(path, kind, args))
    return found


def _read(path: str, kind: str, args: argparse.Namespace) -> list[AnnotatedSentence]:
    from seqstruct.data.parsing.sentence import graph_of, graph_of_sdp, tree_of
    from seqstruct.data.text.conllu import read_conllu
    from seqstruct.data.text.sdp import read_sdp

    if kind == "trees":
        return [tree_of(sentence, args.tags) for sentence in read_conllu(path)]
    if kind == "graphs":
        if path.removesuffix(".gz").endswith(".sdp"):
            return [graph_of_sdp(graph) for graph in read_sdp(path)]
        return [graph_of(sentence, args.tags, args.coarse_labels) for sentence in read_conllu(path)]
    return read_classes(path)


def read_classes(path: str | os.PathLike) -> list[AnnotatedSentence]:
    """Sentences of a file with a class, a space and words on each line; latin-1.

    Raises ValueError, naming the line, if it has no words.
    """
    from seqstruct.data.parsing.sentence import AnnotatedSentence

    sentences = []
    with open(path, encoding="latin-1") as stream:
        for number, line in enumerate(stream, 1):
            label, *words = line.split()
            if not words:
                raise ValueError(f"{path}, line {number}: expected a class and words, got {line.strip()!r}")
            sentences.append(AnnotatedSentence(tuple(words), label=label))
    return sentences
