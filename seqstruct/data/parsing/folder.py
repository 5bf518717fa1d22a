"""A folder of annotated corpora: CORPUS/SPLIT.jsonl, dictionaries with counts, and corpora.json that describes them."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seqstruct.data.files import atomic_write, new_folder, sha256, verify
from seqstruct.data.parsing.sentence import TOP, AnnotatedSentence, crossing_arc, lift

META = "corpora.json"
KINDS = ("trees", "graphs", "classes")
SPLITS = ("train", "valid", "test", "ood")  # the last one out of domain
NON_PROJECTIVE = ("drop", "lift", "keep")
FIELDS = ("words", "lemmas", "tags")


@dataclass(frozen=True)
class Annotated:
    """kind: of KINDS.  splits: train, and whatever else there is, each a list of sentences."""

    kind: str
    splits: Mapping[str, Sequence[AnnotatedSentence]]


@dataclass(frozen=True)
class ParsingOptions:
    """max_length: words of a training sentence; longer ones are left out and counted.  non_projective: what becomes of
    a training tree with crossing arcs: drop, lift (see `sentence.lift`) or keep.  min_count: occurrences in training
    that a word or lemma needs for an entry of its own.
    """

    max_length: int = 120
    non_projective: str = "drop"
    min_count: int = 1

    def __post_init__(self) -> None:
        if self.non_projective not in NON_PROJECTIVE:
            expected = ", ".join(NON_PROJECTIVE)
            raise ValueError(f"non_projective: expected one of {expected}, got {self.non_projective!r}")
        for name in ("max_length", "min_count"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: expected 1 or more, got {getattr(self, name)}")


def write_folder(
    corpora: Mapping[str, Annotated], folder: str | os.PathLike, options: ParsingOptions | None = None
) -> dict:
    """Write the folder; its description, as in corpora.json, comes back.

    corpora: by name; a graph corpus for each formalism.  Sentences without words are left out and counted.
    Raises ValueError if there is no corpus or no training sentence, a kind is unknown, a sentence lacks what its kind
    needs, or the folder is there and not empty.
    """
    options = options or ParsingOptions()
    if not corpora:
        raise ValueError("expected one corpus or more, got none")
    kept = {name: _kept(name, corpus, options) for name, corpus in corpora.items()}
    with new_folder(folder) as made:
        return _write(kept, made, options)


def _write(kept: Mapping[str, tuple[Annotated, dict[str, int]]], folder: Path, options: ParsingOptions) -> dict:
    described = {}
    for name, (corpus, left_out) in kept.items():
        files = {}
        for split, sentences in corpus.splits.items():
            path = folder / name / f"{split}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as stream:
                for sentence in sentences:
                    filled = {field: value for field, value in asdict(sentence).items() if value not in (None, ())}
                    stream.write(json.dumps(filled, ensure_ascii=False) + "\n")
            files[split] = {"sentences": len(sentences), "sha256": sha256(path)}
        described[name] = {"kind": corpus.kind, "files": files, "left_out": left_out, **_labels(corpus)}
    for field in FIELDS:
        counts: Counter[str] = Counter()
        for corpus, _ in kept.values():
            for sentence in corpus.splits["train"]:
                counts.update(getattr(sentence, field))
        _write_dictionary(folder / f"dict.{field}.txt", counts, 1 if field == "tags" else options.min_count)
    meta = {"version": 1, "options": asdict(options), "corpora": described}
    with atomic_write(folder / META) as stream:
        json.dump(meta, stream, indent=1, ensure_ascii=False)
        stream.write("\n")
    return meta


def _kept(name: str, corpus: Annotated, options: ParsingOptions) -> tuple[Annotated, dict[str, int]]:
    """The corpus as it is written, and how many sentences were left out or changed, by reason."""
    if corpus.kind not in KINDS:
        raise ValueError(f"{name}: expected a kind of {', '.join(KINDS)}, got {corpus.kind!r}")
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
                    sentence = AnnotatedSentence(**{**asdict(sentence), "heads": lift(sentence.heads or ())})
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


def _write_dictionary(path: Path, counts: Counter[str], min_count: int) -> None:
    """Entries and counts as fairseq reads them, the most frequent first; spaces inside an entry become "_"."""
    with atomic_write(path) as stream:
        merged: Counter[str] = Counter()
        for entry, count in counts.items():
            merged[entry_of(entry)] += count
        for entry, count in sorted(merged.items(), key=lambda pair: (-pair[1], pair[0])):
            if count >= min_count:
                stream.write(f"{entry} {count}\n")


def entry_of(word: str) -> str:
    """A word as its dictionary has it: without white space."""
    return "_".join(word.split()) or "_"


def read_meta(folder: str | os.PathLike) -> dict[str, Any]:
    """The description of a folder.  Raises ValueError if it is not one of `seqstruct prepare parsing`."""
    path = Path(folder) / META
    if not path.is_file():
        raise ValueError(f"{folder}: no {META}: expected a folder made by `seqstruct prepare parsing`")
    meta = json.loads(path.read_text(encoding="utf-8"))
    if meta.get("version") != 1:
        raise ValueError(f"{path}: expected version 1, got {meta.get('version')!r}")
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
    )  # fmt: skip
