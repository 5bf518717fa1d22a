"""Four tasks of GLUE (Wang et al. 2019) for fairseq's task sentence_prediction, in the byte-pair encoding of RoBERTa.

    mnli   premise and hypothesis; three classes; dev_matched is valid, dev_mismatched valid1
    qnli   question and sentence; two classes (the second release, QNLIv2)
    qqp    two questions; two classes; training and validation lines with a wrong number of fields are left out
    sst-2  one sentence; two classes

The folder holds input0/, input1/ and label/, each with dict.txt and the splits train, valid and test, of which test has
no labels: they are GLUE's own.  Labels are numbered in alphabetical order.  The encoding and the dictionary are those
of the checkpoints that fairseq publishes: encoder.json, vocab.bpe and dict.txt.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from seqstruct.data.checked import check_counts
from seqstruct.data.downloads import Remote, collect, raw_folder
from seqstruct.data.files import new_folder, undamaged, write_json, write_text
from seqstruct.data.text.aligned import read_lines
from seqstruct.data.text.binarise import write_lines

ADDRESS = "https://dl.fbaipublicfiles.com"
MANUAL = "the archives are linked from https://gluebenchmark.com/tasks; name their folder by --from"
ENCODING = (  # of GPT-2, as RoBERTa uses it
    Remote(
        f"{ADDRESS}/fairseq/gpt2_bpe/encoder.json", "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783"
    ),
    Remote(f"{ADDRESS}/fairseq/gpt2_bpe/vocab.bpe", "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5"),
    Remote(f"{ADDRESS}/fairseq/gpt2_bpe/dict.txt"),
)
TWO = {"train": "train", "valid": "dev", "test": "test"}


@dataclass(frozen=True)
class GlueTask:
    """One task.  folder: of its files in the archive.  inputs, label: names of columns.  counts: lines as published.
    splits: the file of each."""

    folder: str
    remote: Remote
    inputs: tuple[str, ...]
    label: str
    labels: tuple[str, ...]
    counts: Mapping[str, int]
    splits: Mapping[str, str]


def _archive(name: str, checksum: str) -> Remote:
    return Remote(f"{ADDRESS}/glue/data/{name}", checksum)


TASKS = {
    "mnli": GlueTask(
        "MNLI", _archive("MNLI.zip", "e7c1d896d26ed6caf700110645df426cc2d8ebf02a5ab743d5a5c68ac1c83633"),
        ("sentence1", "sentence2"), "gold_label", ("contradiction", "entailment", "neutral"),
        {"train": 392702, "valid": 9815, "valid1": 9832, "test": 9796, "test1": 9847},
        {"train": "train", "valid": "dev_matched", "valid1": "dev_mismatched", "test": "test_matched",
         "test1": "test_mismatched"},
    ),
    "qnli": GlueTask(
        "QNLI", _archive("QNLIv2.zip", "e634e78627a29adaecd4f955359b22bf5e70f2cbd93b493f2d624138a0c0e5f5"),
        ("question", "sentence"), "label", ("entailment", "not_entailment"),
        {"train": 104743, "valid": 5463, "test": 5463}, TWO,
    ),
    "qqp": GlueTask(
        "QQP", _archive("QQP-clean.zip", "40e7c862c04eb26ee04b67fd900e76c45c6ba8e6d8fab4f8f1f8072a1a3fbae0"),
        ("question1", "question2"), "is_duplicate", ("0", "1"),
        {"train": 363846, "valid": 40430, "test": 390965}, TWO,
    ),
    "sst-2": GlueTask(
        "SST-2", _archive("SST-2.zip", "d67e16fb55739c1b32cdce9877596db1c127dc322d93c082281f64057c16deaa"),
        ("sentence",), "label", ("0", "1"), {"train": 67349, "valid": 872, "test": 1821}, TWO,
    ),
}


def read_table(path: str | os.PathLike, task: GlueTask, split: str) -> Iterator[tuple[list[str], str]]:
    """The inputs and the label of each line of a .tsv file with a header; the label of a test set is empty.

    Raises ValueError naming file and line if a column is missing, a line has a wrong number of fields (for qqp, in its
    test set alone) or a label is unknown; and as `read_lines` does.
    """
    lines = read_lines(path)
    header = next(lines, "").split("\t")
    labelled = not split.startswith("test")
    wanted = [*task.inputs, task.label] if labelled else [*task.inputs]
    missing = [name for name in wanted if name not in header]
    if missing:
        raise ValueError(f"{path}, line 1: expected the columns {', '.join(wanted)}, found no {', '.join(missing)}")
    for number, line in enumerate(lines, 2):
        fields = line.split("\t")
        if len(fields) != len(header):
            if task.folder == "QQP" and labelled:
                continue
            raise ValueError(f"{path}, line {number}: {len(fields)} fields, expected {len(header)}")
        row = dict(zip(header, fields, strict=True))
        label = row[task.label] if labelled else ""
        if labelled and label not in task.labels:
            raise ValueError(f"{path}, line {number}: label {label!r}, expected one of {', '.join(task.labels)}")
        yield [row[name].strip() for name in task.inputs], label


def load_encoding(encoder: Path, merges: Path) -> Callable[[str], str]:
    """A function from text to the numbers of GPT-2's byte-pair encoding, which are what dict.txt holds.

    Raises ValueError if the files are damaged.
    """
    from fairseq.data.encoders.gpt2_bpe_utils import get_encoder

    with undamaged(f"{encoder}, {merges}", json.JSONDecodeError, UnicodeDecodeError):
        encoding = get_encoder(encoder, merges)
    return lambda text: " ".join(map(str, encoding.encode(text)))


def write_parts(
    task: GlueTask, files: Mapping[str, Path], encode: Callable[[str], str], folder: Path, scratch: Path
) -> dict[str, int]:
    """folder/{input0,input1,label}/SPLIT.{bin,idx} and their dict.txt; the number of lines by split.

    Raises ValueError if a split is empty.
    """
    from fairseq.data import Dictionary

    write_text(scratch / "labels", (f"{label} 1" for label in task.labels))
    parts = [f"input{i}" for i in range(len(task.inputs))] + ["label"]
    counts = {}
    for number, part in enumerate(parts):
        path = scratch / "labels" if part == "label" else files["dict.txt"]
        with undamaged(path, ValueError, RuntimeError), open(path, encoding="utf-8") as stream:
            dictionary = Dictionary.load(stream)
        (folder / part).mkdir()
        dictionary.save(str(folder / part / "dict.txt"))
        for split in task.splits:
            if part == "label" and split.startswith("test"):
                continue
            rows = read_table(files[split], task, split)
            lines = (label if part == "label" else encode(inputs[number]) for inputs, label in rows)
            counts[split] = write_lines(lines, folder / part / split, dictionary)
            if not counts[split]:
                raise ValueError(f"{files[split]}: no line after the header")
    return counts


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument("--task", choices=tuple(TASKS), required=True, help="which")


def run(args: argparse.Namespace) -> None:
    task = TASKS[args.task]
    with new_folder(args.out) as folder:
        raw = raw_folder(args, [task.remote, *ENCODING], MANUAL)
        wanted = {split: [f"{task.folder}/{file}.tsv"] for split, file in task.splits.items()}
        wanted |= {remote.file: [remote.file] for remote in ENCODING}
        files = collect(raw, wanted, folder.parent / "unpacked", MANUAL)
        encode = load_encoding(files["encoder.json"], files["vocab.bpe"])
        counts = write_parts(task, files, encode, folder, folder.parent)
        if not args.unchecked:
            check_counts(args.task, counts, task.counts, "lines", 0.001)
        write_json(folder / "corpus.json", {"corpus": args.task, "labels": list(task.labels), "counts": counts,
                                            "encoding": "of GPT-2"})
    print(", ".join(f"{split}: {count} lines" for split, count in counts.items()))
    print(f"for --num-classes {len(task.labels)}")
