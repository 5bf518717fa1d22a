"""`seqstruct export` and `seqstruct import`: trained models leave for transformers and come back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)

import seqstruct
from seqstruct.bridge.checkpoints import load_checkpoint
from seqstruct.cli import main
from seqstruct.data.files import sha256

pytestmark = pytest.mark.training  # all use a trained model


@pytest.fixture(scope="module")
def exported(translation, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    scores = []
    for name, text in (("valid", "BLEU|nrefs:1|tok:13a = 10.9\n"), ("test", "BLEU|nrefs:1|tok:13a = 12.3\n")):
        (folder / name).mkdir()
        (folder / name / "score.txt").write_text(text)
        scores += ["--scores", str(folder / name / "score.txt")]
    assert main(["export", str(translation.checkpoint), "--out", str(folder / "model"), *scores, "--licence",
                 "made up, none needed"]) == 0
    return folder / "model"


def generated(folder: Path, texts: list[str], **options) -> list[str]:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    found = model.generate(**tokenizer(texts, return_tensors="pt", padding=True), **options)
    return tokenizer.batch_decode(found, skip_special_tokens=True)


def test_translations_by_beam_search_are_those_of_fairseq(translation, exported):
    expected = seqstruct.load(translation.checkpoint).translate(translation.sources, 5, max_len_b=24)
    assert generated(exported, translation.sources, max_length=26) == expected and len(set(expected)) > 3


def test_the_tokenizer_is_that_of_the_run(translation, exported):
    tokenizer, loaded = AutoTokenizer.from_pretrained(exported), seqstruct.load(translation.checkpoint)
    loaded.task.load_dataset("test")
    dataset = loaded.task.datasets["test"]
    for number, (source, reference) in enumerate(zip(translation.sources, translation.references, strict=True)):
        ids = tokenizer(source, text_target=reference)
        assert ids["input_ids"] == dataset[number]["source"].tolist()
        assert ids["labels"] == dataset[number]["target"].tolist()
        assert tokenizer.decode(ids["labels"], skip_special_tokens=True) == reference
    assert tokenizer("<s> </s>")["input_ids"].count(tokenizer.eos_token_id) == 1  # text like any other
    again = exported.parent / "tokenizer"
    tokenizer.save_pretrained(again)
    assert AutoTokenizer.from_pretrained(exported)(reference) == tokenizer(reference)
    assert {path.name for path in again.iterdir()} >= {"vocab.source.txt", "subwords.target", "tokenizer_config.json"}


def test_the_card_is_written_from_the_run(translation, exported):
    text = (exported / "README.md").read_text("utf-8")
    described = json.loads((translation.data / "corpus.json").read_text("utf-8"))
    best = load_checkpoint(translation.checkpoint)["optimizer_history"][-1]["num_updates"]  # which, rounding decides
    for said in ("BLEU|nrefs:1|tok:13a = 10.9", "BLEU|nrefs:1|tok:13a = 12.3", "made up, none needed",
                 "`softmax + rfa(features=8)`", f"\n{best} updates. ", "trust_remote_code=True",
                 *described["sha256"].values()):
        assert said in text
    assert str(translation.data) not in text
    assert (exported / "LICENSE").read_text("utf-8").startswith("MIT License")


CODE = """
import sys
sys.modules["seqstruct"] = sys.modules["fairseq"] = None  # neither is to be found
from transformers import AutoModel, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1], trust_remote_code=True)
model = AutoModel.from_pretrained(sys.argv[1], trust_remote_code=True).eval()
assert type(model.config) is model.config_class, "code is there twice, and its kinds of sites are not the same"
tokens = tokenizer(sys.argv[2:], return_tensors="pt", padding=True)
if model.can_generate():
    found = tokenizer.batch_decode(model.generate(**tokens, max_length=26), skip_special_tokens=True)
else:
    found = [model.config.id2label[number] for number in model(**tokens).logits.argmax(1).tolist()]
print(*found, sep="\\n")
model.save_pretrained(sys.argv[1] + "-again")
AutoModel.from_pretrained(sys.argv[1] + "-again", trust_remote_code=True)
"""


def alone(folder: Path, texts: Sequence[str], where: Path) -> subprocess.CompletedProcess:
    """What the folder's code prints of texts without seqstruct and fairseq."""
    return subprocess.run(
        [sys.executable, "-c", CODE, folder, *texts], capture_output=True, text=True, cwd=where,
        env={"PATH": os.environ["PATH"], "HF_HOME": str(where), "HF_HUB_OFFLINE": "1"},
    )


@pytest.mark.slow
def test_the_folder_needs_neither_seqstruct_nor_fairseq(translation, exported, tmp_path):
    done = alone(exported, translation.sources[:3], tmp_path)
    assert done.stdout.splitlines() == generated(exported, translation.sources[:3], max_length=26), done.stderr
    assert "to build them" not in done.stderr.lower()


@pytest.mark.slow
def test_a_folder_of_other_mechanisms_than_the_default_needs_neither(classifier, tmp_path):
    folder, texts = tmp_path / "model", [text for _, text in classifier.rows[:4]]
    assert main(["export", str(classifier.checkpoint), "--out", str(folder)]) == 0
    done = alone(folder, texts, tmp_path)
    assert done.stdout.splitlines() == seqstruct.load(classifier.checkpoint).classify(texts), done.stderr


def test_a_model_comes_back(translation, exported, tmp_path, capsys):
    out = tmp_path / "back.pt"
    words = ["import", str(exported), "--data", str(translation.data), "--out", str(out)]
    assert main(words) == 0
    assert capsys.readouterr().out == f"{out}: structured_transformer, over {translation.data}\n"
    first, back = (seqstruct.load(path, translation.data) for path in (translation.checkpoint, out))
    own, found = first.model.state_dict(), back.model.state_dict()
    assert own.keys() == found.keys() and all(torch.equal(own[name], found[name]) for name in own)
    assert back.translate(translation.sources, max_len_b=24) == first.translate(translation.sources, max_len_b=24)
    assert main(words) == 1
    assert "back.pt" in capsys.readouterr().err


def test_what_cannot_come_back_is_refused(translation, language_model, exported, tmp_path, capsys):
    def error(folder: Path, data: Path) -> str:
        assert main(["import", str(folder), "--data", str(data), "--out", str(tmp_path / "x.pt")]) == 1
        assert not (tmp_path / "x.pt").exists()
        return capsys.readouterr().err

    other = tmp_path / "other"
    other.mkdir()
    assert "config.json: no such file" in error(other, translation.data)
    for path in exported.iterdir():
        (other / path.name).write_bytes(path.read_bytes())
    symbols = (other / "vocab.source.txt").read_text("utf-8")
    (other / "vocab.source.txt").write_text(symbols.replace("the\n", "eht\n") + "more\n", encoding="utf-8")
    assert "are not those of the data's source dictionary" in error(other, translation.data)
    (other / "config.json").write_text('{"model_type": "gpt2"}')
    assert "expected a model of type seqstruct, got gpt2" in error(other, translation.data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:1000])


@pytest.mark.parametrize(("name", "damage", "said"), [
    ("model.safetensors", cut, "truncated or altered"),
    ("model.safetensors", lambda path: path.write_bytes(b""), "truncated or altered"),
    ("config.json", lambda path: path.write_text("[1]"), "expected an object in JSON, got list"),
    ("config.json", lambda path: path.write_text(""), "truncated or altered: Expecting value"),
    ("config.json", lambda path: path.write_text('{"model_type": "seqstruct", "vocab_size": "x"}'), "vocab_size"),
    ("vocab.source.txt", lambda path: path.write_bytes(b"\xff\xfe\n"), "truncated or altered: 'utf-8'"),
])
def test_a_damaged_folder_is_one_sentence(translation, exported, tmp_path, capfd, name, damage, said):
    folder, out = tmp_path / "copy", tmp_path / "x.pt"
    shutil.copytree(exported, folder)
    damage(folder / name)
    assert main(["import", str(folder), "--data", str(translation.data), "--out", str(out)]) == 1
    lines = [line for line in capfd.readouterr().err.splitlines() if line]
    assert lines[-1].startswith(f"seqstruct import: {folder / name}: ") and len(lines) == 1
    assert said in lines[-1] and not out.exists()


def test_weights_of_another_size_are_told_before_transformers_reports(translation, exported, tmp_path, capfd):
    folder = tmp_path / "copy"
    shutil.copytree(exported, folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"decoder_ffn_embed_dim": 20}))
    assert main(["import", str(folder), "--data", str(translation.data), "--out", str(tmp_path / "x.pt")]) == 1
    said = capfd.readouterr().err
    assert f"{folder / 'model.safetensors'}: decoder.layers.0.fc1." in said and "LOAD REPORT" not in said
    assert "is (24" in said and "config.json beside it asks for (20" in said


def test_a_language_model_goes_on_as_by_fairseq(language_model, tmp_path):
    folder, prefixes = tmp_path / "model", ["the cat", "12 lions", "slowly and"]
    assert main(["export", str(language_model.checkpoint), "--out", str(folder)]) == 0
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    loaded = seqstruct.load(language_model.checkpoint)
    expected = loaded.generate(prefixes, max_len_b=20)
    for prefix, text in zip(prefixes, expected, strict=True):
        found = model.generate(**tokenizer(prefix, return_tensors="pt"), max_length=21)
        assert tokenizer.batch_decode(found, skip_special_tokens=True) == [text]
    ids = tokenizer(language_model.lines[0])["input_ids"]
    inputs = torch.tensor([[*ids, tokenizer.eos_token_id]])
    scores = model(inputs[:, :-1]).logits.log_softmax(-1).gather(2, inputs[:, 1:, None]).sum()
    assert float(scores.detach()) == pytest.approx(loaded.score(language_model.lines[0]), abs=1e-3)
    out = tmp_path / "back.pt"
    assert main(["import", str(folder), "--data", str(language_model.data), "--out", str(out)]) == 0
    assert seqstruct.load(out, language_model.data).generate(prefixes, max_len_b=20) == expected


def test_a_language_model_begins_as_it_was_trained(language_model, tmp_path):
    """There and back, by the end of the text before or by a beginning."""
    state = torch.load(language_model.checkpoint, weights_only=False)
    for begins, first in ((False, 2), (True, 0)):
        checkpoint, folder, out = (tmp_path / f"{begins}{end}" for end in (".pt", "", "-back.pt"))
        state["cfg"]["task"]["add_bos_token"] = begins
        torch.save(state, checkpoint)
        data = ["--data", str(language_model.data)]
        assert main(["export", str(checkpoint), *data, "--out", str(folder)]) == 0
        model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
        assert tokenizer("")["input_ids"] == [first] == [model.generation_config.bos_token_id]
        assert main(["import", str(folder), *data, "--out", str(out)]) == 0
        there, back = (seqstruct.load(path, language_model.data) for path in (checkpoint, out))
        assert there.score("the cat") == back.score("the cat")


def test_a_classifier_labels_as_by_fairseq(classifier, tmp_path, capsys):
    folder, texts = tmp_path / "model", [text for _, text in classifier.rows]
    assert main(["export", str(classifier.checkpoint), "--out", str(folder)]) == 0
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.model_max_length == seqstruct.load(classifier.checkpoint).model.max_positions()
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    logits = model(**tokenizer(texts, return_tensors="pt", padding=True)).logits
    expected = seqstruct.load(classifier.checkpoint).classify(texts)
    assert [model.config.id2label[index] for index in logits.argmax(1).tolist()] == expected and len(set(expected)) == 2
    out = tmp_path / "back.pt"
    assert main(["import", str(folder), "--data", str(classifier.data), "--out", str(out)]) == 0
    assert seqstruct.load(out, classifier.data).classify(texts) == expected
    config = json.loads((folder / "config.json").read_text("utf-8"))
    words = ["import", str(folder), "--data", str(classifier.data), "--out", str(tmp_path / "other.pt")]
    (folder / "config.json").write_text(json.dumps(config | {"id2label": {"0": "good", "1": "bad"}}))
    assert main(words) == 1
    assert "config.json: its labels, good, bad, are not those of the data, bad, good" in capsys.readouterr().err
    unnamed = {name: value for name, value in config.items() if name not in ("id2label", "label2id")}
    (folder / "config.json").write_text(json.dumps(unnamed))
    assert main(words) == 0


def test_nothing_is_left_of_what_cannot_be_exported(translation, tmp_path, capsys):
    taken = SimpleNamespace(folder=tmp_path / "taken")
    taken.folder.mkdir()
    (taken.folder / "file").write_text("x")
    before = sha256(taken.folder / "file")
    assert main(["export", str(translation.checkpoint), "--out", str(taken.folder)]) == 1
    assert sha256(taken.folder / "file") == before and "taken" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "none.pt"), "--out", str(tmp_path / "new")]) == 1
    (taken.folder / "file").write_bytes(b"PK\x80\xff")
    assert main(["export", str(translation.checkpoint), "--out", str(tmp_path / "new"), "--scores",
                 str(taken.folder / "file")]) == 1
    assert f"{taken.folder / 'file'}: not UTF-8 after line 0" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
