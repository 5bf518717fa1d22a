"""Natural language inference: SNLI (Bowman et al. 2015) or RTE 1 to 3, with word vectors and, if there are any, parses.

Pairs on which the annotators of SNLI did not agree (label "-") are skipped and counted.  RTE comes from nltk's rte.zip,
which --from names.  SNLI is 95 MB, GloVe (Pennington et al. 2014, public domain) 2.1 GB.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from seqstruct.data.downloads import Remote, collect, raw_folder

SNLI = Remote("https://nlp.stanford.edu/projects/snli/snli_1.0.zip")
GLOVE = Remote("https://nlp.stanford.edu/data/glove.840B.300d.zip")
VECTORS = "glove.840B.300d.txt"
MANUAL = {
    "snli": "the archives are linked from https://nlp.stanford.edu/projects/snli/ and .../glove/; name their folder by "
            "--from, or give --vectors FILE or --no-vectors",
    "rte": "name a folder with rte.zip of nltk's data",
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument("--corpus", choices=("snli", "rte"), default="snli", help="which (default %(default)s)")
    parser.add_argument("--vectors", metavar="FILE", help=f"word vectors in text form (default, of snli: {VECTORS})")
    parser.add_argument("--no-vectors", action="store_true", help="no word vectors: the model draws and trains its own")
    parser.add_argument("--heads", metavar="DIR", help="parses of an external parser, SPLIT.premise.conllu and "
                        "SPLIT.hypothesis.conllu, for hard_parents (`seqstruct parse-dependencies` writes such)")
    parser.add_argument("--lowercase", action="store_true", help="lowercase all words")


def run(args: argparse.Namespace) -> None:
    from seqstruct.data.nli.folder import CORPORA, read_corpus, write_pairs

    if args.vectors and not Path(args.vectors).is_file():
        raise ValueError(f"{args.vectors} is not a file")
    snli = args.corpus == "snli"
    glove = snli and not (args.vectors or args.no_vectors)
    manual = MANUAL[args.corpus]
    remotes = [SNLI, *[GLOVE] * glove] if snli else []
    raw = raw_folder(args, remotes, manual)
    names = {split: f"snli_1.0_{split}.jsonl" for split in ("train", "dev", "test")} if snli else {"train": "rte.zip"}
    wanted = {split: [name] for split, name in names.items()}
    with TemporaryDirectory() as scratch:
        files = collect(raw, wanted | ({"vectors": [VECTORS]} if glove else {}), scratch, manual)
        meta = write_pairs(
            read_corpus(args.corpus, files["train"].parent), CORPORA[args.corpus], args.out, {"corpus": args.corpus},
            heads=args.heads, lowercase=args.lowercase, vectors=files["vectors"] if glove else args.vectors,
        )  # fmt: skip
    counts = ", ".join(
        f"{count} {split} pairs ({meta['skipped'][split]} without a label skipped)"
        for split, count in meta["pairs"].items()
    )
    print(f"{args.corpus}: {counts}, {meta['words']} words")
