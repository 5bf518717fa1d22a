"""Subwords drawn in the data loader: same text, fresh in each epoch, and only in training."""

from __future__ import annotations

import random
import re

import pytest
import torch

from seqstruct.data.text import subwords
from seqstruct.tasks.subword_regularization import SubwordRegularizationConfig, SubwordRegularizationTask
from tests.models.front_door import binarize, fairseq, fairseq_apart, sizes

STEMS, ENDINGS = ("low", "new", "wide", "hand", "lang", "groß"), ("", "er", "est", "en")
UNDO = {"bpe": subwords.undo_bpe, "sentencepiece": subwords.undo_sentencepiece,
        "sentencepiece-bpe": subwords.undo_sentencepiece}
OPTIONS = {"sampling_alpha": 0.1, "bpe_dropout": 0.3}


@pytest.fixture(scope="module", params=list(UNDO))
def corpus(request, tmp_path_factory):
    """(kind, folder): text, subwords, model and binarised data of one kind of subwords."""
    folder, chooser = tmp_path_factory.mktemp(request.param), random.Random(1)
    words = [a + b for a in STEMS for b in ENDINGS]
    texts = {split: [" ".join(chooser.choices(words, k=chooser.randint(1, 7))) for _ in range(count)]
             for split, count in (("train", 61), ("valid", 7), ("test", 5))}
    if request.param == "bpe":
        subwords.learn_bpe(texts["train"] + words, folder / "model", 50)
        cut = subwords.load_bpe(folder / "model")
    else:
        subwords.learn_sentencepiece(texts["train"] + words, folder / "model", 40,
                                     "bpe" if request.param == "sentencepiece-bpe" else "unigram")
        cut = subwords.load_sentencepiece(folder / "model")
    # Single characters, as words of their own, so that the dictionary has what draws need.
    texts["train"] += ["".join(sorted(set("".join(words)))), *sorted(set("".join(words)))]
    for split, lines in texts.items():
        for language, side in (("de", lines), ("en", [" ".join(line.split()[::-1]) for line in lines])):
            (folder / f"{split}.{language}").write_text("".join(cut(line) + "\n" for line in side))
            (folder / f"raw.{split}.{language}").write_text("".join(line + "\n" for line in side))
    binarize(folder, folder / "bin")
    return request.param, folder


def loaded(folder, split="train", seed=1, text="train", **options):
    options = {"source_subword_model": str(folder / "model"), "target_subword_model": str(folder / "model"),
               "training_text": str(folder / text), **OPTIONS, **options}
    config = SubwordRegularizationConfig(data=str(folder / "bin"), seed=seed, train_subset="train", dataset_impl=None,
                                         required_seq_len_multiple=1, **options)
    task = SubwordRegularizationTask.setup_task(config)
    task.load_dataset(split)
    return task, task.datasets[split]


def lines(task, dataset, key):
    dictionary = task.src_dict if key == "source" else task.tgt_dict
    return [dictionary.string(dataset[i][key]) for i in range(len(dataset))]


def test_draws_are_the_text_and_fresh_in_each_epoch(corpus):
    kind, folder = corpus
    task, dataset = loaded(folder)
    raw = {key: (folder / f"raw.train.{language}").read_text().splitlines()
           for key, language in (("source", "de"), ("target", "en"))}
    first = {key: lines(task, dataset, key) for key in raw}
    dataset.set_epoch(2)
    second = {key: lines(task, dataset, key) for key in raw}
    for key in raw:
        assert first[key] != second[key]
        for found in (first, second):
            assert [UNDO[kind](line) for line in found[key]] == raw[key]
            assert "<unk>" not in " ".join(found[key])
    dataset.set_epoch(1)
    assert lines(task, dataset, "source") == first["source"]
    assert [lines(*loaded(folder, text="raw.train"), key) for key in raw] == list(first.values())
    assert lines(*loaded(folder, seed=2), "source") != first["source"]


def test_each_epoch_has_a_data_loader_of_its_own(corpus):
    """The workers of one that went on would draw the first epoch's segmentations for ever."""
    task, dataset = loaded(corpus[1])
    first, second = (task.get_batch_iterator(dataset, max_sentences=8, epoch=epoch) for epoch in (1, 2))
    assert first is not second


def test_the_other_side_and_other_splits_keep_the_best_segmentation(corpus):
    _, folder = corpus
    best = (folder / "train.en").read_text().splitlines()
    task, dataset = loaded(folder, target_subword_model=None)
    assert lines(task, dataset, "target") == best
    assert lines(task, dataset, "source") != (folder / "train.de").read_text().splitlines()
    assert lines(*loaded(folder, "valid"), "source") == (folder / "valid.de").read_text().splitlines()
    plain = loaded(folder, sampling_nbest=1, bpe_dropout=0.0)
    assert lines(*plain, "target") == best


def test_draws_keep_to_the_longest_sentence(corpus):
    _, folder = corpus
    task, dataset = loaded(folder, bpe_dropout=1.0, sampling_alpha=0.0, max_source_positions=9)
    best = (folder / "train.de").read_text().splitlines()
    for line, expected in zip(lines(task, dataset, "source"), best, strict=True):
        assert len(line.split()) < 9 or line == expected


def test_batches_are_padded_to_what_was_drawn(corpus):
    task, dataset = loaded(corpus[1])
    batch = dataset.collater([dataset[i] for i in range(5)])
    drawn = {i: dataset[i]["source"] for i in range(5)}
    for row, i in zip(batch["net_input"]["src_tokens"], batch["id"].tolist(), strict=True):
        assert torch.equal(row[row != task.src_dict.pad()], drawn[i])


def test_what_does_not_belong_together_is_refused(corpus, tmp_path):
    kind, folder = corpus
    other = tmp_path / "other"
    if kind == "bpe":
        subwords.learn_bpe((folder / "raw.train.de").read_text().splitlines(), other, 33)
    else:
        subwords.learn_sentencepiece((folder / "raw.train.de").read_text().splitlines(), other, 30, "bpe")
    with pytest.raises(ValueError, match=r"line \d+: the subword model does not match the dictionary"):
        loaded(folder, target_subword_model=str(other))
    with pytest.raises(ValueError, match="valid.de: 7 lines, but the binarised data has"):
        loaded(folder, text="valid")
    with pytest.raises(ValueError, match="expected --training-text"):
        loaded(folder, training_text=None)
    with pytest.raises(ValueError, match="expected no --truncate-source"):
        loaded(folder, truncate_source=True)
    with pytest.raises(ValueError, match="nbest: expected"):
        loaded(folder, sampling_nbest=0)
    for language in ("de", "en"):
        (tmp_path / f"bad.{language}").write_bytes(b"low\n\xff\n" + b"low\n" * (len((folder / "train.de").read_text()
                                                                                  .splitlines()) - 2))
    with pytest.raises(ValueError, match="line [12]"):
        loaded(folder, training_text=str(tmp_path / "bad"))


@pytest.mark.training
@pytest.mark.parametrize("corpus", ["sentencepiece"], indirect=True)
def test_training_and_decoding_through_the_front_door(corpus, tmp_path):
    _, folder = corpus
    printed = fairseq_apart(
        "train", folder / "bin", "--task", "translation_subword_regularization", "--training-text", folder / "train",
        "--source-subword-model", folder / "model", "--target-subword-model", folder / "model", "--sampling-alpha", 0.1,
        "--bpe-dropout", 0.2, "--arch", "transformer", *sizes(), "--optimizer", "adam", "--lr", 0.001, "--max-tokens",
        400, "--max-epoch", 2, "--num-workers", 1, "--update-epoch-batch-itr", True, "--save-dir", tmp_path,
        "--no-epoch-checkpoints", "--seed", 1,
    )
    assert re.search(r"end of epoch 2", printed)
    decoded = fairseq("generate", folder / "bin", "--path", tmp_path / "checkpoint_last.pt", "--beam", 1,
                      "--max-len-b", 5)
    assert len(re.findall(r"^H-\d", decoded, re.MULTILINE)) == 5
