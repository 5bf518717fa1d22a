"""Free stand-ins for the corpora of Peng (2022, chapter 2), by parts.

    trees     Universal Dependencies' English ParTUT, all three files
    graphs    enhanced dependencies of English EWT, relations cut to the universal part: the development file, whose
              last sentences validate, and the test file
    classes   the Stanford sentiment treebank

--from names a folder that has them at any depth: en_partut-ud-{train,dev,test}.conllu, en_ewt-ud-{dev,test}.conllu of
github.com/UniversalDependencies, stsa.binary.{train,dev,test}, which `sst` downloads, and brown.zip of nltk.
"""

from __future__ import annotations

import argparse
from tempfile import TemporaryDirectory

from seqstruct.data.arguments import add_numbers
from seqstruct.data.downloads import collect, raw_folder
from seqstruct.data.parsing.folder import Annotated, ParsingOptions, read_classes, report, retagged, write_folder
from seqstruct.data.parsing.sentence import graph_of, tree_of
from seqstruct.data.text.conllu import read_conllu

MANUAL = "en_partut and en_ewt are of github.com/UniversalDependencies; name the folder of all files by --from"
FILES = {
    "trees": {name: f"en_partut-ud-{name}.conllu" for name in ("train", "dev", "test")},
    "graphs": {name: f"en_ewt-ud-{name}.conllu" for name in ("dev", "test")},
    "classes": {name: f"stsa.binary.{name}" for name in ("train", "dev", "test")},
    "tagger": {"all": "brown.zip"},
}
SPLITS = {"train": "train", "valid": "dev", "test": "test"}


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument("--parts", nargs="+", choices=("trees", "graphs", "classes"), default=["trees", "graphs"],
                        metavar="PART", help="trees, graphs, classes (default: trees graphs)")
    parser.add_argument("--held-out", type=int, metavar="N",
                        help="sentences of EWT's development file that validate (default: a tenth, 200 of 2,001)")
    parser.add_argument("--tagged", action="store_true", help="tag the words of all parts by a model of brown.zip")
    add_numbers(parser, {"--max-length": (60, "words of a training sentence; longer ones are left out")})


def run(args: argparse.Namespace) -> None:
    from seqstruct.data.parsing.tagger import Tagger, read_brown

    raw = raw_folder(args, manual=MANUAL)
    parts = [*args.parts, *["tagger"] * args.tagged]
    wanted = {f"{part} {name}": [file] for part in parts for name, file in FILES[part].items()}
    with TemporaryDirectory() as scratch:
        found = collect(raw, wanted, scratch, MANUAL)
        corpora = {}
        for part in args.parts:
            if part == "graphs":
                dev, test = ([graph_of(sentence, coarse=True) for sentence in read_conllu(found[f"graphs {name}"])]
                             for name in FILES["graphs"])
                held_out = len(dev) // 10 if args.held_out is None else args.held_out
                if not 0 < held_out < len(dev):
                    raise ValueError(f"--held-out: expected 1 to {len(dev) - 1}, got {held_out}")
                splits = {"train": dev[:-held_out], "valid": dev[-held_out:], "test": test}
            else:
                files = {split: found[f"{part} {name}"] for split, name in SPLITS.items()}
                splits = {split: read_classes(path) if part == "classes" else list(map(tree_of, read_conllu(path)))
                          for split, path in files.items()}
            corpora[part] = Annotated(part, splits)
        if args.tagged:
            corpora = retagged(corpora, Tagger(read_brown(found["tagger all"])))
    report(args.out, write_folder(corpora, args.out, ParsingOptions(max_length=args.max_length)))
