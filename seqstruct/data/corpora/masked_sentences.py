"""Text for a masked language model and two tasks to fine-tune it on, all in the same byte-pair encoding.

A free stand-in for the pretraining and the tasks of Peng (2022, section 5.5.3): Brown, the Stanford sentiment treebank,
and the textual entailment of RTE 1 to 3, all lowercased, numbers as N.  --from names a folder with brown.zip and
rte.zip of nltk and stsa.binary.{train,dev,test}, at any depth.

The folder holds mlm/ (for fairseq's task masked_lm), sst/ and rte/ (for sentence_prediction; in rte/ the hypothesis
stands first, so that it is the premise's end that a model of few positions does not see), codes, and corpus.json,
which names them and says how text is cut.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

from seqstruct.data.arguments import add_numbers, at_least
from seqstruct.data.checked import SPLITS
from seqstruct.data.corpora import language_modeling as corpora
from seqstruct.data.downloads import collect, raw_folder
from seqstruct.data.files import new_folder, write_json, write_text
from seqstruct.data.nli.folder import read_corpus
from seqstruct.data.text import subwords
from seqstruct.data.text.binarise import preprocess, write_lines
from seqstruct.data.text_classification.folder import read_raw

RAW = ("brown.zip", "rte.zip", "stsa.binary.train")
MANUAL = "name a folder with nltk's brown.zip and rte.zip and with stsa.binary.{train,dev,test}, which `sst` downloads"
Columns = Mapping[str, list[str]]  # input0, input1 and label, a line each


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    add_numbers(parser, {"--lines": (12000, "of text"), "--vocabulary": (4000, "subword types")})


def run(args: argparse.Namespace) -> None:
    at_least(args, command=True, lines=1)
    raw, checked = raw_folder(args, manual=MANUAL), not args.unchecked
    with new_folder(args.out) as folder:
        found = collect(raw, {name: [name] for name in RAW}, folder.parent / "unpacked", MANUAL)
        brown, rte, sst = (found[name].parent for name in RAW)
        texts = corpora.read_lines("brown", brown, brown, checked)
        text = {split: list(_clean(texts[split])) for split in SPLITS[:2]}
        text["train"] = list(islice(text["train"], args.lines))
        sentences, pairs = read_raw("sst", sst, checked=checked), read_corpus("rte", rte)
        tasks: dict[str, dict[str, Columns]] = {
            "sst": {split: {"input0": list(_clean(" ".join(s.words) for s in sentences[split])),
                            "label": [s.label for s in sentences[split]]} for split in SPLITS},
            "rte": {split: {"input0": list(_clean(" ".join(p.hypothesis) for p in pairs[split].pairs)),
                            "input1": list(_clean(" ".join(p.premise) for p in pairs[split].pairs)),
                            "label": [p.label.replace("no ", "not_") for p in pairs[split].pairs]} for split in SPLITS},
        }
        write(text, tasks, folder, args.vocabulary)
        write_json(folder / "corpus.json", {"corpus": args.entry, "codes": "codes", "options": {"lowercase": True}})
    for split in SPLITS:
        counts = {"lines of text": text.get(split, ()), "sentences": sentences[split], "pairs": pairs[split].pairs}
        print(f"{split}: " + ", ".join(f"{len(lines)} {name}" for name, lines in counts.items() if lines))


def _clean(lines: Iterable[str]) -> Iterable[str]:
    return corpora.clean(lines, corpora.DEFAULTS["brown"])


def write(text: Columns, tasks: Mapping[str, Mapping[str, Columns]], folder: Path, types: int) -> None:
    """Fill the folder: all but labels in subwords of the text to train on, of which there are `types`."""
    from fairseq.data import Dictionary

    subwords.learn_bpe(text["train"], folder / "codes", types)
    apply = subwords.load_bpe(folder / "codes")
    for split, lines in text.items():
        write_text(folder / "lines" / split, map(apply, lines))
    preprocess(folder / "mlm", ["--only-source", "--workers", "1", "--trainpref", folder / "lines" / "train",
                                "--validpref", folder / "lines" / "valid"])
    for name, splits in tasks.items():
        for part in splits["train"]:
            known = folder / "mlm" / "dict.txt"
            if part == "label":
                known = folder / "lines" / f"{name}.labels"
                write_text(known, (f"{label} 1" for label in sorted(set(splits["train"][part]))))
            dictionary, place = Dictionary.load(str(known)), folder / name / part
            place.mkdir(parents=True)
            dictionary.save(str(place / "dict.txt"))
            for split, columns in splits.items():
                lines = columns[part] if part == "label" else map(apply, columns[part])
                write_lines(lines, place / split, dictionary)
