"""Pairs of sentences."""

from __future__ import annotations

import json
import random
import zipfile
from pathlib import Path

import numpy as np

from seqstruct.data.files import atomic_write

NAMES = ("Ann", "Bob", "Eve", "Tom")


def rte(folder: Path) -> None:
    """An archive under the name of RTE, with pairs about who met whom, and a treebank of two sentences."""
    generator = random.Random(1)
    with atomic_write(folder / "rte.zip", "wb") as stream, zipfile.ZipFile(stream, "w") as archive:
        for challenge in (1, 2, 3):
            for split, count in (("dev", 40), ("test", 10)):
                pairs = []
                for number in range(count):
                    first, second = generator.sample(NAMES, 2)
                    same = generator.random() < 0.5
                    one, other = (first, second) if same else (second, first)
                    pairs.append(
                        f'<pair id="{number}" value="{"TRUE" if same else "FALSE"}">'
                        f"<t>{first} has seen {second} today.</t><h>{one} saw {other}</h></pair>"
                    )
                text = f"<entailment-corpus>{''.join(pairs)}</entailment-corpus>"
                archive.writestr(zipfile.ZipInfo(f"rte/rte{challenge}_{split}.xml"), text)
    with atomic_write(folder / "treebank.conllu") as stream:
        for sentence in ((("Ann", 2), ("saw", 0), ("Bob", 2)), (("Tom", 3), ("has", 3), ("seen", 0))) * 8:
            lines = (f"{i}\t{w}\t_\t_\t_\t_\t{h}\t_\t_\t_\n" for i, (w, h) in enumerate(sentence, 1))
            stream.write("".join(lines) + "\n")


def snli(folder: Path) -> None:
    """Both corpora of `seqstruct prepare snli`, and word vectors."""
    rte(folder)
    generator = random.Random(1)
    for split, count in (("train", 120), ("dev", 12), ("test", 12)):
        with atomic_write(folder / f"snli_1.0_{split}.jsonl") as stream:
            for _ in range(count):
                first, second, third = generator.sample(NAMES, 3)
                label, one, other = generator.choice(
                    [("entailment", first, second), ("contradiction", second, first), ("neutral", first, third)]
                )
                stream.write(json.dumps({
                    "gold_label": label, "sentence1_binary_parse": f"( {first} ( ( has seen ) {second} ) )",
                    "sentence2_binary_parse": f"( {one} ( saw {other} ) )",
                }) + "\n")
    numbers = np.random.default_rng(1)
    with atomic_write(folder / "glove.840B.300d.txt") as stream:
        for word in (*NAMES, "has", "seen", "saw"):
            stream.write(" ".join([word, *(f"{value:.3f}" for value in numbers.standard_normal(300))]) + "\n")
