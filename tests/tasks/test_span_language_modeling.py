"""Gold spans reach the step that attends to them; supervised training and averaging go on exactly after a cut."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
import torch

from seqstruct.data.text.trees import parse_trees, spans, words
from seqstruct.tasks.span_language_modeling import SpanLanguageModelingTask
from seqstruct.tasks.stream_language_modeling import StreamLanguageModelingConfig
from tests.data.scripts import prepared
from tests.models.front_door import fairseq

TRAIN = [
    "--task", "span_language_modeling", "--criterion", "regularized_cross_entropy", "--arch", "palm",
    "--decoder-layers", "2", "--attention-layer", "1", "--decoder-embed-dim", "8", "--hidden-size", "12",
    "--span-size", "4", "--max-span", "4", "--optimizer", "averaged_sgd", "--lr", "0.02", "--lr-scheduler",
    "averaging_switch", "--averaged-lr", "0.5", "--batch-size", "3", "--tokens-per-sample", "9",
    "--update-epoch-batch-itr", "True", "--no-epoch-checkpoints", "--log-format", "json",
    "--required-batch-size-multiple", "1",
]


def sentence(generator: random.Random) -> str:
    noun, verb = generator.choice("dog cat bird".split()), generator.choice("saw had".split())
    noun_phrase = f"(NP (DT the) (NN {noun}))"
    if generator.random() < 0.5:
        noun_phrase = f"(NP {noun_phrase} (PP (IN of) (NP (DT a) (NN {noun}))))"
    return f"(S {noun_phrase} (VP (VBD {verb}) (NP (DT a) (NN {noun}))))"


@pytest.fixture(scope="module")
def treebank(tmp_path_factory) -> tuple[Path, list[str]]:
    """The prepared folder, and the bracketed sentences of its training set."""
    folder, generator = tmp_path_factory.mktemp("treebank"), random.Random(5)
    (folder / "raw").mkdir()
    texts = [sentence(generator) for _ in range(20)]
    for number, lines in ((1, texts), (160, texts[:3]), (180, texts[3:6])):
        (folder / "raw" / f"wsj_{number:04}.mrg").write_text("\n".join(lines))
    words = ["--corpus", "treebank-sample", "--from", folder / "raw", "--out", folder / "out", "--vocabulary", 50]
    prepared("ptb-trees", *words)
    return folder / "out", texts


@pytest.mark.parametrize("rows, length", [(1, 7), (4, 5)])
def test_gold_spans_stand_at_the_step_that_attends_to_them(treebank, rows, length):
    folder, texts = treebank
    config = StreamLanguageModelingConfig(
        data=str(folder / "bin"), tokens_per_sample=length, output_dictionary_size=-1, seed=1, dataset_impl="mmap"
    )
    task = SpanLanguageModelingTask.setup_task(config)
    task.load_dataset("train")
    batches = list(task.get_batch_iterator(task.dataset("train"), max_sentences=rows).next_epoch_itr(shuffle=False))
    source = torch.cat([b["net_input"]["src_tokens"] for b in batches], 1).flatten()
    gold = torch.cat([b["gold_spans"] for b in batches], 1).flatten()
    tokens, constituents = [task.dictionary.eos()], set()
    for tree in parse_trees(texts):
        found = words(tree)
        constituents |= {
            (len(tokens) + a, len(tokens) + b) for a, b in spans(tree) if (a, b) != (0, len(found) - 1)
        }
        tokens += [task.dictionary.index(word) for word in found] + [task.dictionary.eos()]
    real = len(tokens) - 1
    assert source[:real].tolist() == tokens[:-1]
    for step in range(real):  # has read source token `step` and attends to spans that end before it
        expected = sum(1 << (b - a) for a, b in constituents if b == step - 1)
        assert int(gold[step]) == expected
    assert not gold[real:].any()


def train(data: Path, folder: Path, epochs: int, *more: str) -> tuple[dict, str]:
    log = fairseq("train", data / "bin", *TRAIN, *more, "--save-dir", folder, "--max-epoch", epochs)
    return torch.load(folder / "checkpoint_last.pt", weights_only=True), log


@pytest.mark.training
@pytest.mark.parametrize("switch", [("--switch-epoch", "2"), ("--switch-epoch", "0", "--nonmonotone", "1")])
def test_resumed_equals_unbroken_across_the_switch(treebank, tmp_path, switch):
    options = (*switch, "--span-supervision", "1.0", "--random-segments")
    if "0" in switch:  # losses that rise soon
        options += ("--lr", "2")
    whole, _ = train(treebank[0], tmp_path / "whole", 8, *options)
    assert whole["last_optimizer_state"]["averaging"]
    for epochs in (2, 3, 8):
        cut, _ = train(treebank[0], tmp_path / "cut", epochs, *options)
    torch.testing.assert_close(cut["model"], whole["model"], rtol=0, atol=0)


@pytest.mark.training
def test_lines_are_gone_on_from(treebank, tmp_path):
    train(treebank[0], tmp_path, 1)
    (tmp_path / "lines").write_text("the dog\na\n")
    printed = fairseq(
        "interactive", treebank[0] / "bin", "--task", "span_language_modeling", "--path",
        tmp_path / "checkpoint_last.pt", "--input", tmp_path / "lines", "--beam", "2", "--max-len-b", "5",
    )
    found = dict(re.findall(r"^H-(\d+)\t\S+\t(.*)$", printed, re.M))
    assert found["0"].startswith("the dog") and found["1"].startswith("a")


@pytest.mark.training
def test_supervision_teaches_the_attention(treebank, tmp_path):
    def span_losses(weight: str) -> list[float]:
        _, log = train(treebank[0], tmp_path / weight, 6, "--switch-epoch", "0", "--span-supervision", weight)
        return [float(x) for x in re.findall(r'"valid_span_loss": "([\d.]+)', log)]

    taught, untaught = span_losses("1.0"), span_losses("1e-9")
    assert taught[-1] < 0.7 * taught[0]
    assert taught[-1] < untaught[-1]


def test_models_without_spans_and_texts_without_trees_are_refused(treebank, tmp_path):
    (tmp_path / "bin").mkdir()
    for file in (treebank[0] / "bin").iterdir():
        if not file.name.endswith(".npy"):
            (tmp_path / "bin" / file.name).write_bytes(file.read_bytes())
    with pytest.raises(ValueError, match="train.spans.npy: no such file|valid.spans.npy: no such file"):
        train(tmp_path, tmp_path / "runs", 1)
