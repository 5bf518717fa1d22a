"""Corpus statistics of ways to cut German words (Sennrich et al. 2016, table 1, as the lectures show it).

tokens and types of the training text, unknown tokens of the test text: what `seqstruct statistics` prints.  Scale paper
takes the published sizes and text that --from names, a folder with tokenised train.de, train.en and test.de (WMT15 and
newstest2013 in the source).  Scale small is Multi30k, 1/300 of that, with 6,000 types for BPE, 9,000 for joint BPE and
a shortlist of 5,000; scale smoke takes made-up sentences.  Nothing is trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from systems import write_made_up

from seqstruct.data.aligned import find_text, read_lines
from seqstruct.data.files import atomic_write
from seqstruct.data.statistics import SEGMENTATIONS, Options, count_words, line_of
from seqstruct.data.subwords import moses_tokenizer
from seqstruct.harness.command import main
from seqstruct.harness.recipe import Cell, Estimate, Measurement, Recipe
from seqstruct.harness.run import Run

OPTIONS = {
    "smoke": Options("de", vocabulary=60, joint_vocabulary=80, shortlist=5),
    "small": Options("de", vocabulary=6000, joint_vocabulary=9000, shortlist=5000),
    "paper": Options("de", vocabulary=60000, joint_vocabulary=90000, shortlist=50000),
}
FILES = ("train.de", "train.en", "test.de")


class Statistics(Recipe):
    """tokens, types, unknown."""

    paper = "nmt_lectures"
    table = "bpe-statistics"
    stand_in = "bpe-statistics-stand-in"
    family = "corpus statistics"
    rows = tuple(SEGMENTATIONS)
    smoke_rows = ("compound splitting", "BPE (joint)")
    licence = "paper: WMT15, for research; small: Multi30k, for research; smoke: none needed"

    def settings(self, cell: Cell) -> Mapping[str, Any]:
        return asdict(OPTIONS[cell.scale])

    def dataset(self, cell: Cell) -> str:
        return {
            "smoke": "400 made-up sentence pairs",
            "small": "Multi30k task 1, German (and English for joint BPE), 29000 sentences, test_2016_flickr",
            "paper": "the folder of tokenised text that --from names",
        }[cell.scale]

    def estimate(self, cell: Cell) -> Estimate:
        return Estimate({"smoke": 0.1, "small": 1.0, "paper": 120.0}[cell.scale], 10.0)

    def prepare(self, run: Run) -> Path:
        if run.cell.scale == "paper":
            missing = [name for name in FILES if run.source is None or not (run.source / name).is_file()]
            if run.source is None or missing:
                raise ValueError(f"--from DIR is a folder with tokenised {', '.join(FILES)}; missing: "
                                 f"{', '.join(missing)}")
            return run.source
        raw = run.prepared("multi30k-made-up", write_made_up) if run.cell.scale == "smoke" else run.raw_data("multi30k")
        if raw is None:
            raise ValueError("no text of Multi30k: give the folder of its raw files by --from")

        def make(folder: Path) -> None:
            for name in FILES:
                split, language = name.split(".")
                path = find_text(raw / {"train": "train", "test": "test_2016_flickr"}[split], language)
                with atomic_write(folder / name) as stream:
                    stream.writelines(f"{line}\n" for line in map(moses_tokenizer(language), read_lines(path)))

        return run.prepared(f"multi30k-tokens-{run.cell.scale}", make)

    def train(self, run: Run, data: Path) -> Path:
        return data

    def evaluate(self, run: Run, data: Path, checkpoint: Path) -> Sequence[Measurement]:
        counts = [count_words(read_lines(data / name)) for name in FILES]
        line = line_of(run.cell.row, counts[0], counts[2], counts[1], OPTIONS[run.cell.scale])
        if line.missing:
            raise ValueError(f"{run.cell.row}: {line.missing}")
        return [
            Measurement("tokens", line.tokens, "tokens"),
            Measurement("types", line.types, "types"),
            Measurement("unknown", line.unknown, "tokens"),
        ]


recipe = Statistics()

if __name__ == "__main__":
    raise SystemExit(main(recipe))
