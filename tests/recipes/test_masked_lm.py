"""The recipe of continued masked language models: rows, plans, data, YAML and errors."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from fairseq.data import Dictionary, data_utils

from seqstruct.attention import Site, parse_choices
from seqstruct.data.text_classification.folder import Sentence
from seqstruct.harness.launch import load_recipe
from tests.recipes.runs import RefusedRun

ROOT = Path(__file__).resolve().parents[2]
FOLDER, CONFIGS = ROOT / "recipes" / "peng_thesis", ROOT / "configs" / "peng_thesis"
RECIPE = load_recipe(FOLDER / "masked_lm.py")
MODULE = sys.modules[type(RECIPE).__module__]


@pytest.mark.parametrize("scale, table", [("small", "5.6-stand-in"), ("paper", "5.6")])
def test_every_row_has_a_place_in_the_published_tables(scale, table):
    tables = json.loads((FOLDER / "paper.json").read_text("utf-8"))["tables"]
    cells = RECIPE.cells(scale)
    assert {cell.row for cell in cells} == {entry["row"] for entry in tables[table]["rows"]}
    for cell in cells:
        assert len(parse_choices(MODULE.plan(cell.row, MODULE.SETTINGS[scale]), 2, Site.ENCODER_SELF)) == 2
        assert RECIPE.dataset(cell) and RECIPE.estimate(cell).disk > 0
    hashes = {RECIPE.configuration_hash(cell) for cell in cells}
    assert len(hashes) == len(cells)


def test_fine_tuning_is_that_of_the_source():
    options = MODULE.tuning_options("MNLI ABC-MLP 64", "paper")
    options = dict(zip(options, [*options[1:], "--"], strict=True))
    assert options["--num-classes"] == "3" and options["--total-num-update"] == "123873"
    assert options["--encoder-self-attention"] == "abc_mlp(slots=64)" and options["--encoder-layers"] == "12"
    assert MODULE.plan("SST-2 Linformer 128", MODULE.SETTINGS["paper"]) == "linformer(slots=128, length=512)"


def test_labelled_sentences_are_in_the_subwords_of_the_text(tmp_path):
    texts = {"train": ["low lower lowest new newer newest"] * 20, "valid": ["newest lowest"]}
    sentences = {split: [Sentence("1", ["low", "lowest"]), Sentence("0", ["newer"])] for split in ("train", "valid")}
    MODULE.write_data(tmp_path / "data", texts, sentences, 12)
    dictionary = Dictionary.load(str(tmp_path / "data/mlm/dict.txt"))
    assert (tmp_path / "data/task/input0/dict.txt").read_text() == (tmp_path / "data/mlm/dict.txt").read_text()
    found = data_utils.load_indexed_dataset(str(tmp_path / "data/task/input0/valid"), dictionary)
    assert dictionary.string(found[0], "subword_nmt") == "low lowest"
    labels = Dictionary.load(str(tmp_path / "data/task/label/dict.txt"))
    found = data_utils.load_indexed_dataset(str(tmp_path / "data/task/label/valid"), labels)
    assert [labels.string(found[i]) for i in range(2)] == ["1", "0"]


def test_the_small_scale_reads_the_first_lines_of_brown(tmp_path, monkeypatch):
    made = {}
    monkeypatch.setattr(MODULE.corpora, "read_lines", lambda corpus, source: {
        split: [f"Line {n}" for n in range(20_000)] for split in ("train", "valid", "test")})  # fmt: skip
    monkeypatch.setattr(MODULE, "read_raw", lambda request, source: {"train": [], "valid": []})
    monkeypatch.setattr(MODULE, "write_data", lambda folder, texts, *_: made.update(texts))
    run = RefusedRun("BASE", "small", tmp_path)
    run.raw_data, run.prepared = lambda name: tmp_path, lambda name, make: make(tmp_path)
    run.progress = SimpleNamespace(say=lambda text: None)
    RECIPE.prepare(run)
    assert len(made["train"]) == MODULE.SETTINGS["small"].lines == 12_000 and len(made["valid"]) == 20_000
    assert made["train"][:2] == ["line N", "line N"]


ROWS = {"base": "BASE", "linformer_64": "Linformer 64", "linformer_128": "Linformer 128", "abc_mlp_64": "ABC-MLP 64",
        "abc_mlp_128": "ABC-MLP 128"}  # fmt: skip


def test_yaml_says_what_the_recipe_does():
    rows = {path.stem: yaml.safe_load(path.read_text())["model"] for path in (CONFIGS / "masked_lm_row").iterdir()}
    setting = MODULE.SETTINGS["paper"]
    expected = {name: MODULE.plan(f"SST-2 {row}", setting) for name, row in ROWS.items()}
    assert rows == {name: {"encoder_self_attention": plan} for name, plan in expected.items()}
    for name, words in (("masked_lm", MODULE.masked_options(setting, setting.updates[1])),
                        ("glue", MODULE.tuning_options("SST-2 BASE", "paper"))):  # fmt: skip
        options = dict(zip(words, [*words[1:], "--"], strict=True))
        config = yaml.safe_load((CONFIGS / f"{name}.yaml").read_text())
        assert config["task"]["_name"] == options["--task"] and config["hydra"]["job"]["chdir"] is False
        assert config["optimization"]["lr"] == [float(options["--lr"])]
        for key in ("warmup_updates", "total_num_update"):
            assert str(config["lr_scheduler"][key]) == options[f"--{key.replace('_', '-')}"]
        assert str(config["dataset"]["batch_size"]) == options["--batch-size"]
        assert config["optimizer"]["weight_decay"] == float(options["--weight-decay"])


def test_wrong_input(tmp_path):
    with pytest.raises(ValueError, match="row SST-2 BASE: not at scale small"):
        RECIPE.prepare(RefusedRun("SST-2 BASE", "small"))
    with pytest.raises(ValueError, match="has no roberta.base/model.pt; it holds roberta.base/, text/"):
        RECIPE.prepare(RefusedRun("SST-2 BASE", "paper", tmp_path))
    with pytest.raises(ValueError, match="a folder with brown.zip and SST's"):
        RECIPE.prepare(RefusedRun("BASE", "small"))
    (tmp_path / "train.log").write_text("nothing\n")
    with pytest.raises(ValueError, match="expected valid_accuracy of validations, found none"):
        MODULE._statistics(tmp_path / "train.log", "valid_accuracy")
