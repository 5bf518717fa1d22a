"""The recipe of tree transduction: its rows, the published setting, its configurations, and a tiny run to the end."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from seqstruct.harness.launch import load_recipe
from seqstruct.harness.progress import Progress
from seqstruct.harness.recipe import Cell
from seqstruct.harness.records import read_folder
from seqstruct.harness.run import Run
from seqstruct.models import tree_transduction

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "recipes" / "structured_attention" / "tree_transduction.py"


@pytest.fixture
def recipe():
    return load_recipe(SCRIPT)


def test_rows_and_metrics_are_those_of_the_paper(recipe):
    table = json.loads((SCRIPT.parent / "paper.json").read_text())["tables"]["2"]
    assert list(dict.fromkeys(entry["row"] for entry in table["rows"])) == list(recipe.rows)
    published = {(e["row"], e["metric"]): e["value"] for e in table["rows"] if "value" in e}
    structured = [published["Structured", f"length_to_failure_depth_{depth}"] for depth in range(2, 7)]
    assert structured == [99.2, 87.0, 64.5, 30.8, 18.2]
    assert len(recipe.cells("paper")) == 9


def test_published_setting(recipe):
    settings = recipe.settings(Cell("Structured", 1, "paper"))
    assert (settings["train"], settings["test"], settings["epochs"]) == (5000, 200, 13)
    options = [option for option in settings["train_options"] if option != "--sentence-avg"]
    given = dict(zip(options[::2], options[1::2], strict=True))
    assert given["--batch-size"] == "20" and given["--arch"] == "tree_transduction_structured"
    assert "published" in recipe.dataset(Cell("Simple", 1, "small"))


@pytest.mark.parametrize("name, row", [("none", "No attention"), ("simple", "Simple"), ("structured", "Structured")])
def test_hydra_rows_describe_the_recipe_s_models(recipe, name, row):
    folder = ROOT / "configs" / "structured_attention"
    base = yaml.safe_load((folder / "tree_transduction.yaml").read_text())
    chosen = yaml.safe_load((folder / "tree_transduction_row" / f"{name}.yaml").read_text())["model"]
    options = recipe.settings(Cell(row, 1, "paper"))["train_options"]
    assert options[options.index("--arch") + 1] == f"tree_transduction_{name}"
    constant = {"simple": tree_transduction.SIMPLE, "structured": tree_transduction.STRUCTURED}.get(name, "none")
    assert chosen["encoder_self_attention"] == constant
    assert str(base["lr_scheduler"]["decay_after_epoch"]) == options[options.index("--decay-after-epoch") + 1]
    assert base["hydra"]["job"]["chdir"] is False


@pytest.mark.slow
def test_a_tiny_run_is_recorded_by_depth(recipe, tmp_path, monkeypatch):
    module = vars(__import__(type(recipe).__module__))
    tiny = replace(module["SETTINGS"]["smoke"], train=20, valid=4, test=2, epochs=1)
    monkeypatch.setitem(module["SETTINGS"], "smoke", tiny)
    with Progress() as progress:
        Run(recipe, Cell("Structured", 1, "smoke"), tmp_path / "runs", progress=progress).finish(tmp_path / "records")
    (record,) = read_folder(tmp_path / "records")
    assert set(record.metrics) == {"validation_length_to_failure", "length_to_failure"} | {
        f"length_to_failure_depth_{depth}" for depth in range(2, 7)
    }
    points = record.points("length_to_failure")
    assert [depth for depth, _ in points] == [2, 3, 4, 5, 6]
    assert record.value("length_to_failure") == pytest.approx(sum(value for _, value in points) / 5)
    assert all(0 <= value <= 100 for _, value in points)
