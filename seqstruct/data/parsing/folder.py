"""Trees (CoNLL-U), graphs (CoNLL-U's enhanced ones, or SDP 2015) and classified sentences, for parsers.

The folder has CORPUS/SPLIT.jsonl, dictionaries with counts, and corpora.json that describes them.  Trees without lemmas
and graphs without trees take them of one another, as `shared_text.lend` says.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from seqstruct.data import own
from seqstruct.data.arguments import add_numbers, at_least
from seqstruct.data.files import existing, new_folder, read_json, sha256, verify, write_json, write_text
from seqstruct.data.parsing.sentence import (
    TOP,
    Annotated,
    AnnotatedSentence,
    changed,
    crossing_arc,
    graph_of,
    graph_of_sdp,
    lift,
    tree_of,
)
from seqstruct.data.text.aligned import read_lines
from seqstruct.data.text.binarise import RESERVED
from seqstruct.data.text.conllu import read_conllu
from seqstruct.data.text.sdp import read_sdp

META = "corpora.json"
SPLITS = ("train", "valid", "test", "ood")  # the last one out of domain
NON_PROJECTIVE = ("drop", "lift", "keep")
FIELDS = ("words", "lemmas", "tags")
DICTIONARIES = tuple(f"dict.{field}.txt" for field in FIELDS)


@dataclass(frozen=True)
class ParsingOptions:
    """What becomes of sentences and words of training, as `add_arguments` says; of lifting see `sentence.lift`."""

    max_length: int = 120
    non_projective: str = "drop"
    min_count: int = 1

    def __post_init__(self) -> None:
        at_least(self, max_length=1, min_count=1)


def write_folder(
    corpora: Mapping[str, Annotated], folder: str | os.PathLike, options: ParsingOptions | None = None
) -> dict:
    """Write the folder; its description, as in corpora.json, comes back.

    corpora: by name; a graph corpus for each formalism.  Sentences without words are left out and counted.
    Raises ValueError if there is no corpus or no training sentence, a sentence lacks what its kind needs, or the folder
    is there and not empty.
    """
    options = options or ParsingOptions()
    if not corpora:
        raise ValueError("expected one corpus or more, got none")
    kept = {name: _kept(name, corpus, options) for name, corpus in corpora.items()}
    described = {}
    with new_folder(folder) as made:
        for name, (corpus, left_out) in kept.items():
            files = {}
            for split, sentences in corpus.splits.items():
                path = made / name / f"{split}.jsonl"
                filled = ({field: value for field, value in asdict(sentence).items()
                           if value or (field == "arcs" and value is not None)}
                          for sentence in sentences)
                write_text(path, (json.dumps(sentence, ensure_ascii=False) for sentence in filled))
                files[split] = {"sentences": len(sentences), "sha256": sha256(path)}
            described[name] = {"kind": corpus.kind, "files": files, "left_out": left_out, **_labels(corpus)}
        for field in FIELDS:
            entries = (
                entry_of(entry) for corpus, _ in kept.values() for sentence in corpus.splits["train"]
                for entry in getattr(sentence, field)
            )
            ordered = sorted(Counter(entries).items(), key=lambda pair: (-pair[1], pair[0]))  # as fairseq reads them
            least = 1 if field == "tags" else options.min_count
            lines = (f"{entry} {count}" for entry, count in ordered if count >= least and entry not in RESERVED)
            write_text(made / f"dict.{field}.txt", lines)
        checksums = {name: sha256(made / name) for name in DICTIONARIES}
        meta = {"version": 1, "options": asdict(options), "corpora": described, "sha256": checksums}
        write_json(made / META, meta, ensure_ascii=False)
    return meta


def _kept(name: str, corpus: Annotated, options: ParsingOptions) -> tuple[Annotated, dict[str, int]]:
    """The corpus as it is written, and how many sentences were left out or changed, by reason."""
    if not corpus.splits.get("train"):
        raise ValueError(f"{name}: expected training sentences, got none")
    counts: Counter[str] = Counter()
    splits: dict[str, list[AnnotatedSentence]] = {}
    for split, sentences in corpus.splits.items():
        if split not in SPLITS:
            raise ValueError(f"{name}: expected a split of {', '.join(SPLITS)}, got {split!r}")
        splits[split] = []
        for number, sentence in enumerate(sentences, 1):
            needed = {"trees": sentence.heads, "graphs": sentence.arcs, "classes": sentence.label}[corpus.kind]
            if needed is None:
                raise ValueError(f"{name}, {split}: sentence {number} has none of the {corpus.kind} asked for")
            if not sentence.words:
                counts["empty"] += 1
                continue
            if split == "train" and len(sentence.words) > options.max_length:
                counts["too long"] += 1
                continue
            if split == "train" and corpus.kind == "trees" and crossing_arc(sentence.heads or ()) is not None:
                counts[f"not projective: {options.non_projective}"] += 1
                if options.non_projective == "drop":
                    continue
                if options.non_projective == "lift":
                    sentence = replace(sentence, heads=lift(sentence.heads or ()))
            splits[split].append(sentence)
    if not splits["train"]:
        raise ValueError(f"{name}: no training sentence is left of {len(corpus.splits['train'])}: {dict(counts)}")
    return Annotated(corpus.kind, splits), dict(counts)


def _labels(corpus: Annotated) -> dict[str, list[str]]:
    """Labels of training, `TOP` first; of a graph also the deterministic ones, which no word has twice."""
    if corpus.kind == "classes":
        return {"labels": sorted({str(sentence.label) for sentence in corpus.splits["train"]})}
    if corpus.kind == "trees":
        return {}
    labels, twice = set(), set()
    for sentence in corpus.splits["train"]:
        times = Counter((head, label) for head, _, label in sentence.arcs or ())
        labels.update(label for _, label in times)
        twice.update(label for (_, label), count in times.items() if count > 1)
    ordered = [TOP, *sorted(labels - {TOP})]
    return {"labels": ordered, "deterministic": [label for label in ordered if label not in twice]}


def entry_of(word: str) -> str:
    """A word as its dictionary has it: without white space."""
    return "_".join(word.split()) or "_"


def read_meta(folder: str | os.PathLike) -> dict[str, Any]:
    """The description of a folder.

    Raises ValueError if it is not one of `seqstruct prepare parsing`, or a dictionary is missing or, where the folder
    has its checksum, altered.
    """
    path = Path(folder) / META
    if not path.is_file():
        raise ValueError(f"{folder}: no {META}: expected a folder made by `seqstruct prepare parsing`")
    meta = read_json(path)
    if meta.get("version") != 1:
        raise ValueError(f"{path}: expected version 1, got {meta.get('version')!r}")
    if "corpora" not in meta:
        raise ValueError(f"{path} is truncated or altered: no corpora")
    for name in DICTIONARIES:
        path = existing(Path(folder) / name)
        if "sha256" in meta:
            verify(path, meta["sha256"].get(name, "none"))
    return meta


def read_split(folder: str | os.PathLike, corpus: str, split: str, meta: Mapping[str, Any]) -> list[AnnotatedSentence]:
    """The sentences of one split.  Raises ValueError if the corpus has no such split or the file was altered."""
    described = meta["corpora"][corpus]["files"].get(split)
    if described is None:
        known = ", ".join(meta["corpora"][corpus]["files"])
        raise ValueError(f"{folder}: {corpus} has no split {split!r}; splits: {known}")
    path = Path(folder) / corpus / f"{split}.jsonl"
    verify(path, described["sha256"])
    with open(path, encoding="utf-8") as stream:
        return [_sentence(json.loads(line)) for line in stream]


def _sentence(fields: dict[str, Any]) -> AnnotatedSentence:
    arcs: Iterable = fields.pop("arcs", None)
    label = fields.pop("label", None)
    return AnnotatedSentence(
        **{name: tuple(values) for name, values in fields.items()},
        arcs=None if arcs is None else tuple((head, dependent, text) for head, dependent, text in arcs), label=label,
    )


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument("--trees", nargs="+", default=[], metavar="SPLIT=FILE",
                        help="a treebank in CoNLL-U; splits: train, valid, test, ood")
    parser.add_argument("--graphs", nargs="+", action="append", default=[], metavar=("NAME", "SPLIT=FILE"),
                        help="graphs: SDP (.sdp) or the enhanced graphs of CoNLL-U; once for each formalism")
    parser.add_argument("--classes", nargs="+", default=[], metavar="SPLIT=FILE",
                        help="a class, a space and words that are split already on each line")
    parser.add_argument("--tags", choices=("upos", "xpos"), default="upos", help="tags of CoNLL-U (default: upos)")
    parser.add_argument("--tagger", metavar="ZIP",
                        help="tag the words of all corpora anew, by a model of nltk's brown.zip; for corpora without")
    parser.add_argument("--coarse-labels", action="store_true",
                        help='cut the labels of enhanced graphs to the universal part: "nmod:of" becomes "nmod"')
    add_numbers(parser, {
        "--max-length": (120, "words of a training sentence; longer ones are left out and counted"),
        "--min-count": (1, "occurrences that a word needs for an entry of its own"),
    })
    parser.add_argument("--non-projective", choices=NON_PROJECTIVE, default="drop",
                        help="training trees with crossing arcs: leave out, make projective, or keep (default: drop)")
    own.add_arguments(parser, None, "")


def run(args: argparse.Namespace) -> None:
    from seqstruct.data.parsing.shared_text import lend
    from seqstruct.data.parsing.tagger import Tagger, read_brown

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
    own.check_shares(args, drawn)
    for name, corpus in corpora.items():
        if lacking(corpus):
            dealt = own.deal(corpus.splits, args, lacking(corpus))
            corpora[name] = Annotated(corpus.kind, {**corpus.splits, **dealt})
    corpora = lend(corpora)
    options = ParsingOptions(max_length=args.max_length, non_projective=args.non_projective, min_count=args.min_count)
    with new_folder(args.out) as folder:
        meta = write_folder(corpora, folder, options)
        counts = {f"{name} {split}": found["sentences"] for name, described in meta["corpora"].items()
                  for split, found in described["files"].items()}
        entries = [*args.trees, *(entry for _, *entries in args.graphs for entry in entries), *args.classes]
        files = [entry.partition("=")[2] for entry in entries]
        own.write_meta(folder, own.description(args, files, drawn), counts)
    report(args.out, meta)


def retagged(corpora: Mapping[str, Annotated], tagger: Any) -> dict[str, Annotated]:
    return changed(corpora, lambda _kind, _split, sentence: replace(sentence, tags=tuple(tagger.tag(sentence.words))))


def lacking(corpus: Annotated) -> list[str]:
    """What is drawn: sentences to validate, and to test if there is only training."""
    return [] if "valid" in corpus.splits or not corpus.splits.get("train") else [
        split for split in ("valid", "test") if split not in corpus.splits
    ]


def report(folder: str, meta: Mapping[str, Any]) -> None:
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
    if kind == "trees":
        return [tree_of(sentence, args.tags) for sentence in read_conllu(path)]
    if kind == "graphs":
        if path.removesuffix(".gz").endswith(".sdp"):
            return [graph_of_sdp(graph) for graph in read_sdp(path)]
        return [graph_of(sentence, args.tags, args.coarse_labels) for sentence in read_conllu(path)]
    return read_classes(path)


def read_classes(path: str | os.PathLike) -> list[AnnotatedSentence]:
    """Sentences of a file with a class, a space and words on each line.

    Raises ValueError, naming the line, if it has no words or is not UTF-8.
    """
    sentences = []
    for number, line in enumerate(read_lines(path), 1):
        label, *words = line.split() or [""]
        if not words:
            raise ValueError(f"{path}, line {number}: expected a class and words, got {line.strip()!r}")
        sentences.append(AnnotatedSentence(tuple(words), label=label))
    return sentences
