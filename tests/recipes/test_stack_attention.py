"""The recipe of the context-free languages: its rows, its configurations, and a run that is cut and resumed."""

from __future__ import annotations

import importlib
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml

from seqstruct.attention.base import Site
from seqstruct.attention.plan import parse_choices
from seqstruct.harness.launch import load_recipe
from seqstruct.harness.plot import layer_views
from seqstruct.harness.progress import Progress
from seqstruct.harness.recipe import Cell
from seqstruct.harness.records import read_folder
from seqstruct.harness.run import Run

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "recipes" / "stack_attention" / "cfl.py"


@pytest.fixture
def recipe():
    return load_recipe(SCRIPT)


def test_rows_are_those_of_the_paper(recipe):
    tables = json.loads((SCRIPT.parent / "paper.json").read_text())["tables"]
    assert {entry["row"] for entry in tables["figure-2"]["rows"]} == set(recipe.rows)
    assert set(recipe.rows) == {entry["row"] for entry in tables["5"]["rows"]}
    assert len(recipe.cells("paper")) == 5 * 6 * 10


def test_published_setting(recipe):
    cell = Cell("hardest-cfl Tf+Nd", 1, "paper")
    settings = recipe.settings(cell)
    assert (settings["train"], settings["lengths"], settings["epochs"]) == (10000, (40, 80), 200)
    assert "softmax*2 + nondeterministic_stack(states=3, symbols=3, size=5) + softmax*2" in settings["train_options"]
    assert recipe.dataset(cell) == "hardest-cfl, 10000 strings of length 40 to 80, test to 100, at most 200 epochs"
    assert "published" in recipe.dataset(Cell("dyck Tf", 1, "small"))


@pytest.mark.parametrize("row, model", [("tf", "Tf"), ("sup", "Tf+Sup"), ("nd", "Tf+Nd"), ("nd3", "Tf+Nd")])
def test_hydra_rows_describe_the_recipe_s_models(recipe, row, model):
    folder = ROOT / "configs" / "stack_attention"
    base = yaml.safe_load((folder / "cfl.yaml").read_text())
    chosen = yaml.safe_load((folder / "row" / f"{row}.yaml").read_text())["model"]
    options = recipe.settings(Cell(f"{'hardest-cfl' if row == 'nd3' else 'dyck'} {model}", 1, "paper"))["train_options"]
    given = dict(zip(options[::2], options[1::2], strict=True))
    layers = base["model"]["decoder_layers"]
    plans = [
        parse_choices(text, layers, Site.DECODER_SELF)
        for text in (chosen["decoder_self_attention"], given["--decoder-self-attention"])
    ]
    assert plans[0] == plans[1]
    assert chosen["decoder_embed_dim"] == int(given["--decoder-embed-dim"]) == chosen["decoder_ffn_embed_dim"] // 2
    base = yaml.safe_load((folder / "cfl_training.yaml").read_text())
    base = yaml.safe_load((folder / "cfl_training.yaml").read_text())
    assert base["hydra"]["job"]["chdir"] is False
    assert base["checkpoint"]["patience"] == int(given["--patience"])
    assert base["lr_scheduler"]["lr_patience"] == int(given["--lr-patience"])


class _Cutting(Progress):
    """Progress that ends the training in the middle of the second epoch."""

    def task(self, name, total):
        task = super().task(name, total)
        advance = task.advance

        def cut(done, note=""):
            advance(done, note)
            if done > 1.3:
                raise KeyboardInterrupt

        task.advance = cut
        return task


@pytest.mark.training
def test_a_cut_run_goes_on_to_the_same_numbers(recipe, tmp_path, monkeypatch):
    tiny = replace(recipe.setting(Cell("dyck Tf+Sup", 1, "smoke")), train=300, valid=20, epochs=2)
    monkeypatch.setattr(type(recipe), "setting", lambda self, cell: tiny)
    cell = Cell("dyck Tf+Sup", 3, "smoke")
    with Progress() as progress:
        whole = Run(recipe, cell, tmp_path / "whole", progress=progress)
        whole.finish(tmp_path / "records")
        with pytest.raises(KeyboardInterrupt):
            Run(recipe, cell, tmp_path / "cut", progress=_Cutting()).finish(None)
        cut = Run(recipe, cell, tmp_path / "cut", progress=progress)
        assert not cut.done and (cut.folder / "checkpoints" / "checkpoint_last.pt").exists()
        recipe.train(cut, recipe.prepare(cut))
    lasts = [run.folder / "checkpoints" / "checkpoint_last.pt" for run in (whole, cut)]
    models = [torch.load(last, weights_only=True)["model"] for last in lasts]
    for name, value in models[0].items():
        assert torch.equal(models[1][name], value), name

    by_table = {r.table: r for r in read_folder(tmp_path / "records")}
    assert by_table["5"].value("parameters") == 41029
    test = by_table["figure-2"]
    assert [length for length, _ in test.points("test_cross_entropy_difference")] == list(range(6, 31, 2))
    assert test.peak_memory > 1 << 26 and test.seconds > 0
    assert sorted(test.data_checksums)[0] == "dict.txt" and len(test.data_checksums) == 7

    views = layer_views(whole.folder / "checkpoints" / "checkpoint_best.pt", "( [ ] )")
    (stack,) = [view for view in views if view.actions is not None]
    assert stack.title == "decoder self, layer 3" and stack.rows == ["<s>", "(", "[", "]", ")"]
    assert stack.actions.shape == (5, 3)
    assert torch.allclose(torch.from_numpy(stack.actions).sum(1), torch.ones(5))
    with pytest.raises(ValueError, match="unknown symbols: x"):
        layer_views(whole.folder / "checkpoints" / "checkpoint_best.pt", "( x )")


def test_the_demo_counts_the_choice_of_length(monkeypatch):
    """With as many strings of each length, points weighted by their symbols add up to the overall difference."""
    monkeypatch.syspath_prepend(SCRIPT.parent)
    demo = importlib.import_module("demo")
    points = [(6, 0.5), (8, 0.4), (10, 0.3)]
    record = demo.Record(
        paper="stack_attention", table="demo", row="dyck Tf", seed=1, scale="small",
        metrics={demo.METRIC: {"value": 0.0, "unit": "u", "axis": "string length", "points": points}},
        dataset="d", configuration_hash="0" * 16, data_checksums={}, parameters=1, seconds=1.0, peak_memory=1,
        versions={}, command="c",
    )  # fmt: skip
    moved = demo.with_choice_of_length(record).points(demo.METRIC)
    overall = sum(value * (length + 1) for length, value in points) - 3 * math.log(3)
    assert sum(value * (length + 1) for length, value in moved) == pytest.approx(overall)


def test_the_learning_rates_are_those_of_the_pilot():
    """Once its records are there, for each model the rate that ended lowest."""
    pilot = load_recipe(SCRIPT.parent / "pilot.py")
    cfl = load_recipe(SCRIPT)
    chosen = importlib.import_module(type(cfl).__module__).PILOT_LEARNING_RATE
    records = [r for r in read_folder(SCRIPT.parent / "records") if r.table == pilot.table]
    ends = {r.row: r.value("validation_cross_entropy_difference") for r in records}
    ends = {row: value for row, value in ends.items() if row not in pilot.baselines("small")}
    assert set(ends) == set(pilot.rows)
    for model, rate in chosen.items():
        assert ends[f"{model} lr={rate:g}"] == min(v for row, v in ends.items() if row.split()[0] == model)


def test_published_lengths_take_the_published_strings():
    recipe = load_recipe(SCRIPT.parent / "cfl_long.py")
    settings = recipe.settings(Cell("hardest-cfl Tf+Nd", 1, "small"))
    assert (settings["train"], settings["lengths"], settings["test_lengths"]) == (10000, (40, 80), (40, 100))
    assert "at most 12 epochs" in recipe.dataset(Cell("hardest-cfl Tf+Nd", 1, "small"))
