"""The recipes of translation with efficient attention and of its cross-evaluation: rows, plans, YAML and errors."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import pytest
import yaml

from seqstruct.attention import Site, parse_choices
from seqstruct.harness.launch import load_recipe
from seqstruct.models.structured_transformer import structured_transformer_abc, structured_transformer_rfa
from tests.recipes.runs import RefusedRun

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "recipes" / "peng_thesis"
CONFIGS = ROOT / "configs" / "peng_thesis"
RECIPE = load_recipe(FOLDER / "efficient_translation.py")
CROSS = load_recipe(FOLDER / "cross_evaluation.py")
MODULE = sys.modules[type(RECIPE).__module__]
TABLES = json.loads((FOLDER / "paper.json").read_text("utf-8"))["tables"]
SITES = {"encoder_self_attention": Site.ENCODER_SELF, "decoder_self_attention": Site.DECODER_SELF,
         "cross_attention": Site.CROSS}  # fmt: skip


@pytest.mark.parametrize("scale, names", [
    ("small", ["4.4-stand-in"]), ("paper", ["4.4", "5.5a", "5.7", "5.9", "A.1", "A.4"]),
])
def test_every_published_row_has_a_cell_and_every_cell_a_place(scale, names):
    published = {(name, entry["row"]) for name in names for entry in TABLES[name]["rows"]}
    assert published == {(table, cell.row) for cell in RECIPE.cells(scale) for table in MODULE.tables(cell.row, scale)}


@pytest.mark.parametrize("scale", ["smoke", "small", "paper"])
def test_plans_fit_their_sites_and_configurations_differ(scale):
    cells = RECIPE.cells(scale)
    for cell in cells:
        for name, plan in MODULE.plans(cell.row, scale).items():
            assert len(parse_choices(plan, 6, SITES[name])) == 6
        assert RECIPE.dataset(cell)
        assert RECIPE.estimate(cell).minutes <= (30 if scale != "paper" else float("inf"))
    assert len({RECIPE.configuration_hash(cell) for cell in cells}) == len(cells)


def test_sizes_are_those_of_the_source():
    assert MODULE.plans("IWSLT14 de-en RFA-Gaussian", "paper") == {
        "encoder_self_attention": "softmax", "decoder_self_attention": "rfa(features=128)",
        "cross_attention": "rfa(features=256)",
    }  # D of 64 and 128, which the Gaussian map doubles
    assert MODULE.plans("ABC-MLP 32-8", "paper")["decoder_self_attention"] == "abc_mlp(slots=8)"
    assert MODULE.plans("MLP-exp-all 32-32-32", "paper")["encoder_self_attention"] == "abc_mlp(slots=32)"
    assert MODULE.plans("MLP-sigmoid 32-8", "paper")["cross_attention"] == "abc_mlp(slots=32, activation='sigmoid')"
    assert MODULE.decode_options("cross 8, causal 8", "paper", "valid")[3] == "1"
    assert MODULE.decode_options("ABC-MLP 32-8", "paper", "test")[3] == "5"
    assert MODULE.decode_options("WMT14 en-de BASE", "paper", "test")[3] == "4"
    options = MODULE.train_options("WMT14 en-fr BASE", "paper")
    assert options[options.index("--lr") + 1] == "0.000570544"
    assert options[options.index("--max-update") + 1] == "350000"


@pytest.mark.parametrize("scale, name", [("small", "4.6-stand-in"), ("paper", "4.6")])
def test_each_attention_is_evaluated_with_each(scale, name):
    table = TABLES[name]
    assert table["layout"] == "matrix"
    assert {entry["row"] for entry in table["rows"]} == set(CROSS.rows)
    for cell in CROSS.cells(scale):
        evaluated = CROSS.settings(cell)["evaluated"]
        metrics = [entry["metric"] for entry in table["rows"] if entry["row"] == cell.row]
        assert metrics == [f"bleu_evaluated_{attention}" for attention in evaluated]
        trained = CROSS.settings(cell)["train_options"]
        own = evaluated[cell.row.removeprefix("trained ")]
        assert trained[trained.index("--cross-attention") + 1] == own["cross_attention"]


ROWS = {
    "base": "BASE", "phi_elu": "WMT14 en-de phi-elu", "rfa_gaussian": "WMT14 en-de RFA-Gaussian",
    "rfa_arccos": "WMT14 en-de RFA-arccos", "rfa_gate_gaussian": "WMT14 en-de RFA-GATE-Gaussian",
    "rfa_gate_arccos": "WMT14 en-de RFA-GATE-arccos", "abc_rd": "ABC-RD 32-32", "linformer": "Linformer 32-32",
    "abc_mlp": "ABC-MLP 32-8", "abc_mlp_all": "MLP-exp-all 32-32-32",
}  # fmt: skip


def test_every_yaml_of_a_row_is_checked():
    assert {path.stem for path in (CONFIGS / "translation_row").iterdir()} == set(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_yaml_says_what_the_recipe_does(name):
    base = yaml.safe_load((CONFIGS / "translation.yaml").read_text())
    model = yaml.safe_load((CONFIGS / "translation_row" / f"{name}.yaml").read_text())["model"]
    assert {"encoder_self_attention": "softmax", **model} == MODULE.plans(ROWS[name], "paper")
    words = MODULE.train_options(ROWS[name], "paper")
    options = dict(zip(words, [*words[1:], "--"], strict=True))
    assert base["hydra"]["job"]["chdir"] is False
    assert base["optimization"]["lr"] == [float(options["--lr"])]
    assert str(base["optimization"]["max_update"]) == options["--max-update"]
    assert base["optimization"]["update_freq"] == [int(options["--update-freq"])]
    assert str(base["dataset"]["max_tokens"]) == options["--max-tokens"]
    assert str(base["lr_scheduler"]["warmup_updates"]) == options["--warmup-updates"]
    assert str(base["model"]["dropout"]) == options["--dropout"]


def test_wrong_input(tmp_path):
    with pytest.raises(ValueError, match="row MLP-exp 32-8: at scale paper alone"):
        RECIPE.prepare(RefusedRun("MLP-exp 32-8", "small"))
    with pytest.raises(ValueError, match="row phi-elu: at scales small and smoke alone"):
        RECIPE.prepare(RefusedRun("phi-elu", "paper"))
    with pytest.raises(ValueError, match="the folder that data-prep made of WMT14 en-fr .with bin/dict.en.txt"):
        RECIPE.prepare(RefusedRun("WMT14 en-fr BASE", "paper", tmp_path))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "dict.en.txt").touch()
    with pytest.raises(ValueError, match="test.fr: no such file"):
        RECIPE.prepare(RefusedRun("WMT14 en-fr BASE", "paper", tmp_path))


@pytest.mark.parametrize("preset, row", [
    (structured_transformer_rfa, "WMT14 en-de RFA-Gaussian"), (structured_transformer_abc, "ABC-MLP 32-8"),
])
def test_presets_are_rows(preset, row):
    namespace = argparse.Namespace()
    preset(namespace)
    chosen = {name: value for name, value in vars(namespace).items() if name.endswith("attention")}
    assert {"encoder_self_attention": "softmax", **chosen} == MODULE.plans(row, "paper")
