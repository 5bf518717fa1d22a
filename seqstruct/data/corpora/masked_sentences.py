"""Text for a masked language model and labelled sentences to fine-tune it on, in the same byte-pair encoding.

A free stand-in for the pretraining and the tasks of Peng (2022, section 5.5.3): Brown, lowercased, numbers as N, and
the Stanford sentiment treebank.  --from names a folder with brown.zip of nltk and stsa.binary.{train,dev}.

The folder holds mlm/ (for fairseq's task masked_lm), task/input0 and task/label (for sentence_prediction), codes
and corpus.json, which names them.
"""

from __future__ import annotations

import argparse
from itertools import islice
from pathlib import Path

from seqstruct.data.arguments import add_numbers
from seqstruct.data.corpora import language_modeling as corpora
from seqstruct.data.downloads import raw_folder
from seqstruct.data.files import new_folder, write_json, write_text
from seqstruct.data.text import subwords
from seqstruct.data.text.binarise import preprocess
from seqstruct.data.text_classification.folder import read_raw

SPLITS = ("train", "valid")
MANUAL = "name a folder with nltk's brown.zip and with stsa.binary.{train,dev}, which `sst` downloads"


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    add_numbers(parser, {"--lines": (12000, "of text"), "--vocabulary": (4000, "subword types")})


def run(args: argparse.Namespace) -> None:
    raw, checked = raw_folder(args, manual=MANUAL), not args.unchecked
    texts = corpora.read_lines("brown", raw, raw, checked)
    sentences = read_raw("sst", raw, checked=checked)
    parts = {
        "mlm": {split: list(corpora.clean(texts[split], corpora.DEFAULTS["brown"])) for split in SPLITS},
        "input0": {split: [" ".join(sentence.words) for sentence in sentences[split]] for split in SPLITS},
        "label": {split: [sentence.label for sentence in sentences[split]] for split in SPLITS},
    }
    parts["mlm"]["train"] = list(islice(parts["mlm"]["train"], args.lines))
    with new_folder(args.out) as folder:
        write(parts, folder, args.vocabulary)
        write_json(folder / "corpus.json", {"corpus": args.entry, "codes": "codes"})
    for split in SPLITS:
        print(f"{split}: {len(parts['mlm'][split])} lines of text, {len(parts['label'][split])} sentences")


def write(parts: dict[str, dict[str, list[str]]], folder: Path, types: int) -> None:
    """Fill the folder: all but the labels in subwords of the text to train on, of which there are `types`."""
    subwords.learn_bpe(parts["mlm"]["train"], folder / "codes", types)
    apply = subwords.load_bpe(folder / "codes")
    lines = folder / "lines"
    for part, splits in parts.items():
        for split in SPLITS:
            write_text(lines / f"{split}.{part}", splits[split] if part == "label" else map(apply, splits[split]))
    write_text(lines / "labels", ["0 1", "1 1"])
    places = {"mlm": folder / "mlm", "input0": folder / "task" / "input0", "label": folder / "task" / "label"}
    dictionaries = {"input0": folder / "mlm" / "dict.txt", "label": lines / "labels"}
    for part, place in places.items():
        given = ["--srcdict", dictionaries[part]] if part in dictionaries else []
        preprocess(place, ["--only-source", "--workers", "1", "--trainpref", lines / f"train.{part}", "--validpref",
                           lines / f"valid.{part}", *given])  # fmt: skip
