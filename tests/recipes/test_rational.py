"""Recipes of tables 6.3 and 6.5: their rows, settings, configurations, and runs of the smallest size."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from seqstruct.harness.launch import load_recipe
from seqstruct.harness.logs import LogEntry
from seqstruct.harness.progress import Progress
from seqstruct.harness.recipe import Cell
from seqstruct.harness.records import read_folder
from seqstruct.harness.run import Run
from seqstruct.models.recurrent_lm import (
    RecurrentLanguageModel,
    RecurrentLanguageModelConfig,
    hidden_size_within,
)
from tests.models.building import dictionary_of, task_of

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "recipes" / "peng_thesis"
CONFIGS = ROOT / "configs" / "peng_thesis"
CELLS = {
    "LSTM": "lstm",
    "RRNN(B)": "rrnn_b",
    "RRNN(B) max-plus": "rrnn_b_max_plus",
    "RRNN(C)": "rrnn_c",
    "RRNN(F)": "rrnn_f",
}


def options_of(recipe, row, scale="paper"):
    words = recipe.settings(Cell(row, 1, scale))["train_options"]
    found = {}
    for word, value in zip(words, [*words[1:], "--"], strict=True):
        if word.startswith("--"):
            found[word[2:]] = "" if value.startswith("--") else value
    return found


@pytest.mark.parametrize("script, table", [("rational_lm", "6.3"), ("text_classification", "6.5")])
def test_rows_are_those_of_the_thesis(script, table):
    published = json.loads((FOLDER / "paper.json").read_text())["tables"][table]["rows"]
    recipe = load_recipe(FOLDER / f"{script}.py")
    assert {entry["row"] for entry in published} == set(recipe.rows) and recipe.table == table
    assert len(recipe.rows) == {"6.3": 11, "6.5": 20}[table]
    for scale in ("smoke", "small", "paper"):
        for cell in recipe.cells(scale):
            assert recipe.dataset(cell) and recipe.estimate(cell).minutes > 0


@pytest.mark.parametrize("cell", ["LSTM", "B", "B_max_plus", "C", "F"])
@pytest.mark.parametrize("layers, budget, words", [(2, 20_000, 100), (3, 50_000, 333)])
def test_hidden_sizes_exhaust_the_budget(cell, layers, budget, words):
    dictionary = dictionary_of([f"w{i}" for i in range(words)])
    size = hidden_size_within(budget, cell, layers, len(dictionary))
    counts = []
    for chosen in (0, size, size + 1):
        config = RecurrentLanguageModelConfig(
            cell=cell, decoder_layers=layers, hidden_size=chosen, parameter_budget=budget
        )
        model = RecurrentLanguageModel.build_model(config, task_of(dictionary))
        counts.append(sum(p.numel() for p in model.parameters()))
    assert counts[0] == counts[1] <= budget < counts[2]


def test_a_budget_that_is_too_small():
    with pytest.raises(ValueError, match="a budget of 100 parameters is too small for 1000 types: 2005 at size 1"):
        hidden_size_within(100, "B", 1, 1000)


def test_sizes_of_the_thesis():
    """10M parameters in two layers, 24M in three, 10,000 types."""
    assert [hidden_size_within(10_000_000, cell, 2, 10_000) for cell in ("B", "C", "F")] == [702, 617, 617]
    assert [hidden_size_within(24_000_000, cell, 3, 10_000) for cell in ("B", "C", "F")] == [1168, 974, 974]


def test_hydra_rows_of_language_models():
    recipe = load_recipe(FOLDER / "rational_lm.py")
    base = yaml.safe_load((CONFIGS / "rational_lm.yaml").read_text())
    names = {f"{model} {size}": f"{CELLS[model]}_{size.split()[-1].lower()}" for model in CELLS
             for size in ("2 layers 10M", "3 layers 24M") if model != "LSTM"}
    names |= {"LSTM 2 layers 24M": "lstm_24m", "LSTM 3 layers 24M": "lstm_3_24m"}
    assert set(names.values()) == {path.stem for path in (CONFIGS / "rational_lm_row").glob("*.yaml")}
    for row, name in names.items():
        chosen, given = yaml.safe_load((CONFIGS / f"rational_lm_row/{name}.yaml").read_text()), options_of(recipe, row)
        assert chosen["model"] == {
            "cell": given["cell"], "decoder_layers": int(given["decoder-layers"]),
            "parameter_budget": int(given["parameter-budget"]), "dropout": float(given["dropout"]),
        }  # fmt: skip
        assert chosen["optimization"]["lr"] == [float(given["lr"])]
    assert base["model"]["variational_dropout"] == float(given["variational-dropout"])
    assert base["optimizer"]["weight_decay"] == pytest.approx(float(given["weight-decay"]))
    assert base["optimization"]["clip_norm"] == pytest.approx(float(given["clip-norm"]))
    assert base["dataset"]["batch_size"] == int(given["batch-size"])
    assert base["task"]["tokens_per_sample"] == int(given["tokens-per-sample"])


def test_hydra_rows_of_classifiers():
    recipe = load_recipe(FOLDER / "text_classification.py")
    base = yaml.safe_load((CONFIGS / "text_classification.yaml").read_text())
    given = options_of(recipe, "SST LSTM")
    assert base["checkpoint"]["patience"] == int(given["patience"]) == 30
    assert base["lr_scheduler"]["lr_patience"] == int(given["lr-patience"]) == 10
    assert base["dataset"]["batch_size"] == int(given["batch-size"]) == 64
    assert options_of(recipe, "Amazon LSTM")["batch-size"] == "16"
    for model, name in CELLS.items():
        chosen = yaml.safe_load((CONFIGS / f"text_classification_row/{name}.yaml").read_text())
        assert chosen["model"]["cell"] == options_of(recipe, f"SST {model}")["cell"]


def test_draws_are_within_table_e1():
    recipe = load_recipe(FOLDER / "text_classification.py")
    settings = recipe.settings(Cell("CR RRNN(C)", 1, "paper"))
    assert settings["draws"] == len(settings["drawn"]) == 20
    assert recipe.settings(Cell("CR RRNN(C)", 1, "small"))["draws"] == 8
    ranges = {
        "hidden_size": (100, 300), "vertical_dropout": (0, 0.5), "recurrent_dropout": (0, 0.5),
        "embedding_dropout": (0, 0.5), "lr": (1e-4, 1e-2), "weight_decay": (1e-7, 1e-5), "clip_norm": (1, 5),
    }  # fmt: skip
    for name, (low, high) in ranges.items():
        values = [drawn[name] for drawn in settings["drawn"]]
        assert low <= min(values) < max(values) <= high and len(set(values)) > 10
    others = recipe.settings(Cell("CR RRNN(F)", 1, "paper"))["drawn"]
    assert others != settings["drawn"]
    assert np.median([drawn["lr"] for drawn in others + settings["drawn"]]) < 3e-3, "uniform in the logarithm"


def test_the_last_of_equal_epochs_counts():
    recipe = load_recipe(FOLDER / "text_classification.py")
    import sys

    best_epoch = sys.modules[type(recipe).__module__].best_epoch
    entries = [
        LogEntry(split, {"epoch": epoch, f"{split}_accuracy": value})
        for epoch, valid, test in ((1, 70.0, 60.0), (2, 80.0, 61.0), (3, 80.0, 62.0), (4, 75.0, 90.0))
        for split, value in (("valid", valid), ("test", test))
    ]
    assert best_epoch(entries) == {"valid": 80.0, "test": 62.0}
    with pytest.raises(ValueError, match="found none"):
        best_epoch([])


@pytest.mark.slow
@pytest.mark.parametrize(
    "script, row, metrics",
    [
        ("rational_lm", "RRNN(F) 2 layers 10M", {"validation_perplexity", "test_perplexity"}),
        ("text_classification", "SST RRNN(F)", {"validation_accuracy", "test_accuracy", "search_validation_accuracy"}),
    ],
)
def test_smoke(script, row, metrics, tmp_path):
    recipe = load_recipe(FOLDER / f"{script}.py")
    with Progress() as progress:
        found = Run(recipe, Cell(row, 1, "smoke"), tmp_path, progress=progress).finish(tmp_path / "records")
    assert {m.metric for m in found} == metrics
    records = read_folder(tmp_path / "records")
    assert {r.metric for r in records} == metrics and all(r.parameters for r in records)
    values = {r.metric: r.value for r in records}
    if script == "rational_lm":
        assert 2 < values["test_perplexity"] < 6, "20 words, of which two may follow each"
    else:
        (search,) = [r for r in records if r.metric == "search_validation_accuracy"]
        assert [x for x, _ in search.series["points"]] == [1, 2]
        assert search.value == max(value for _, value in search.series["points"])
