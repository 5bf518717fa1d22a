"""The recipe of long texts: its rows, plans, measurements, YAML and errors."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml

from seqstruct.attention import Site, parse_choices
from seqstruct.data.text_classification.folder import Sentence, write_sentences
from seqstruct.harness.launch import load_recipe
from seqstruct.harness.recipe import Cell
from tests.recipes.runs import RefusedRun

ROOT = Path(__file__).resolve().parents[2]
FOLDER, CONFIGS = ROOT / "recipes" / "peng_thesis", ROOT / "configs" / "peng_thesis"
RECIPE = load_recipe(FOLDER / "long_range.py")
MODULE = sys.modules[type(RECIPE).__module__]
SPEED = load_recipe(FOLDER / "long_range_speed.py")
STEPS = sys.modules[type(SPEED).__module__]


@pytest.mark.parametrize("scale, table", [("small", "4.5-stand-in"), ("paper", "4.5")])
def test_every_row_has_a_place_in_the_published_tables(scale, table):
    tables = json.loads((FOLDER / "paper.json").read_text("utf-8"))["tables"]
    assert {cell.row for cell in RECIPE.cells(scale)} == {entry["row"] for entry in tables[table]["rows"]}


@pytest.mark.parametrize("scale", ["smoke", "small", "paper"])
def test_plans_are_read_and_configurations_differ(scale):
    cells = RECIPE.cells(scale)
    for cell in cells:
        words = RECIPE.settings(cell)["train_options"]
        options = dict(zip(words, [*words[1:], "--"], strict=True))
        assert len(parse_choices(options["--encoder-self-attention"], 2, Site.ENCODER_SELF)) == 2
        assert int(options["--max-source-positions"]) == int(options["--max-length"]) + 1
        assert ("--tie-layers" in options) == (scale == "paper" and cell.row.startswith("ListOps"))
        assert RECIPE.dataset(cell) and RECIPE.estimate(cell).minutes <= (30 if scale != "paper" else float("inf"))
    assert len({RECIPE.configuration_hash(cell) for cell in cells}) == len(cells)
    assert "features=128" in MODULE.plan("RFA-Gaussian", MODULE.SETTINGS["IMDb"], 4000)  # D = 64
    assert "features=256" in MODULE.plan("RFA-Gaussian", MODULE.SETTINGS["AAN"], 4000)


@pytest.mark.training
@pytest.mark.parametrize("model", MODULE.PLANS)
def test_every_mechanism_is_measured(model):
    found = {m.metric: m.value for m in SPEED.evaluate(RefusedRun(f"ListOps {model}", "smoke"), Path(), Path())}
    assert list(found) == ["speed_40", "memory_40", "speed_80", "memory_80"]
    assert all(value > 0 for value in found.values())
    if model == "Transformer":
        assert found == dict.fromkeys(found, 1.0)


@pytest.mark.parametrize("scale", ["smoke", "small", "paper"])
def test_attention_drops_nothing_in_any_row_nor_where_steps_are_timed(scale, monkeypatch):
    for cell in RECIPE.cells(scale):
        options = MODULE.train_options(cell)
        assert options[options.index("--attention-dropout") + 1] == "0"
    made = []
    monkeypatch.setattr(STEPS.StructuredClassifier, "build_model", lambda config, task: made.append(config))
    for model in MODULE.PLANS:
        with pytest.raises(AttributeError):  # there is no model to place
            STEPS.training_step(model, MODULE.SETTINGS["small"], 8, 2, None)
    assert {(c.dropout, c.attention_dropout, c.activation_dropout) for c in made} == {(0.0, 0.0, 0.0)}
    assert len(made) == len(MODULE.PLANS)


def test_rows_of_speed_are_those_of_the_tables():
    assert {cell.row for cell in SPEED.cells("small")} == {cell.row for cell in RECIPE.cells("small")}
    imdb = {cell.row for cell in RECIPE.cells("paper") if cell.row.startswith("IMDb")}
    assert {cell.row for cell in SPEED.cells("paper")} == imdb
    assert [SPEED.table_of(Cell("ListOps Linear", 1, scale)) for scale in ("small", "paper")] == ["4.5-stand-in", "4.5"]
    assert {SPEED.configuration_hash(c) for c in SPEED.cells("small")}.isdisjoint(
        RECIPE.configuration_hash(c) for c in RECIPE.cells("small"))


def test_yaml_says_what_the_recipe_does():
    base = yaml.safe_load((CONFIGS / "long_range.yaml").read_text())
    rows = {path.stem: yaml.safe_load(path.read_text())["model"] for path in (CONFIGS / "long_range_row").iterdir()}
    names = {model.lower().replace(" ", "_").replace("-", "_"): model for model in MODULE.PLANS if model != "ABC-MLP"}
    assert set(rows) == set(names)
    for name, model in names.items():
        words = MODULE.train_options(Cell(f"ListOps {model}", 1, "paper"))
        options = dict(zip(words, [*words[1:], "--"], strict=True))
        assert rows[name] == {"encoder_self_attention": options["--encoder-self-attention"]}
        assert float(options["--attention-dropout"]) == base["model"]["attention_dropout"]
        for key in ("encoder_layers", "encoder_embed_dim", "encoder_ffn_embed_dim", "max_source_positions"):
            assert str(base["model"][key]) == options[f"--{key.replace('_', '-')}"]
        assert f"{base['optimization']['lr'][0]:g}" == options["--lr"]
        assert str(base["optimization"]["max_update"]) == options["--max-update"]
        assert str(base["task"]["max_length"]) == options["--max-length"]
    assert base["hydra"]["job"]["chdir"] is False


def test_wrong_input(tmp_path):
    with pytest.raises(ValueError, match="row IMDb Linear: at scale paper alone"):
        RECIPE.prepare(RefusedRun("IMDb Linear", "small"))
    with pytest.raises(ValueError, match="row AAN Linear: --from DIR is the folder that data-prep made of AAN"):
        RECIPE.prepare(RefusedRun("AAN Linear", "paper"))
    singles = {split: [Sentence("0", ["a"])] for split in ("train", "valid", "test")}
    write_sentences(tmp_path / "singles", singles, ["0"], {"a": 1}, {})
    with pytest.raises(ValueError, match="expected pairs of texts of AAN"):
        RECIPE.prepare(RefusedRun("AAN Linear", "paper", tmp_path / "singles"))
    assert RECIPE.prepare(RefusedRun("IMDb Linear", "paper", tmp_path / "singles")) == tmp_path / "singles"
