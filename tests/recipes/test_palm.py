"""The recipes of PaLM, their data script and YAML files."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from fairseq import options as fairseq_options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

import seqstruct.models
import seqstruct.tasks  # noqa: F401  registers them
from seqstruct.data.made_up.trees import made_up_tree
from seqstruct.data.trees import parse_trees, words
from seqstruct.harness.launch import load_recipe
from seqstruct.harness.recipe import Cell

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "recipes" / "peng_thesis"
SCRIPT = ROOT / "data-prep" / "ptb_trees.sh"
recipe = load_recipe(FOLDER / "palm.py")
module = sys.modules[type(recipe).__module__]
ROWS = {
    "awd_lstm": "AWD-LSTM", "prpn": "PRPN", "on_lstm": "ON-LSTM", "palm_u": "PaLM-U", "palm_rb": "PaLM-RB",
    "palm_s": "PaLM-S",
}  # fmt: skip


def configuration(words):
    """As fairseq-train makes it of a command line."""
    args = fairseq_options.parse_args_and_arch(fairseq_options.get_training_parser(), ["data", *words])
    return convert_namespace_to_omegaconf(args)


@pytest.mark.parametrize("row", module.MODELS)
@pytest.mark.parametrize("scale", ["smoke", "small", "paper"])
def test_fairseq_takes_the_options(row, scale):
    cfg = configuration(module.train_options(row, module.SETTINGS[scale]))
    assert cfg.task._name == "span_language_modeling"
    assert cfg.criterion.span_supervision == (0.01 if row == "PaLM-S" else 0.0)
    if row.startswith("PaLM"):
        layers = cfg.model.decoder_layers
        assert cfg.model.attention_layer == (layers if row.endswith("last layer") else layers - 1)
        assert cfg.model.right_branching == (row == "PaLM-RB")


def test_the_published_setting_is_table_d1():
    cfg = configuration(module.train_options("PaLM-S", module.SETTINGS["paper"]))
    model = cfg.model
    assert (model.hidden_size, model.span_size, model.max_span) == (1020, 200, 20)
    assert (model.weight_dropout, model.hidden_dropout) == (0.45, 0.2)
    assert (cfg.lr_scheduler.switch_epoch, cfg.optimization.lr, cfg.optimizer.first) == (40, [0.001], "adam")


@pytest.mark.parametrize(("name", "row"), ROWS.items())
def test_yaml_says_what_the_recipe_does(name, row):
    folder = ROOT / "configs" / "peng_thesis"
    base = yaml.safe_load((folder / "palm.yaml").read_text())
    chosen = yaml.safe_load((folder / "palm_row" / f"{name}.yaml").read_text())
    assert base["hydra"]["job"]["chdir"] is False
    cfg = configuration(module.train_options(row, module.SETTINGS["paper"]))
    for group in ("task", "criterion", "dataset", "optimization", "optimizer", "lr_scheduler", "model"):
        for key, value in {**base.get(group, {}), **chosen.get(group, {})}.items():
            if key in ("_name", "data", "max_epoch", "update_epoch_batch_itr"):
                continue
            assert cfg[group][key] == value, key
    assert base["optimization"]["max_epoch"] == module.SETTINGS["paper"].epochs
    presets = ("", "_right_branching") if name == "palm_rb" else ("",)
    assert cfg.model._name in [chosen["model"]["_name"] + preset for preset in presets]


def test_rows_and_scales_differ_in_their_configuration():
    hashes = [
        recipe.configuration_hash(Cell(row, 1, scale)) for row in recipe.rows for scale in ("smoke", "small", "paper")
    ]
    assert len(set(hashes)) == 21


def test_untrained_models_have_25_seeds():
    branching = load_recipe(FOLDER / "palm_branching.py")
    seeds = [cell.seed for cell in branching.cells("paper") if cell.row == "Random"]
    assert sorted(seeds) == list(range(1, 26))
    assert [cell.row for cell in branching.cells("smoke")] == ["Right branching", "Random"]


def test_wikitext2_has_the_published_setting():
    wikitext2 = load_recipe(FOLDER / "palm_wikitext2.py")
    cfg = configuration(wikitext2.settings(Cell("PaLM-S", 1, "paper"))["train_options"])
    model = cfg.model
    assert (model.max_span, model.hidden_size, cfg.dataset.batch_size) == (10, 1150, 80)
    assert cfg.criterion.span_supervision == 0.01
    assert (model.input_dropout, model.hidden_dropout, model.weight_dropout) == (0.65, 0.2, 0.5)


def test_made_up_trees_are_trees_and_repeat():
    texts = [made_up_tree(random.Random(seed)) for seed in range(13)]
    assert texts == [made_up_tree(random.Random(seed)) for seed in range(13)]
    assert all(len(words(next(iter(parse_trees([text]))))) > 5 for text in texts)


def prepared(*options):
    environment = {**os.environ, "PYTHON": sys.executable, "OMP_NUM_THREADS": "1"}
    return subprocess.run(["bash", SCRIPT, *options], capture_output=True, text=True, env=environment)


def test_the_script_makes_the_folder_and_refuses_in_a_sentence(tmp_path):
    module.write_made_up(tmp_path)
    done = prepared("--from", tmp_path, "--corpus", "treebank-sample", "--out", tmp_path / "out", "--vocabulary", "50")
    assert done.returncode == 0, done.stderr
    assert "train: 120 sentences" in done.stdout
    assert (tmp_path / "out" / "bin" / "train.spans.npy").is_file()
    (tmp_path / "wsj_0201.mrg").unlink()
    for options, what in (
        (["--out", tmp_path / "x"], "--from PATH is needed"),
        (["--from", tmp_path], "the following arguments are required: --out"),
        (["--from", tmp_path / "absent", "--out", tmp_path / "x"], "no such file or folder"),
        (["--from", tmp_path, "--out", tmp_path / "x"], "no wsj_SSNN.mrg of the sections 02"),
        (["--words", "--out", tmp_path / "x"], "unrecognized arguments: --words"),
    ):
        done = prepared(*options)
        assert done.returncode in (1, 2)
        assert what in done.stderr
        assert not (tmp_path / "x").exists()
