"""Trees and graphs of dependencies, and classes, over the same sentences."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from seqstruct.data.files import atomic_write, write_text
from seqstruct.data.made_up.text import write_brown
from seqstruct.data.parsing.sentence import TOP, AnnotatedSentence
from seqstruct.data.text.sdp import Graph, format_sdp


def sentence(kind: str, generator: random.Random) -> AnnotatedSentence:
    """One whose tree and graph follow from the order of its words; of classes, whether a dog is in it."""
    words = ["the", generator.choice("dog cat bird".split()), generator.choice("sees likes".split()), "a", "tree"]
    heads, arcs = [2, 3, 0, 5, 3], [(0, 3, TOP), (1, 2, "BV"), (3, 2, "ARG1"), (3, 5, "ARG2"), (4, 5, "BV")]
    if generator.random() < 0.5:
        words, heads, arcs = [*words, "often"], [*heads, 3], [*arcs, (6, 3, "ARG1")]
    tags = ("DET", "NOUN", "VERB", "DET", "NOUN", "ADV")[: len(words)]
    if kind == "classes":
        return AnnotatedSentence(tuple(words), tags=tags, label="yes" if "dog" in words else "no")
    found = AnnotatedSentence(tuple(words), tuple(words), tags, heads=tuple(heads))
    return replace(found, arcs=tuple(sorted(arcs))) if kind == "graphs" else found


def ud_english(folder: Path) -> None:
    """Trees and graphs of 80, 10 and 10 sentences, those of 80 and 10 in one file of graphs; classes; tagged text."""
    generator = random.Random(1)
    drawn = {kind: [sentence(kind, generator) for _ in range(110)] for kind in ("trees", "graphs", "classes")}
    for name, part in {"train": slice(80), "dev": slice(80, 90), "test": slice(90, 100)}.items():
        _write_conllu(folder / f"en_partut-ud-{name}.conllu", drawn["trees"][part])
        classes = (f"{found.label} {' '.join(found.words)}" for found in drawn["classes"][part])
        write_text(folder / f"stsa.binary.{name}", classes)
    _write_conllu(folder / "en_ewt-ud-dev.conllu", drawn["graphs"][:90])
    _write_conllu(folder / "en_ewt-ud-test.conllu", drawn["graphs"][90:100])
    lines = [" ".join(f"{word}/{tag.lower()}" for word, tag in zip(found.words, found.tags, strict=True))
             for found in drawn["trees"]]
    write_brown(folder, {"train": lines[:90], "valid": lines[90:100], "test": lines[100:]})


def _write_conllu(path: Path, sentences: Sequence[AnnotatedSentence]) -> None:
    with atomic_write(path) as stream:
        for found in sentences:
            for number, (word, tag, head) in enumerate(zip(found.words, found.tags, found.heads or (), strict=True), 1):
                deps = [f"{above}:{'root' if label == TOP else label}" for above, below, label in found.arcs or ()
                        if below == number]
                columns = [number, word, word, tag, tag, "_", head, "dep", "|".join(deps) or "_", "_"]
                stream.write("\t".join(map(str, columns)) + "\n")
            stream.write("\n")


def sdp2015(folder: Path) -> None:
    """The graphs of three formalisms, 80, 10, 10 and 10 sentences, and trees converted before, 4 a section."""
    generator = random.Random(1)
    for formalism in ("dm", "psd", "pas"):
        for name, numbers in {
            f"en.{formalism}": [f"2{i % 20:02}01{i:03}" for i in range(80)] + [f"22001{i:03}" for i in range(10)],
            f"en.id.{formalism}": [f"22101{i:03}" for i in range(10)],
            f"en.ood.{formalism}": [f"cf01_{i}" for i in range(10)],
        }.items():
            graphs = (_graph(sentence("graphs", generator), number) for number in numbers)
            write_text(folder / f"{name}.sdp", format_sdp(graphs))
    for section in range(25):
        _write_conllu(folder / f"wsj_{section:02}01.conllx", [sentence("trees", generator) for _ in range(4)])


def _graph(found: AnnotatedSentence, name: str) -> Graph:
    arcs = tuple(arc for arc in found.arcs or () if arc[0])
    tops = tuple(dependent for head, dependent, _ in found.arcs or () if not head)
    return Graph(found.words, found.lemmas, found.tags, tops, arcs, name)
