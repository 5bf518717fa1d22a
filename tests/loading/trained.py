"""Small models of each kind, trained through the front door on made-up data that `seqstruct prepare` made ready."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from seqstruct.data.made_up.translation import made_up_pairs
from seqstruct.data.parsing.folder import write_folder
from seqstruct.data.registry import find
from seqstruct.data.text import parallel
from seqstruct.data.text.binarise import preprocess_pairs
from tests.data.parsing.corpora import corpus
from tests.data.scripts import prepared
from tests.models import front_door
from tests.models.front_door import fairseq

sizes = partial(front_door.sizes, dim=16, inner=24, heads=2, layers=2)


def train(data: Path, out: Path, *options: object, lr: float = 0.01) -> Path:
    fairseq("train", data, *options, "--optimizer", "adam", "--lr", lr, "--save-dir", out, "--no-epoch-checkpoints",
            "--seed", 5)
    return out / "checkpoint_best.pt"


@pytest.fixture(scope="session")
def translation(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """checkpoint; data, prepared by byte-pair encoding of Moses tokens; sources and references of the test set."""
    folder, generator = tmp_path_factory.mktemp("translation"), random.Random(7)
    for split, count in {"train": 200, "valid": 11, "test": 13}.items():
        pairs = made_up_pairs(count, generator)
        for side, language in enumerate(("de", "en")):
            (folder / f"{split}.{language}").write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    options, data = parallel.SubwordOptions(("de", "en"), vocabulary=90), folder / "data"
    parallel.prepare({split: folder / split for split in parallel.SPLITS}, options, data)
    preprocess_pairs(data / "text", data / "bin", ("de", "en"))
    checkpoint = train(
        data / "bin", folder / "run", "--task", "translation", "--arch", "structured_transformer",
        *sizes(), "--share-all-embeddings", "--decoder-self-attention", "softmax + rfa(features=8)",
        "--max-source-positions", 40, "--max-target-positions", 40, "--criterion", "cross_entropy", "--batch-size", 20,
        "--max-update", 200,
    )
    sources, references = ((data / "raw" / f"test.{side}").read_text("utf-8").splitlines() for side in ("de", "en"))
    return SimpleNamespace(checkpoint=checkpoint, data=data, sources=sources, references=references)


@pytest.fixture(scope="session")
def language_model(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """checkpoint; data: lower case, numbers as N, subwords; lines of text as they were before."""
    folder, generator = tmp_path_factory.mktemp("lm"), random.Random(3)
    words = "The cat saw lions , slowly and 12 never . quietly".split()
    lines = [" ".join(generator.choices(words, k=generator.randint(3, 9))) for _ in range(120)]
    (folder / "train").write_text("".join(f"{line}\n" for line in lines))
    prepared("language-model", "--train", folder / "train", "--valid", folder / "train", "--test", folder / "train",
             "--lowercase", "--subwords", "bpe", "--vocabulary", 40, "--out", folder / "data")
    checkpoint = train(
        folder / "data" / "bin", folder / "run", "--task", "language_modeling", "--arch", "structured_transformer_lm",
        *sizes("decoder"), "--sample-break-mode", "eos", "--tokens-per-sample", 60, "--batch-size", 20, "--max-update",
        30, "--criterion", "cross_entropy",
    )
    return SimpleNamespace(checkpoint=checkpoint, data=folder / "data", lines=lines)


@pytest.fixture(scope="session")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """checkpoint; data: Moses tokens in lower case, labels bad and good; texts with their labels, of validation."""
    folder, generator = tmp_path_factory.mktemp("classifier"), random.Random(4)
    told = {"good": ["great", "fine", "lovely"], "bad": ["awful", "poor", "boring"]}

    def rows(count: int) -> list[tuple[str, str]]:
        labels = [generator.choice(list(told)) for _ in range(count)]
        return [(label, f"It's {generator.choice(told[label])}, {'very ' * generator.randint(0, 4)}much so.")
                for label in labels]

    splits = {split: rows(count) for split, count in {"train": 80, "valid": 17, "test": 5}.items()}
    for split, found in splits.items():
        (folder / split).write_text("".join(f"{label}\t{text}\n" for label, text in found))
    prepared("text-classification", *(word for split in splits for word in (f"--{split}", folder / split)),
             "--language", "en", "--lowercase", "--out", folder / "data")
    checkpoint = train(
        folder / "data", folder / "run", "--task", "text_classification", "--arch", "structured_transformer_classifier",
        *sizes("encoder"), "--encoder-self-attention", "linear", "--max-source-positions", 20,
        "--criterion", "classification_cross_entropy", "--batch-size", 16, "--max-update", 25,
    )
    return SimpleNamespace(checkpoint=checkpoint, data=folder / "data", rows=splits["valid"])


@pytest.fixture(scope="session")
def parser(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """checkpoint; data: trees, graphs and classes of which the parsers read words, lemmas and tags."""
    folder = tmp_path_factory.mktemp("parser")
    write_folder({"trees": corpus("trees"), "dm": corpus("graphs"), "sst": corpus("classes")}, folder / "data")
    checkpoint = train(
        folder / "data", folder / "run", "--task", "joint_parsing", "--criterion", "joint_parsing", "--arch",
        "joint_parser", "--word-dim", 8, "--lemma-dim", 3, "--tag-dim", 4, "--lstm-size", 7, "--lstm-layers", 1,
        "--mlp-size", 9, "--classifier-lstm-size", 5, "--intermediate", "tree", "--batch-size", 4, "--max-epoch", 4,
        lr=0.05,
    )
    return SimpleNamespace(checkpoint=checkpoint, data=folder / "data")


@pytest.fixture(scope="session")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """checkpoint of a model of sentence_prediction; data of `masked-lm`; sentences of validation in subwords."""
    folder = tmp_path_factory.mktemp("roberta")
    find("masked-lm").write_made_up(folder / "from")
    prepared("masked-lm", "--from", folder / "from", "--unchecked", "--vocabulary", 60, "--lines", 120, "--out",
             folder / "data")
    checkpoint = train(
        folder / "data" / "sst", folder / "run", "--task", "sentence_prediction", "--criterion", "sentence_prediction",
        "--arch", "structured_roberta", *sizes("encoder"), "--num-classes", 2, "--init-token", 0, "--separator-token",
        2, "--max-positions", 60, "--batch-size", 16, "--max-update", 25, "--encoder-self-attention", "linear",
        "--attention-dropout", 0.0, "--best-checkpoint-metric", "accuracy", "--maximize-best-checkpoint-metric",
    )
    return SimpleNamespace(checkpoint=checkpoint, data=folder / "data")
