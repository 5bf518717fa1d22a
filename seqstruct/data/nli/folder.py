"""Natural language inference: SNLI (Bowman et al. 2015) or RTE 1 to 3, with word vectors and, if there are any, parses.

    snli    snli_1.0_{train,dev,test}.jsonl, 95 MB; pairs on which the annotators did not agree (label "-") are skipped
            and counted; GloVe (Pennington et al. 2014, public domain) is 2.1 GB
    rte     rte.zip of nltk, which --from names: RTE 1, 2 and 3; the development sets train, the last tenth of each
            validates, the test sets test

A folder holds SPLIT.jsonl (train, valid, test: premise, hypothesis, label and, where parses were given, heads),
vocabulary.txt, nli.json (labels, counts, how many pairs were skipped) and, if word vectors were given, vectors.npy, a
row for each word.  Heads come from CoNLL-U files SPLIT.premise.conllu and SPLIT.hypothesis.conllu with a tree for each
pair of the split in order.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from seqstruct.data.checked import SPLITS, check_counts
from seqstruct.data.downloads import Remote, collect, raw_folder
from seqstruct.data.files import existing, new_folder, read_json, scratch_beside, write_json, write_text
from seqstruct.data.nli.read import RTE_LABELS, SNLI_LABELS, Pairs, SentencePair, read_rte, read_snli
from seqstruct.data.text.aligned import read_lines
from seqstruct.data.text.conllu import read_conllu
from seqstruct.data.text.word_vectors import read_vectors, vectors_with_hashing

CORPORA = {"snli": SNLI_LABELS, "rte": RTE_LABELS}
VOCABULARY, META, VECTORS = "vocabulary.txt", "nli.json", "vectors.npy"
SNLI = Remote("https://nlp.stanford.edu/projects/snli/snli_1.0.zip",
              "afb3d70a5af5d8de0d9d81e2637e0fb8c22d1235c2749d83125ca43dab0dbd3e")
GLOVE = Remote("https://nlp.stanford.edu/data/glove.840B.300d.zip",
               "c06db255e65095393609f19a4cfca20bf3a71e20cc53e892aafa490347e3849f")
COUNTS = {"snli": {"train": 550_152, "valid": 10_000, "test": 10_000}, "rte": {}}  # with those without a label
GLOVE_TEXT = "glove.840B.300d.txt"
MANUAL = {
    "snli": "the archives are linked from https://nlp.stanford.edu/projects/snli/ and .../glove/; name their folder by "
            "--from, or give --vectors FILE or --no-vectors",
    "rte": "name a folder with rte.zip of nltk's data",
}


def read_corpus(corpus: str, source: str | os.PathLike) -> dict[str, Pairs]:
    """The pairs of each split of one of `CORPORA`.  Raises ValueError as the readers do."""
    if corpus == "snli":
        names = {"train": "train", "valid": "dev", "test": "test"}
        files = {split: existing(Path(source) / f"snli_1.0_{name}.jsonl") for split, name in names.items()}
        return {split: read_snli(path) for split, path in files.items()}
    archive = existing(Path(source) / "rte.zip")
    found = {split: Pairs([], 0) for split in SPLITS}
    for challenge in (1, 2, 3):
        pairs = read_rte(archive, f"rte/rte{challenge}_dev.xml").pairs
        held = len(pairs) - len(pairs) // 10
        found["train"].pairs.extend(pairs[:held])
        found["valid"].pairs.extend(pairs[held:])
        found["test"].pairs.extend(read_rte(archive, f"rte/rte{challenge}_test.xml").pairs)
    return found


def with_heads(pairs: Sequence[SentencePair], folder: str | os.PathLike, split: str) -> list[SentencePair]:
    """The pairs with the heads of an external parser.

    Raises ValueError naming the file where its words are not those of the pair, or sentences are missing or left.
    """
    sides = []
    for number, side in enumerate(("premise", "hypothesis")):
        path = Path(folder) / f"{split}.{side}.conllu"
        heads = []
        for sentence in read_conllu(path):
            pair = pairs[len(heads)] if len(heads) < len(pairs) else None
            words = None if pair is None else (pair.premise, pair.hypothesis)[number]
            if words != tuple(token.form for token in sentence.tokens):
                expected = "no further sentence" if words is None else " ".join(words)
                raise ValueError(f"{path}: line {sentence.line}: expected {expected!r}")
            heads.append(sentence.heads)
        if len(heads) != len(pairs):
            raise ValueError(f"{path}: expected {len(pairs)} sentences, found {len(heads)}")
        sides.append(heads)
    return [replace(pair, heads=found) for pair, *found in zip(pairs, *sides, strict=True)]


def write_pairs(
    splits: Mapping[str, Pairs],
    labels: Sequence[str],
    out: str | os.PathLike,
    about: Mapping[str, Any],
    *,
    vectors: str | os.PathLike | None = None,
    heads: str | os.PathLike | None = None,
    lowercase: bool = False,
) -> dict:
    """Write a folder of pairs; the contents of nli.json come back.

    about: what else nli.json should tell.  vectors: a file as `read_vectors` reads; words that it does not have share
    100 Gaussian vectors.  heads: folder of CoNLL-U files.  lowercase: whether words are.
    Raises ValueError for what does not fit, or if `out` holds files already.
    """
    made: dict[str, list[SentencePair]] = {}
    for split, (pairs, _) in splits.items():
        made[split] = with_heads(pairs, heads, split) if heads is not None else list(pairs)
        if lowercase:
            made[split] = [replace(pair, premise=tuple(map(str.lower, pair.premise)),
                                   hypothesis=tuple(map(str.lower, pair.hypothesis))) for pair in made[split]]
    words = sorted({w for pairs in made.values() for pair in pairs for w in (*pair.premise, *pair.hypothesis)})
    known = None if vectors is None else read_vectors(vectors, words)
    meta = {
        **about, "labels": list(labels), "lowercase": lowercase,
        "pairs": {split: len(pairs) for split, pairs in made.items()},
        "skipped": {split: splits[split].skipped for split in splits},
        "words": len(words), "words_with_vector": None if known is None else len(known),
    }
    with new_folder(out) as beside:
        for split, pairs in made.items():
            write_text(beside / f"{split}.jsonl", map(_to_json, pairs))
        write_text(beside / VOCABULARY, words)
        if known is not None:
            if not known:
                raise ValueError(f"{vectors}: no word of the corpus has a vector")
            size = len(next(iter(known.values())))
            np.save(beside / VECTORS, vectors_with_hashing(words, known, size))
        write_json(beside / META, meta)
    return meta


def _to_json(pair: SentencePair) -> str:
    content = {"premise": pair.premise, "hypothesis": pair.hypothesis, "label": pair.label}
    if pair.heads is not None:
        content["heads"] = pair.heads
    return json.dumps(content, ensure_ascii=False)


def read_meta(folder: str | os.PathLike) -> dict:
    """The contents of nli.json.  Raises ValueError if it is missing or damaged."""
    path = Path(folder) / META
    try:
        meta = read_json(path)
        len(meta["labels"]), meta["lowercase"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: expected a folder made by data-prep/snli.sh: {error}") from None
    return meta


def read_split(
    folder: str | os.PathLike, split: str, labels: Sequence[str], vocabulary: Mapping[str, int]
) -> list[SentencePair]:
    """The pairs of a split.

    Raises ValueError, naming file and line, for a damaged line, a label outside the set, a word that the vocabulary
    does not have, or heads that are not as many as the words.
    """
    path = existing(Path(folder) / f"{split}.jsonl")
    pairs = []
    for number, line in enumerate(read_lines(path), 1):
        place = f"{path}: line {number}"
        try:
            entry = json.loads(line)
            heads = entry.get("heads")
            pair = SentencePair(tuple(entry["premise"]), tuple(entry["hypothesis"]), entry["label"],
                        None if heads is None else (tuple(heads[0]), tuple(heads[1])))
        except (json.JSONDecodeError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise ValueError(f"{place}: not a pair of sentences: {type(error).__name__}: {error}") from None
        if pair.label not in labels:
            raise ValueError(f"{place}: expected a label of {', '.join(labels)}, got {pair.label!r}")
        for side, words in enumerate((pair.premise, pair.hypothesis)):
            strange = next((word for word in words if word not in vocabulary), None)
            if strange is not None or not words:
                raise ValueError(f"{place}: the word {strange!r} is not in the vocabulary" if words
                                 else f"{place}: a sentence without words")
            if pair.heads is not None and len(pair.heads[side]) != len(words):
                raise ValueError(f"{place}: {len(pair.heads[side])} heads for {len(words)} words")
        pairs.append(pair)
    if not pairs:
        raise ValueError(f"{path}: expected pairs of sentences, found none")
    return pairs


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument("--corpus", choices=tuple(CORPORA), default="snli", help="which (default %(default)s)")
    given = parser.add_mutually_exclusive_group()
    given.add_argument("--vectors", metavar="FILE", help=f"word vectors in text form (default, of snli: {GLOVE_TEXT})")
    given.add_argument("--no-vectors", action="store_true", help="no word vectors: the model draws and trains its own")
    parser.add_argument("--heads", metavar="DIR", help="parses of an external parser, SPLIT.premise.conllu and "
                        "SPLIT.hypothesis.conllu, for hard_parents (`seqstruct parse-dependencies` writes such)")
    parser.add_argument("--lowercase", action="store_true", help="lowercase all words")


def run(args: argparse.Namespace) -> None:
    if args.vectors and not Path(args.vectors).is_file():
        raise ValueError(f"{args.vectors} is not a file")
    snli = args.corpus == "snli"
    glove = snli and not (args.vectors or args.no_vectors)
    manual = MANUAL[args.corpus]
    remotes = [SNLI, *[GLOVE] * glove] if snli else []
    raw = raw_folder(args, remotes, manual)
    names = {split: f"snli_1.0_{split}.jsonl" for split in ("train", "dev", "test")} if snli else {"train": "rte.zip"}
    wanted = {split: [name] for split, name in names.items()}
    with scratch_beside(args.out) as scratch:
        files = collect(raw, wanted | ({"vectors": [GLOVE_TEXT]} if glove else {}), scratch, manual)
        splits = read_corpus(args.corpus, files["train"].parent)
        if not args.unchecked:
            found = {split: len(pairs) + skipped for split, (pairs, skipped) in splits.items()}
            check_counts(args.corpus, found, COUNTS[args.corpus], "pairs")
        meta = write_pairs(
            splits, CORPORA[args.corpus], args.out, {"corpus": args.corpus}, heads=args.heads,
            lowercase=args.lowercase, vectors=files["vectors"] if glove else args.vectors,
        )
    counts = ", ".join(
        f"{count} {split} pairs ({meta['skipped'][split]} without a label skipped)"
        for split, count in meta["pairs"].items()
    )
    print(f"{args.corpus}: {counts}, {meta['words']} words")
