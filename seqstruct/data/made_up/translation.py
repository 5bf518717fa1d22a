"""Aligned sentences about animals and things."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from seqstruct.data.corpora import iwslt, wmt
from seqstruct.data.corpora import kftt as kyoto
from seqstruct.data.corpora.translation import Variants
from seqstruct.data.files import atomic_write, write_text
from seqstruct.data.text.aligned import read_pairs

SIZES = {"train": 400, "valid": 40, "test": 20}
DOCUMENT = 10  # sentences
HELD_OUT = ("news", "TED", "tst", "kyoto-dev", "kyoto-test")  # beginnings of the names of what is not to train on


def made_up_pairs(count: int, generator: random.Random) -> list[tuple[str, str]]:
    """German and English sentences about animals and things, whose word order differs ("hat ... gesehen", "has seen").

    generator: decides all; the same state gives the same sentences.
    """
    things = [("Hund", "dog"), ("Vogel", "bird"), ("Ball", "ball"), ("Baum", "tree"), ("Tisch", "table")]
    colours = [("roten", "red"), ("kleinen", "small"), ("alten", "old"), ("neuen", "new")]
    verbs = [("gesehen", "seen"), ("gefunden", "found"), ("gesucht", "looked for"), ("gemalt", "painted")]
    pairs = []
    for _ in range(count):
        subject, seen = generator.choice(things), generator.choice(things)
        colour, verb = generator.choice(colours), generator.choice(verbs)
        pairs.append((
            f"Der {subject[0]} hat den {colour[0]} {seen[0]} {verb[0]}.",
            f"The {subject[1]} has {verb[1]} the {colour[1]} {seen[1]}.",
        ))
    return pairs


def write_pairs(folder: Path, names: dict[str, str]) -> None:
    """NAME.de and NAME.en of each split, drawn one after another."""
    generator = random.Random(1)
    for split, name in names.items():
        pairs = made_up_pairs(SIZES[split], generator)
        for side, language in enumerate(("de", "en")):
            write_text(folder / f"{name}.{language}", (pair[side] for pair in pairs))


multi30k = partial(write_pairs, names={"train": "train", "valid": "val", "test": "test_2016_flickr"})
europarl = partial(write_pairs, names={"train": "europarl-v7.de-en", "valid": "newstest2016", "test": "newstest2017"})


def phrase_table(folder: Path) -> None:
    """`multi30k`, and a phrase table of the first words of its sentences, in order and turned, one line malformed."""
    multi30k(folder)
    pairs = read_pairs(folder / "train.en", folder / "train.de")
    with atomic_write(folder / "phrase-table") as stream:
        for source, target in sorted({(" ".join(s.split()[:2]), " ".join(t.split()[:2])) for s, t in pairs}):
            for more in (" !" * n for n in range(4)):
                stream.write(f"{source}{more} ||| {target}{more} ||| 1 0.5 0.75 0.25 ||| 0-0 1-1 ||| 3 4 3\n")
                turned = " ".join(reversed(target.split()))
                stream.write(f"{source}{more} ||| {turned}{more} ||| 1 0.5 0.25 0.25 ||| 0-1 1-0 ||| 1 4 1\n")
        stream.write("no phrase pair\n")


def aspec(folder: Path) -> None:
    """ASPEC-JE's files, with German for Japanese."""
    generator = random.Random(1)
    for split, names in {"train": [f"train-{n}" for n in (1, 2, 3)], "dev": ["dev"], "test": ["test"]}.items():
        for name in names:
            with atomic_write(folder / split / f"{name}.txt") as stream:
                for number, pair in enumerate(made_up_pairs(120 if split == "train" else 20, generator), 1):
                    fields = ["0.9"] * (split == "train") + ["D", str(number), *pair]
                    stream.write(" ||| ".join(fields) + "\n")


def wanted(variants: Variants, folder: Path) -> None:
    """What the corpora look for, in German and English whatever their languages."""
    for key, (file, *_) in chain.from_iterable(corpus.wanted.items() for corpus in variants.corpora.values()):
        base, _, language = key.rpartition(".")
        pairs = made_up_pairs(SIZES["valid" if base.startswith(HELD_OUT) else "train"], random.Random(base))
        lines = [pair[language == "en"] for pair in pairs]
        write_text(folder / file, _as_file(file, lines))


# talks of iwslt14_documents have ten sentences
wmt14, wmt16, iwslt14, iwslt14_documents, iwslt15, kftt = (
    partial(wanted, variants) for module in (wmt, iwslt, kyoto) for variants in module.VARIANTS.values()
)


def _as_file(file: str, lines: Sequence[str]) -> Iterator[str]:
    """Segments of .xml files and the tags of training talks, in documents; else the lines alone."""
    for number, line in enumerate(lines):
        begins = number % DOCUMENT == 0
        if file.endswith(".xml"):
            yield ("<doc>" if begins else "") + f"<seg>{line}</seg>"
        else:
            if begins and ".tags." in file:
                yield "<url>x</url>"
            yield line
