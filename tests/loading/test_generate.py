"""Language models of raw text, against fairseq-interactive and fairseq-eval-lm on the prepared data."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pytest
import torch
from fairseq.data import indexed_dataset
from fairseq.tasks.language_modeling import LanguageModelingConfig, LanguageModelingTask

import seqstruct
from seqstruct.data.text.pipeline import TextPipeline
from seqstruct.loading.generate import Generating
from seqstruct.models.transformer.lm import StructuredTransformerLanguageModel
from tests.data.scripts import prepared
from tests.loading.trained import sizes, train
from tests.models.building import dictionary_of, language_model_config
from tests.models.front_door import fairseq

pytestmark = pytest.mark.training  # all use a trained model

PREFIXES = ["The cat", "Slowly and 7", "lions", "Never the cat saw 12"]


@pytest.fixture(scope="module")
def loaded(language_model):
    return seqstruct.load(language_model.checkpoint)


@pytest.mark.parametrize("beam", [1, 4])
def test_texts_go_on_as_by_fairseq_interactive(language_model, loaded, tmp_path, beam):
    lines = [" ".join(loaded.source.encode(prefix)) for prefix in PREFIXES]
    (tmp_path / "prefixes").write_text("".join(f"{line}\n" for line in lines))
    printed = fairseq("interactive", language_model.data / "bin", "--task", "language_modeling", "--path",
                      language_model.checkpoint, "--beam", beam, "--max-len-b", 14, "--input", tmp_path / "prefixes")
    found = re.findall(r"^H-\d+\t\S+\t(.*)$", printed, re.MULTILINE)
    expected = [loaded.target.decode(tokens.split()) for tokens in found]
    assert [loaded.generate(prefix, beam, max_len_b=14) for prefix in PREFIXES] == expected
    assert loaded.generate(PREFIXES, beam, batch_size=1, max_len_b=14) == expected
    together = loaded.generate(PREFIXES, beam, max_len_b=14)
    assert all(text.startswith(begun[:12]) for text, begun in zip(together, expected, strict=True))
    assert expected[1].startswith("slowly and N")
    assert loaded.generate(beam=beam, max_len_b=14) == loaded.generate("", beam, max_len_b=14) != ""


def test_sampling(loaded):
    drawn = dict(sampling=True, max_len_b=14)
    before = torch.get_rng_state()
    texts = loaded.generate(["The"] * 9, **drawn)
    assert torch.equal(torch.get_rng_state(), before)
    assert texts == loaded.generate(["The"] * 9, **drawn) != loaded.generate(["The"] * 9, seed=2, **drawn)
    assert len(set(texts)) > 4
    assert loaded.generate(PREFIXES, sampling_topk=1, batch_size=1, **drawn) == [
        loaded.generate(prefix, max_len_b=14) for prefix in PREFIXES]
    assert loaded.generate("The", temperature=1e-3, **drawn) == loaded.generate("The", max_len_b=14)


def test_a_copy_has_parameters_of_its_own(loaded):
    copied, scores = copy.deepcopy(loaded), loaded.score(PREFIXES)
    assert copied.score(PREFIXES) == scores
    with torch.no_grad():
        for parameter in copied.model.parameters():
            parameter.zero_()
    assert copied.score(PREFIXES) != scores == loaded.score(PREFIXES)


def test_scores_sum_to_that_of_fairseq_eval_lm(language_model, loaded):
    printed = fairseq("eval_lm", language_model.data / "bin", "--task", "language_modeling", "--path",
                      language_model.checkpoint, "--sample-break-mode", "eos", "--gen-subset", "test",
                      "--output-word-probs", "--results-path", language_model.data)
    found = loaded.score(language_model.lines)
    lengths = [len(loaded.source.encode(line)) + 1 for line in language_model.lines]
    nats = -sum(found) / sum(lengths)
    bits = float(re.search(r"Loss \(base 2\): ([\d.]+)", printed)[1])
    assert bits == pytest.approx(nats / 0.6931471805599453, abs=2e-3)
    assert loaded.score(language_model.lines[3], batch_size=1) == pytest.approx(found[3])
    assert max(found) < 0.0


def test_strings_of_a_language_begin_as_in_training(tmp_path):
    small = "--train 20 --valid 20 --test-per-length 1 --lengths 4:6 --test-lengths 4:6".split()
    prepared("cfl", "dyck", *small, "--out", tmp_path / "data")
    checkpoint = train(tmp_path / "data", tmp_path / "run", "--task", "cfl_language_modeling", "--arch",
                       "structured_transformer_lm", *sizes("decoder"), "--criterion", "cfl_cross_entropy",
                       "--batch-size", 1, "--max-update", 2)
    loaded = seqstruct.load(checkpoint)
    loaded.task.load_dataset("valid")
    dataset = loaded.task.datasets["valid"]
    sample = dataset.collater([dataset[0]])
    with torch.no_grad():
        found = loaded.model(**sample["net_input"])[0].log_softmax(2).gather(2, sample["target"].unsqueeze(2)).sum()
    text = loaded.task.source_dictionary.string(sample["target"][0])
    assert loaded.score(text) == pytest.approx(float(found), abs=1e-4)
    prefixes = [text[:3], "", text[:1], text[:5]]  # one to a batch where lengths differ: nothing pads them
    alone = [loaded.generate(prefix, max_len_b=9) for prefix in prefixes]
    assert loaded.generate(prefixes, max_len_b=9) == loaded.generate(prefixes, batch_size=1, max_len_b=9) == alone


@pytest.mark.parametrize("options", [{}, {"add_bos_token": True}, {"output_dictionary_size": 8}])
def test_texts_are_scored_as_blocks_of_one_line(options, tmp_path):
    """As fairseq-eval-lm's data set has them: what stands before a text, and words that the output has not."""
    words, lines = dictionary_of("abcdefgh"), ["a b g", "h", "a a d e b"]
    words.save(str(tmp_path / "dict.txt"))
    builder = indexed_dataset.make_builder(str(tmp_path / "test.bin"), "mmap", vocab_size=len(words))
    for line in lines:
        builder.add_item(words.encode_line(line, add_if_not_exist=False))
    builder.finalize(str(tmp_path / "test.idx"))
    config = LanguageModelingConfig(
        data=str(tmp_path), sample_break_mode="eos", tokens_per_sample=20, use_plasma_view=False, dataset_impl="mmap",
        pad_to_fixed_length=False, pad_to_fixed_bsz=False, seed=1, **options,
    )
    task = LanguageModelingTask.setup_task(config)
    task.load_dataset("test")
    with torch.random.fork_rng():
        torch.manual_seed(5)
        model = StructuredTransformerLanguageModel.build_model(language_model_config(decoder_layers=2), task).eval()
    loaded = Generating(Path("x.pt"), model, task, torch.device("cpu"), (TextPipeline(), TextPipeline()))
    expected, before = [], "add_bos_token" in options
    for index in range(3):
        sample = task.datasets["test"].collater([task.datasets["test"][index]])
        with torch.no_grad():
            scores = model.get_normalized_probs(model(**sample["net_input"]), True, sample)
        of_target = scores.gather(2, sample["target"][..., None])
        expected.append(float(of_target[0, before:].sum()))
    assert loaded.score(lines) == pytest.approx(expected, rel=1e-5)
    assert [loaded.score(line) for line in lines] == pytest.approx(expected, rel=1e-5)
    if "output_dictionary_size" in options:
        with pytest.raises(ValueError, match="prefix 2: g is not among the 8 words that come out"):
            loaded.generate(["a b", "a g"])


def test_what_is_wrong_is_said(loaded):
    with pytest.raises(ValueError, match="a language model does not translate: ask generate or score"):
        loaded.translate("the cat")
    with pytest.raises(ValueError, match="a language model does not parse"):
        loaded.parse("the cat")
    with pytest.raises(ValueError, match="takes no translations"):
        loaded.score("the cat", "die Katze")
    with pytest.raises(ValueError, match="text 2 is empty"):
        loaded.score(["the cat", ""])
    with pytest.raises(ValueError, match="prefix 1 has 9. tokens with its end, and the model takes 60 at most"):
        loaded.generate(". " * 90)
    with pytest.raises(ValueError, match="prefix 2 has 9 tokens, and max_len_b and max_len_a allow 8"):
        loaded.generate([". " * 8, ". " * 9], max_len_b=8)
    assert loaded.generate(". " * 9, max_len_b=9) == loaded.generate(". " * 9, max_len_a=0.9, max_len_b=0).strip()
    with pytest.raises(ValueError, match="max_len_b: expected a whole number"):
        loaded.generate(".", max_len_b="8")
    assert loaded.generate([]) == [] and loaded.score([]) == []
    assert isinstance(loaded.score("\u2603 xyz"), float)


@pytest.mark.parametrize(
    "corpus, task, criterion, arch",
    [
        (["flare", "parity"], "recognition", "recognition_cross_entropy", "transformer_recognizer"),
        (["abilities", "--task", "parity"], "symbol_tagging", "symbol_tagging", "structured_transformer_lm"),
    ],
)
def test_what_predicts_no_next_symbol_is_no_language_model(corpus, task, criterion, arch, tmp_path):
    prepared(*corpus, "--train", 20, "--valid", 20, "--test", 20, "--out", tmp_path / "data")
    checkpoint = train(tmp_path / "data", tmp_path / "run", "--task", task, "--criterion", criterion, "--arch", arch,
                       *sizes("decoder"), "--batch-size", 20, "--max-update", 1)
    with pytest.raises(ValueError, match=f"of the task {task} is none of a translation model, a language model"):
        seqstruct.load(checkpoint)
