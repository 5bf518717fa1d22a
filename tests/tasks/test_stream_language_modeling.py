"""Streams through the front door: what is reported does not depend on how the stream is cut; generation, resumption."""

from __future__ import annotations

import math
import random
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.criterions.cross_entropy import CrossEntropyCriterion
from fairseq.distributed import utils as distributed_utils
from torch.nn import functional as F

from tests.models.front_door import binarize, fairseq, sizes

STREAM = ["--task", "stream_language_modeling"]
TRAIN = [
    *STREAM, "--optimizer", "adam", "--lr", "0.01", "--clip-norm", "5", "--batch-size", "3", "--tokens-per-sample", "7",
    "--update-epoch-batch-itr", "True", "--no-epoch-checkpoints",
]
RECURRENT = [*TRAIN, "--arch", "recurrent_lm", "--hidden-size", "12"]
TRANSFORMER = [
    *TRAIN, *sizes("decoder", dim=12, inner=16, heads=2, layers=2), "--no-token-positional-embeddings", "--dropout",
    "0.1",
]


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """300, 31 and 29 tokens or so of a text where each word depends on the two before."""
    folder = tmp_path_factory.mktemp("stream")
    chooser, words = random.Random(3), "a b c d e".split()
    for split, lines in (("train", 50), ("valid", 6), ("test", 5)):
        text = []
        for _ in range(lines):
            line = [chooser.choice(words), chooser.choice(words)]
            while len(line) < 6:
                line.append(words[(words.index(line[-1]) + words.index(line[-2])) % 5])
            text.append(" ".join(line[: chooser.randint(1, 6)]) + "\n")
        (folder / f"{split}.txt").write_text("".join(text))
    return binarize(folder, folder / "bin", only=".txt")


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    options = ["--cell", "F", "--max-epoch", "4", "--log-format", "json"]
    log = fairseq("train", data, *RECURRENT, *options, "--save-dir", folder)
    losses = [float(x) for x in re.findall(r'"train_loss": "([\d.]+)', log)]
    assert len(losses) == 4 and losses[-1] < 0.8 * losses[0]
    return folder / "checkpoint_best.pt"


def load(path):
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(path)])
    return model.eval(), task


def nats_by_hand(path, split) -> tuple[float, int]:
    """One pass over the whole split from EOS, without the task's segments."""
    model, task = load(path)
    task.load_dataset(split)
    tokens = task.dataset(split).tokens
    source = torch.cat([tokens.new_tensor([task.source_dictionary.eos()]), tokens[:-1]])
    with torch.no_grad():
        logits, _ = model(source[None])
    return float(F.cross_entropy(logits[0], tokens, reduction="sum")), len(tokens)


@pytest.mark.training
@pytest.mark.parametrize("length", [1, 7, 1000])
def test_validation_does_not_depend_on_the_segments(trained, data, length):
    printed = fairseq(
        "validate", data, *STREAM, "--path", trained, "--valid-subset", "test", "--batch-size", "1", "--log-format",
        "json", "--model-overrides", f"{{'tokens_per_sample': {length}}}",
    )
    nats, tokens = nats_by_hand(trained, "test")
    found = float(re.search(r'"test_loss": "?([\d.]+)', printed)[1])
    assert found == pytest.approx(nats / tokens / math.log(2), abs=2e-3)


@pytest.mark.training
def test_segments_of_an_update_may_be_given_again(trained):
    """As the trainer does after an overflow, or to find out which layer has a NaN."""
    model, task = load(trained)
    task.load_dataset("valid")
    loss, optimizer = CrossEntropyCriterion(task, True), SimpleNamespace(backward=lambda found: None)
    segments = [*task.get_batch_iterator(task.datasets["valid"], max_sentences=1).next_epoch_itr(shuffle=False)]
    assert len(segments) == 4

    def step(segment, update):
        return float(task.train_step(segment, model, loss, optimizer, update)[0].detach())

    once = [step(segment, 0) for segment in segments]
    for update, first in enumerate(range(0, 4, 2), 1):
        of_update = segments[first : first + 2]
        for _ in range(3):
            assert [step(segment, update) for segment in of_update] == once[first : first + 2]
    with pytest.raises(ValueError, match="segment 1 of a stream came after segment"):
        step(segments[1], update)


@pytest.mark.training
@pytest.mark.parametrize("model, length, processes", [
    ("trained", 4, 1), ("trained", 4, 2), ("stateful", 1, 1), ("stateful", 7, 1),
])
def test_eval_lm_carries_the_state(model, length, processes, data, monkeypatch, request):
    """Of several processes the first one, which tells the result, evaluates all."""
    monkeypatch.setattr(distributed_utils, "get_global_world_size", lambda: processes)
    checkpoint = request.getfixturevalue(model)
    printed = fairseq("eval-lm", data, *STREAM, "--path", checkpoint, "--gen-subset", "test", "--tokens-per-sample",
                      length, "--num-shards", processes)
    nats, tokens = nats_by_hand(checkpoint, "test")
    assert f"Evaluated {tokens:,} tokens" in printed
    found = float(re.search(r"Loss \(base 2\): ([\d.]+)", printed)[1])
    assert found == pytest.approx(nats / tokens / math.log(2), abs=2e-4)


@pytest.mark.training
def test_a_window_of_context_is_refused(trained, data):
    with pytest.raises(ValueError, match="context-window"):
        fairseq("eval-lm", data, *STREAM, "--path", trained, "--gen-subset", "test", "--context-window", "2")


def test_training_carries_the_state_and_cuts_the_graph(data):
    """Two rows of a made-up stream: the second segment's loss is that of the whole, its gradient stops at the cut."""
    _, task = stub_task(data, batch=2)
    task.load_dataset("train")
    iterator = task.get_batch_iterator(task.dataset("train"), max_sentences=2).next_epoch_itr(shuffle=True)
    first, second = next(iterator), next(iterator)
    assert (first["step"], second["step"]) == (0, 1)
    seen = []

    def criterion(model, sample):
        carried = sample["net_input"]["carried"]
        before = carried.get(model, 2)
        seen.append(before.clone())
        after = before + weight * sample["net_input"]["src_tokens"].sum()
        carried.put(model, after)
        return after.sum(), 1, {}

    model, optimizer = Summing(), Backward()
    weight = torch.ones((), requires_grad=True)
    for sample in (first, second):
        weight.grad = None
        task.train_step(sample, model, criterion, optimizer, 0)
    assert float(weight.grad) == 2 * float(second["net_input"]["src_tokens"].sum())
    assert torch.equal(seen[1], torch.full((2,), float(first["net_input"]["src_tokens"].sum())))
    task.valid_step(second, model, criterion)
    assert not seen[2].any(), "validation has a state of its own"
    task.train_step(second, model, criterion, optimizer, 0, ignore_grad=True)
    assert not seen[3].any(), "a batch without gradient does not count"
    task.train_step({**second, "step": 2}, model, criterion, optimizer, 0)
    assert seen[4].any()
    task.train_step(first, model, criterion, optimizer, 0)
    assert not seen[5].any(), "a new epoch starts anew"
    with pytest.raises(ValueError, match="segment 2 of a stream came after segment 0: .* may not be shuffled"):
        task.train_step({**second, "step": 2}, model, criterion, optimizer, 0)
    with pytest.raises(ValueError, match="--grouped-shuffling: .* may not be shuffled"):
        task.get_batch_iterator(task.dataset("train"), max_sentences=2, grouped_shuffling=True)


class Summing(torch.nn.Module):
    def initial_state(self, batch_size):
        return torch.zeros(batch_size)

    def set_num_updates(self, number):
        pass


class Backward:
    def backward(self, loss):
        loss.backward()


def stub_task(data, batch, **options):
    from seqstruct.tasks.stream_language_modeling import StreamLanguageModelingConfig, StreamLanguageModelingTask

    config = StreamLanguageModelingConfig(
        data=str(data), batch_size=batch, dataset_impl=None, seed=1, data_buffer_size=0,
        **{"train_subset": "train", **options},
    )
    return config, StreamLanguageModelingTask.setup_task(config)


@pytest.mark.parametrize(("trained", "other"), [("train", "valid"), ("valid", "train")])
def test_random_segments_are_drawn_by_epoch(trained, other, data):
    _, task = stub_task(data, 1, random_segments=True, tokens_per_sample=7, train_subset=trained)
    for split in (trained, other):
        task.load_dataset(split)

    def lengths(split, epoch):
        iterator = task.get_batch_iterator(task.dataset(split), max_sentences=1, seed=1, epoch=epoch)
        return [sample["target"].size(1) for sample in iterator.next_epoch_itr()]

    assert lengths(trained, 1) != lengths(trained, 2)
    assert lengths(trained, 2) == lengths(trained, 2)
    assert set(lengths(other, 1)[:-1]) <= {7}


@pytest.mark.training
def test_step_by_step_equals_the_whole(trained):
    model, task = load(trained)
    tokens = torch.tensor([[2, 4, 5, 6, 7], [2, 7, 7, 4, 5]])
    with torch.no_grad():
        whole, _ = model(tokens)
        state = {}
        for t in range(5):
            step, _ = model.decoder(tokens[:, : t + 1], incremental_state=state)
            torch.testing.assert_close(step[:, -1], whole[:, t])
        model.decoder.reorder_incremental_state(state, torch.tensor([1, 1, 0]))
        more = torch.cat([tokens[[1, 1, 0]], torch.tensor([[5], [6], [7]])], 1)
        step, _ = model.decoder(more, incremental_state=state)
        torch.testing.assert_close(step[:, -1], model(more)[0][:, -1])


@pytest.mark.training
def test_generation_by_sentence(trained, data):
    printed = fairseq(
        "generate", data, "--task", "language_modeling", "--sample-break-mode", "eos", "--path", trained,
        "--gen-subset", "test", "--prefix-size", "1", "--beam", "2", "--max-len-b", "8", "--batch-size", "2",
    )
    assert len(re.findall(r"^H-", printed, re.M)) == 5


@pytest.mark.training
def test_lines_are_gone_on_from(trained, data, tmp_path):
    (tmp_path / "lines").write_text("a b\nc\n")
    printed = fairseq("interactive", data, *STREAM, "--path", trained, "--input", tmp_path / "lines", "--beam", "2",
                      "--max-len-b", "8", "--buffer-size", "2")
    found = dict(re.findall(r"^H-(\d+)\t\S+\t(.*)$", printed, re.M))
    assert found["0"].startswith("a b") and found["1"].startswith("c")


@pytest.mark.training
def test_resumed_training_equals_an_unbroken_one(data, tmp_path):
    options = [*RECURRENT, "--cell", "LSTM", "--dropout", "0.2", "--variational-dropout", "0.1"]
    fairseq("train", data, *options, "--max-epoch", "3", "--save-dir", tmp_path / "whole")
    for epochs in (1, 3):
        fairseq("train", data, *options, "--max-epoch", epochs, "--save-dir", tmp_path / "cut")
    models = [
        torch.load(tmp_path / name / "checkpoint_last.pt", weights_only=True)["model"] for name in ("whole", "cut")
    ]
    torch.testing.assert_close(*models, rtol=0, atol=0)


def test_folders_take_turns_by_epoch(data, tmp_path):
    shutil.copytree(data, tmp_path / "more")
    for end in ("bin", "idx"):
        shutil.copy(data / f"test.{end}", tmp_path / "more" / f"train.{end}")
    _, task = stub_task(f"{data}:{tmp_path / 'more'}", 1)
    found = {}
    for split, epoch in (("test", 1), ("train", 1), ("train", 2), ("train", 3)):
        task.load_dataset(split, epoch)
        found[split, epoch] = task.dataset(split).tokens
    assert torch.equal(found["train", 2], found["test", 1])
    assert torch.equal(found["train", 3], found["train", 1]) and len(found["train", 1]) != len(found["train", 2])


def test_wrong_input(data, tmp_path):
    with pytest.raises(ValueError, match="tokens_per_sample: expected 1 or more, got 0"):
        stub_task(data, 1, tokens_per_sample=0)
    unused = {"add_bos_token": True, "sample_break_mode": "eos", "shorten_method": "truncate"}
    for name, value in unused.items():
        with pytest.raises(ValueError, match=f"expected no --{name.replace('_', '-')}"):
            stub_task(data, 1, **{name: value})
    _, task = stub_task(data, 1)
    with pytest.raises(FileNotFoundError, match="nothing.bin: no such split"):
        task.load_dataset("nothing")
    task.load_dataset("valid")
    with pytest.raises(ValueError, match="--batch-size"):
        task.get_batch_iterator(task.dataset("valid"))
    rows = 2 * task.args.tokens_per_sample
    with pytest.raises(ValueError, match=f"--max-tokens {rows - 1}: 2 rows of .* are {rows},"):
        task.get_batch_iterator(task.dataset("valid"), max_tokens=rows - 1, max_sentences=2)
    assert len(task.get_batch_iterator(task.dataset("valid"), max_tokens=rows, max_sentences=2)) > 0


@pytest.fixture(scope="module")
def stateful(data, tmp_path_factory) -> Path:
    """A transformer with random feature attention, trained for two epochs of segments."""
    folder = tmp_path_factory.mktemp("stateful")
    fairseq("train", data, *TRANSFORMER, "--arch", "structured_transformer_lm", "--decoder-self-attention",
            "rfa(features=8, gate=True, pool=3)", "--max-epoch", "2", "--save-dir", folder)
    return folder / "checkpoint_best.pt"


@pytest.mark.parametrize(
    "options, said",
    [
        (["transformer_lm"], "transformer_lm carries no state from segment to segment"),
        (["structured_transformer_lm", "--decoder-self-attention", "softmax"], "it would keep every key of the stream"),
    ],
)
def test_models_without_a_state_are_refused(data, tmp_path, options, said):
    with pytest.raises(ValueError, match=said):
        fairseq("train", data, *TRANSFORMER, "--arch", *options, "--max-epoch", "1", "--save-dir", tmp_path)
