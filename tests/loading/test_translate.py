"""Translations and their scores from raw text, against fairseq-generate on the prepared data."""

from __future__ import annotations

import argparse
import copy
import math
import os
import re
import shutil
from pathlib import Path

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from fairseq.tasks.translation import TranslationConfig, TranslationTask

import seqstruct
from seqstruct.data.text.pipeline import TextPipeline
from seqstruct.loading.translate import Translating
from seqstruct.scoring.hypotheses import read_generate, to_text
from tests.models.building import dictionary_of
from tests.models.front_door import fairseq, nearly_equal

pytestmark = pytest.mark.training  # all use a trained model

LENGTH = ["--max-len-b", 24]


@pytest.fixture(scope="module")
def loaded(translation):
    return seqstruct.load(translation.checkpoint)


def generated(translation, *options):
    return fairseq("generate", translation.data / "bin", "--task", "translation", "--path", translation.checkpoint,
                   "--batch-size", 5, *options)


@pytest.mark.parametrize("beam, options", [(1, {}), (5, {}), (3, {"lenpen": 0.3, "unkpen": 2.0, "min_len": 4})])
def test_translations_are_those_of_fairseq_generate(translation, loaded, beam, options):
    flags = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
    lines = generated(translation, "--beam", beam, *LENGTH, *flags).splitlines()
    expected = to_text(read_generate(lines, "generate", len(translation.sources)), "bpe", "en")
    found = loaded.translate(translation.sources, beam, max_len_b=24, **options)
    assert nearly_equal(found, expected) and len(set(found)) > 3
    assert nearly_equal(loaded.translate(translation.sources, beam, batch_size=1, max_len_b=24, **options), found)
    assert loaded.translate(translation.sources[2], beam, batch_size=1, max_len_b=24, **options) == found[2]


def test_scores_are_those_of_fairseq_generate(translation, loaded):
    printed = generated(translation, "--score-reference")
    expected = {int(number): sum(map(float, scores.split())) * math.log(2)
                for number, scores in re.findall(r"^P-(\d+)\t(.*)$", printed, re.MULTILINE)}
    found = loaded.score(translation.sources, translation.references)
    assert found == pytest.approx([expected[i] for i in range(len(found))], abs=2e-3)
    assert loaded.score(translation.sources[1], translation.references[1], batch_size=1) == pytest.approx(found[1])


def test_a_copy_scores_with_parameters_of_its_own(translation, loaded):
    pair = translation.sources[1], translation.references[1]
    score, copied = loaded.score(*pair), copy.deepcopy(loaded)
    with torch.no_grad():
        for parameter in copied.model.parameters():
            parameter.zero_()
    symbols = len(copied.target.encode(pair[1])) + 1
    assert copied.score(*pair) == pytest.approx(-symbols * math.log(len(copied.task.target_dictionary)), rel=1e-5)
    assert loaded.score(*pair) == score


def test_an_lstm_of_fairseq_scores_sentences_of_any_lengths_together():
    words = dictionary_of("abcdefgh")
    config = TranslationConfig(source_lang="x", target_lang="y", max_source_positions=20, max_target_positions=20)
    task, sizes = TranslationTask(config, words, words), argparse.Namespace(
        encoder_embed_dim=8, encoder_hidden_size=8, decoder_embed_dim=8, decoder_hidden_size=8, decoder_out_embed_dim=8,
        max_source_positions=20, max_target_positions=20, criterion="cross_entropy")
    ARCH_CONFIG_REGISTRY["lstm"](sizes)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        model = ARCH_MODEL_REGISTRY["lstm"].build_model(sizes, task)
    loaded = Translating(Path("x.pt"), model, task, torch.device("cpu"), (TextPipeline(), TextPipeline()))
    sources = ["a b c", "h", "a b", "c d e f g", "b"]
    alone = [loaded.score(source, "a b") for source in sources]
    for size in (1, 2, 32):
        assert loaded.score(sources, ["a b"] * 5, batch_size=size) == pytest.approx(alone, rel=1e-5)


def test_sampling_is_by_its_seed_and_leaves_the_random_state(translation, loaded):
    before = torch.get_rng_state()
    first, again, other = (
        loaded.translate(translation.sources, 1, sampling=True, max_len_b=12, seed=seed) for seed in (1, 1, 2)
    )
    assert first == again != other
    assert torch.equal(torch.get_rng_state(), before)


def test_pieces_are_found_beside_the_checkpoint_or_below_a_folder_above_it(translation, loaded, tmp_path, monkeypatch):
    expected = loaded.translate(translation.sources[:2], max_len_b=24)
    state = torch.load(translation.checkpoint, weights_only=True)
    state["cfg"]["task"]["data"] = "data-bin/mine/bin"
    (tmp_path / "runs" / "x").mkdir(parents=True)
    moved = tmp_path / "runs" / "x" / "checkpoint_best.pt"
    torch.save(state, moved)
    said = f"needs dict.SOURCE.txt and dict.TARGET.txt: looked for in .*{moved.parent}.*say where"
    with pytest.raises(ValueError, match=said):
        seqstruct.load(moved)
    shutil.copytree(translation.data, tmp_path / "data-bin" / "mine")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert seqstruct.load(os.path.relpath(moved)).translate(translation.sources[:2], max_len_b=24) == expected
    for name in ("corpus.json", "codes.bpe", "bin/dict.de.txt", "bin/dict.en.txt"):
        shutil.move(tmp_path / "data-bin" / "mine" / name, moved.parent)
    assert seqstruct.load(moved).translate(translation.sources[:2], max_len_b=24) == expected
    for place in (translation.data, translation.data / "bin"):
        assert seqstruct.load(moved, place).translate(translation.sources[:2], max_len_b=24) == expected
    (moved.parent / "codes.bpe").unlink()
    with pytest.raises(ValueError, match="codes.bpe is missing"):
        seqstruct.load(moved)
    (moved.parent / "corpus.json").unlink()
    state["cfg"]["task"] |= {"source_lang": "de", "target_lang": "en"}
    torch.save(state, moved)
    with pytest.raises(ValueError, match="how text becomes tokens is not known: looked for corpus.json"):
        seqstruct.load(moved)
    tokens = " ".join(loaded.source.encode(translation.sources[0]))
    assert loaded.target.decode(seqstruct.load(moved, tokenized=True).translate(tokens, max_len_b=24).split()) == (
        expected[0]
    )


def test_what_is_wrong_is_said(translation, loaded, tmp_path):
    with pytest.raises(ValueError, match="a translation model does not classify: ask translate or score"):
        loaded.classify(["ein Hund"])
    with pytest.raises(ValueError, match="does not parse"):
        loaded.parse(["ein Hund"])
    with pytest.raises(ValueError, match="does not generate"):
        loaded.generate("ein Hund")
    assert loaded.translate([]) == [] and loaded.score([], []) == []
    with pytest.raises(ValueError, match="sentence 2 is empty"):
        loaded.translate(["ein Hund", " \n"])
    with pytest.raises(ValueError, match="sentence 1 has 4. tokens with its end, and the model takes 40 at most"):
        loaded.translate("Hund " * 41)
    with pytest.raises(ValueError, match="text 2: expected a string, got int"):
        loaded.translate(["ein Hund", 3])
    with pytest.raises(ValueError, match="expected a text or a list of texts, got NoneType"):
        loaded.translate(None)
    with pytest.raises(ValueError, match="expected options of min_len, .*, got 'lenpenalty'"):
        loaded.translate("ein Hund", lenpenalty=1.0)
    with pytest.raises(ValueError, match="beam: expected 1 or more, got 0"):
        loaded.translate("ein Hund", beam=0)
    with pytest.raises(ValueError, match="--sampling-topk requires --sampling"):
        loaded.translate("ein Hund", sampling_topk=3)
    for size, said in ((0, "1 or more, got 0"), (-2, "1 or more, got -2"), (1.5, "a whole number, got 1.5"),
                       (True, "a whole number, got True")):
        with pytest.raises(ValueError, match=f"batch_size: expected {said}"):
            loaded.translate("ein Hund", batch_size=size)
        with pytest.raises(ValueError, match=f"batch_size: expected {said}"):
            loaded.score("ein Hund", "a dog", batch_size=size)
    with pytest.raises(ValueError, match="expected a translation of each of 2 sentences, got 1"):
        loaded.score(["ein Hund", "ein Mann"], ["a dog"])
    with pytest.raises(ValueError, match="expected a translation of each of 1 sentences, got none"):
        loaded.score("ein Hund")
    with pytest.raises(ValueError, match="translation 1 is empty"):
        loaded.score("ein Hund", "")
    assert isinstance(loaded.translate("\u2603 \u4f60\u597d Xqz", max_len_b=5), str)


@pytest.mark.parametrize(("options", "said"), [
    ({"min_len": 10, "max_len_b": 3}, "min_len: expected at most the length that max_len_a, .* allow, got 10"),
    ({"max_len_b": -1}, "max_len_b: expected 0 or more, got -1"),
    ({"max_len_b": 0}, "min_len: expected at most .*, got 1"),
    ({"beam": 1.5}, "beam: expected a whole number, got 1.5"),
    ({"beam": "5"}, "beam: expected a whole number, got '5'"),
    ({"beam": True}, "beam: expected a whole number, got True"),
    ({"unkpen": "a"}, "unkpen: expected a number, got 'a'"),
    ({"max_len_a": math.inf}, "max_len_a: expected a finite number, 0 or more, got inf"),
    ({"lenpen": math.nan}, "lenpen: expected a finite number, got nan"),
    ({"sampling": True, "sampling_topk": -5}, "sampling_topk: expected -1 or more, got -5"),
    ({"sampling": True, "sampling_topk": 10**6}, r"sampling_topk: expected at most the \d+ symbols, got 1000000"),
    ({"sampling": True, "sampling_topp": 2.0}, "sampling_topp: expected a number from 0 to 1, or -1 for none, got 2.0"),
    ({"sampling": True, "temperature": 0}, "temperature: expected a finite number above 0, got 0"),
    ({"sampling": "yes"}, "sampling: expected True or False, got 'yes'"),
    ({"no_repeat_ngram_size": -1}, "no_repeat_ngram_size: expected 0 or more, got -1"),
])
def test_options_that_do_not_fit(loaded, options, said):
    with pytest.raises(ValueError, match=said):
        loaded.translate("ein Hund", **options)


def test_options_at_their_bounds(loaded):
    for options in ({"unkpen": math.inf}, {"max_len_b": 0, "min_len": 0}, {"lenpen": -1}, {"sampling_topk": -1},
                    {"sampling": True, "sampling_topp": 1, "sampling_topk": 0, "beam": 1}):
        assert isinstance(loaded.translate("ein Hund", **{"max_len_b": 5, **options}), str)


def test_files_that_are_no_checkpoint_are_refused(translation, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere.pt: no such checkpoint"):
        seqstruct.load(tmp_path / "nowhere.pt")
    with pytest.raises(ValueError, match="is a folder: expected a checkpoint, such as checkpoint_best.pt in it"):
        seqstruct.load(translation.checkpoint.parent)
    torch.save({"model": {"weight": torch.zeros(2)}}, tmp_path / "bare.pt")
    with pytest.raises(ValueError, match="it has no configuration"):
        seqstruct.load(tmp_path / "bare.pt")
    state = torch.load(translation.checkpoint, weights_only=True)
    state["cfg"]["task"]["_name"] = "somebody_elses"
    torch.save(state, tmp_path / "other.pt")
    with pytest.raises(ValueError, match="the task 'somebody_elses' is not known to fairseq"):
        seqstruct.load(tmp_path / "other.pt")
    with pytest.raises(ValueError, match="device: expected one of this machine, got 'abacus'"):
        seqstruct.load(translation.checkpoint, device="abacus")
    with pytest.raises(ValueError, match="looked for in .*empty"):
        seqstruct.load(translation.checkpoint, tmp_path / "empty")
