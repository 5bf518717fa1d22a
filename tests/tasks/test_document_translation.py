"""Documents as windows: their contents, the order of batches, and decoding against a loop by hand."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest
import torch
from fairseq.dataclass.configs import GenerationConfig

from seqstruct.data.documents.dataset import read_documents
from seqstruct.tasks.document_translation import SEPARATOR, DocumentTranslationConfig, DocumentTranslationTask
from tests.models.building import small_translation_model
from tests.models.front_door import fairseq, nearly_equal, sizes

COUNTS = {"train": (7, 1, 13, 30, 9), "valid": (60,), "test": (2, 7, 5, 1, 13, 32)}


@pytest.fixture(scope="module")
def data(reversals, tmp_path_factory):
    folder = tmp_path_factory.mktemp("documents")
    shutil.copytree(reversals, folder, dirs_exist_ok=True)
    for split, counts in COUNTS.items():
        (folder / "text" / f"{split}.docs").write_text("".join(f"{count}\n" for count in counts))
    return folder / "bin"


def task_of(data, split="test", **options):
    config = DocumentTranslationConfig(
        data=str(data), train_subset="train", dataset_impl=None, required_seq_len_multiple=1, **options
    )
    task = DocumentTranslationTask.setup_task(config)
    task.load_dataset(split)
    return task, task.dataset(split)


@pytest.mark.parametrize("window", [1, 4, 5])
def test_a_window_is_the_sentence_and_those_before_it_in_its_document(data, window):
    task, dataset = task_of(data, window=window)
    lines = {side: (data.parent / "text" / f"test.{side}").read_text().splitlines() for side in ("de", "en")}
    first = 0
    for count in COUNTS["test"]:
        for position in range(count):
            i = first + position
            begin = max(first, i - window + 1)
            for key, side, dictionary in (("source", "de", task.src_dict), ("target", "en", task.tgt_dict)):
                ids = dataset[i][key]
                assert dictionary.string(ids) == f" {SEPARATOR} ".join(lines[side][begin : i + 1])
                assert ids[-1] == dictionary.eos() and (ids[:-1] != dictionary.eos()).all()
                sizes = dataset.src_sizes if key == "source" else dataset.tgt_sizes
                assert len(ids) == sizes[i]
        first += count
    assert len(dataset) == first


def test_batches_keep_to_the_order_of_positions(data):
    task, dataset = task_of(data)
    batches = task.get_batch_iterator(dataset, max_sentences=4, max_tokens=200, seed=1).next_epoch_itr(shuffle=False)
    seen = []
    for batch in batches:
        assert len(set(batch["position"].tolist())) == 1 and batch["nsentences"] <= 4
        seen += list(zip(batch["document"].tolist(), batch["position"].tolist(), strict=True))
    assert sorted(seen) == [(d, p) for d, count in enumerate(COUNTS["test"]) for p in range(count)]
    assert [p for _, p in seen] == sorted(p for _, p in seen)
    _, training = task_of(data, "train")
    assert sorted(training.ordered_indices()) == list(range(60)) and not training.in_order


def by_hand(task, generator, model, dataset, window):
    """Each document alone, each sentence alone, from the definition."""
    separator, eos = task.tgt_dict.index(SEPARATOR), task.tgt_dict.eos()
    found, first = {}, 0
    for count in COUNTS["test"]:
        done = []
        for position in range(count):
            i = first + position
            prefix = [t for sentence in done[max(0, position - window + 1) :] for t in [*sentence, separator]]
            source = dataset[i]["source"].unsqueeze(0)
            sample = {"net_input": {"src_tokens": source, "src_lengths": torch.tensor([source.size(1)])}}
            prefixes = torch.tensor([prefix]) if prefix else None
            tokens = generator.generate([model], sample, prefix_tokens=prefixes)[0][0]["tokens"].tolist()
            assert tokens[: len(prefix)] == prefix or len(tokens) <= len(prefix)  # the context alone fills the limit
            tokens = [t for t in tokens[len(prefix) :] if t != eos]
            done.append(tokens[: tokens.index(separator)] if separator in tokens else tokens)
            found[i] = done[-1]
        first += count
    return found


@pytest.mark.parametrize("window, plan", [(4, "softmax"), (2, "abc_mlp(slots=3)")])
def test_the_context_is_what_was_translated_before(data, window, plan):
    task, dataset = task_of(data, window=window)
    torch.manual_seed(5)  # fairseq's initialisation has no generator of its own
    model = small_translation_model(task.tgt_dict, decoder_self_attention=plan, cross_attention=plan).eval()
    with torch.no_grad():
        weight = model.decoder.output_projection.weight
        weight.mul_(6.0)  # so that the choice hangs on the context, and sentences come to an end
        model.decoder.layers[-1].final_layer_norm.bias.fill_(0.5)
        weight[task.tgt_dict.eos()] += 0.6
        weight[task.tgt_dict.index(SEPARATOR)] += 0.4
        weight[task.tgt_dict.bos()] -= 5.0
    generator = task.build_generator([model], GenerationConfig(beam=3, max_len_a=0, max_len_b=40))
    expected = by_hand(task, generator, model, dataset, window)
    assert 0 < np.mean([len(sentence) for sentence in expected.values()]) < 12
    assert len({tuple(sentence) for sentence in expected.values()}) > 5
    for batch in task.get_batch_iterator(dataset, max_sentences=4, seed=1).next_epoch_itr(shuffle=False):
        targets = batch["target"]
        for i, hypotheses in zip(batch["id"].tolist(), task.inference_step(generator, [model], batch), strict=True):
            tokens = hypotheses[0]["tokens"]
            assert [t for t in tokens.tolist() if t != task.tgt_dict.eos()] == expected[i]
            assert len(hypotheses[0]["positional_scores"]) == len(tokens)
        assert batch["target"] is not targets
        lines = (data.parent / "text" / "test.en").read_text().splitlines()
        for i, row in zip(batch["id"].tolist(), batch["target"], strict=True):
            assert task.tgt_dict.string(row[row != task.tgt_dict.pad()]) == lines[i]


@pytest.mark.training
def test_through_the_front_door(data, tmp_path):
    log = fairseq(
        "train", data, "--task", "document_translation", "--arch", "structured_transformer_abc_documents",
        *sizes(dim=16, inner=32, heads=2), "--optimizer", "adam", "--lr", 0.003, "--max-tokens", 300, "--max-epoch", 4,
        "--update-epoch-batch-itr", "True", "--no-epoch-checkpoints", "--save-dir", tmp_path, "--criterion",
        "cross_entropy",
    )
    losses = [float(loss) for loss in re.findall(r"valid on 'valid' subset \| loss ([\d.]+)", log)]
    assert len(losses) == 4 and losses[-1] < 0.93 * losses[0]
    options = ("--task", "document_translation", "--beam", 2, "--max-len-b", 5, "--path",
               tmp_path / "checkpoint_last.pt")
    texts = [fairseq("generate", data, *options, "--batch-size", size) for size in (1, 7)]
    found = [sorted(re.findall(r"^H-(\d+)\t\S+\t(.*)$", text, re.M)) for text in texts]
    assert len(found[0]) == 60 and nearly_equal(*found)
    assert not any(SEPARATOR in text for _, text in found[0])
    references = (data.parent / "text" / "test.en").read_text().splitlines()
    printed = dict(re.findall(r"^T-(\d+)\t(.*)$", texts[1], re.M))
    assert [printed[str(i)] for i in range(60)] == references


def test_shards_have_boundaries_of_their_own(data, tmp_path):
    for folder in ("bin", "text"):
        (tmp_path / folder).symlink_to(data.parent / folder)
    (tmp_path / "docs").mkdir()
    shutil.copytree(data, tmp_path / "docs" / "bin")
    (tmp_path / "docs" / "text").mkdir()
    for split, counts in {"train": (60,), "test": (60,)}.items():
        (tmp_path / "docs" / "text" / f"{split}.docs").write_text("".join(f"{count}\n" for count in counts))
    task, dataset = task_of(f"{tmp_path}/bin:{tmp_path}/docs/bin")
    assert dataset.documents.document.max() == len(COUNTS["test"]) - 1
    for epoch, documents in ((1, len(COUNTS["train"])), (2, 1), (3, len(COUNTS["train"]))):
        task.load_dataset("train", epoch)
        assert task.dataset("train").documents.document.max() == documents - 1


def test_alignments_are_of_what_follows_the_context(data):
    task, _ = task_of(data)
    separator, end = task.tgt_dict.index(SEPARATOR), task.tgt_dict.eos()
    for tokens, kept in (([5, separator, 6, 7, end], 2), ([5, separator, 6, separator, 7, end], 1)):
        words = list(range(len(tokens) - 1))
        for alignment, wanted in (
            ([(9 - t, t) for t in words], [(7 - t, t) for t in range(kept)]),
            ([[f"{t}"] for t in words], [[f"{t + 2}"] for t in range(kept)]),
            ([], []),
        ):
            hypothesis = {"tokens": torch.tensor(tokens), "positional_scores": torch.zeros(len(tokens)),
                          "alignment": alignment}
            task._cut(hypothesis, 2)
            assert hypothesis["alignment"] == wanted and len(hypothesis["tokens"]) == kept + 1


@pytest.mark.training
def test_unknown_words_are_replaced_by_those_of_the_window(data, unknown_words, tmp_path):
    lines, references = ((unknown_words / "text" / f"test.{side}").read_text().splitlines() for side in ("de", "en"))
    options = [unknown_words / "raw", "--dataset-impl", "raw", "--task", "document_translation", "--documents",
               data.parent / "text", "--window", 3]
    fairseq("train", *options, "--arch", "rnn_translation", "--embed-dim", 8, "--hidden-size", 8,
            "--encoder-layers", 1, "--decoder-layers", 1, "--optimizer", "adam", "--lr", 0.02, "--batch-size", 20,
            "--max-update", 2, "--disable-validation", "--no-epoch-checkpoints", "--save-dir", tmp_path)
    options += ["--path", tmp_path / "checkpoint_last.pt", "--beam", 2, "--max-len-b", 12, "--unkpen", -2]
    before, after = (fairseq("generate", *options, *more)
                     for more in (["--print-alignment", "hard"], ["--replace-unk"]))
    words = {kind: {int(i): text.split() for i, text in re.findall(rf"^{kind}-(\d+)\t(?:.*\t)?(.*)$", printed, re.M)}
             for kind, printed in (("H", before), ("A", before), ("D", after), ("S", after), ("T", after))}
    copied, first = 0, 0
    for count in COUNTS["test"]:
        for i in range(first, first + count):
            window = " <unk> ".join(lines[max(first, i - 2) : i + 1]).split()
            assert words["S"][i] == window
            pairs = dict(pair.split("-")[::-1] for pair in words["A"][i])
            copies = {t: window[int(pairs[str(t)])] for t, word in enumerate(words["H"][i]) if word == "<unk>"}
            assert words["D"][i] == [copies.get(t, word) for t, word in enumerate(words["H"][i])]
            copied += len(copies)
        first += count
    assert copied > 20
    assert [words["T"][i] for i in range(60)] == [line.split() for line in references]


def test_another_split_s_translations_are_no_context(data):
    task, dataset = task_of(data)
    task.load_dataset("valid")
    model = small_translation_model(task.tgt_dict).eval()
    generator = task.build_generator([model], GenerationConfig(beam=1, max_len_b=3))
    batches = task.get_batch_iterator(dataset, max_sentences=60).next_epoch_itr(shuffle=False)
    for batch in batches:
        task.inference_step(generator, [model], batch)
    task.get_batch_iterator(task.dataset("valid"), max_sentences=60)
    with pytest.raises(ValueError, match="document 1, sentence 2: sentence 1 has no translation yet"):
        task.inference_step(generator, [model], task.dataset("valid").collater([task.dataset("valid")[1]]))


def test_wrong_input(data, tmp_path):
    with pytest.raises(ValueError, match="window: expected 1 or more sentences, got 0"):
        task_of(data, window=0)
    with pytest.raises(ValueError, match="expected no --left-pad-target"):
        task_of(data, left_pad_target=True)
    with pytest.raises(ValueError, match="test.docs: expected the number of sentences of each document"):
        task_of(data, documents=str(tmp_path))
    (tmp_path / "test.docs").write_text("3\n0\n57\n")
    with pytest.raises(ValueError, match="test.docs, line 2: expected a number of sentences, got '0'"):
        task_of(data, documents=str(tmp_path))
    (tmp_path / "test.docs").write_text("3\n50\n")
    with pytest.raises(ValueError, match="its documents have 53 sentences, the text has 60"):
        task_of(data, documents=str(tmp_path))
    (tmp_path / "none.docs").touch()
    assert len(read_documents(tmp_path / "none.docs", 0).position) == 0
    task, dataset = task_of(data)
    model = small_translation_model(task.tgt_dict).eval()
    generator = task.build_generator([model], GenerationConfig(beam=1, max_len_b=3))
    later = int(np.flatnonzero(dataset.documents.position == 3)[0])
    with pytest.raises(ValueError, match="sentence 4: sentence 1 has no translation yet; decode a whole split"):
        task.inference_step(generator, [model], dataset.collater([dataset[later]]))
    with pytest.raises(ValueError, match="expected no --prefix-size"):
        task.inference_step(generator, [model], dataset.collater([dataset[0]]), prefix_tokens=torch.tensor([[4]]))
