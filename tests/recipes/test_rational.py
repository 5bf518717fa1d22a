"""Recipes of tables 6.3 and 6.5: their rows, settings, configurations, and runs of the smallest size."""

from __future__ import annotations

import json
import sys
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


@pytest.fixture
def classification():
    return sys.modules[type(load_recipe(FOLDER / "text_classification.py")).__module__]


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
    ranges = {
        "hidden_size": (100, 300), "vertical_dropout": (0, 0.5), "recurrent_dropout": (0, 0.5),
        "embedding_dropout": (0, 0.5), "lr": (1e-4, 1e-2), "weight_decay": (1e-7, 1e-5), "clip_norm": (1, 5),
    }  # fmt: skip
    for name, (low, high) in ranges.items():
        values = [drawn[name] for drawn in settings["drawn"]]
        assert low <= min(values) < max(values) <= high and len(set(values)) > 10
    others = recipe.settings(Cell("SST RRNN(C)", 1, "paper"))["drawn"]
    assert others != settings["drawn"]
    assert np.median([drawn["lr"] for drawn in others + settings["drawn"]]) < 3e-3, "uniform in the logarithm"


@pytest.mark.parametrize("scale", ["small", "paper"])
def test_all_models_of_a_corpus_try_the_same_settings(scale):
    recipe = load_recipe(FOLDER / "text_classification.py")
    lists = {row: recipe.settings(Cell(row, 1, scale))["drawn"] for row in recipe.rows}
    for corpus in ("Amazon", "SST", "subj", "CR"):
        assert all(drawn == lists[f"{corpus} LSTM"] for row, drawn in lists.items() if row.startswith(f"{corpus} "))
    assert len({json.dumps(drawn) for drawn in lists.values()}) == 4


def statistics(epoch, **values):
    return [LogEntry(name.partition("_")[0], {"epoch": epoch, name: value}) for name, value in values.items()]


def validation(accuracy, loss, most_predicted, epoch=1):
    found = {"epoch": epoch, "valid_accuracy": accuracy, "valid_loss": loss, "valid_most_predicted": most_predicted}
    return LogEntry("valid", found)


def test_the_last_of_equal_epochs_counts(classification):
    entries = [
        entry for epoch, valid, test in ((1, 70.0, 60.0), (2, 80.0, 61.0), (3, 80.0, 62.0), (4, 75.0, 90.0))
        for entry in statistics(epoch, valid_accuracy=valid, test_accuracy=test)
    ]
    assert classification.best_epoch(entries) == {"epoch": 3, "valid_accuracy": 80.0, "test_accuracy": 62.0}
    with pytest.raises(ValueError, match="found none"):
        classification.best_epoch([])


def test_chance_is_the_most_frequent_label_and_three_standard_errors(classification):
    assert classification.better_than_chance([1] * 64 + [0] * 36) == pytest.approx(64 + 3 * 4.8)
    assert classification.better_than_chance([0, 0, 0]) == 100


def test_equal_draws_go_by_loss_and_are_refused_if_equal_in_that_too(classification):
    def found(accuracy, loss, lr, epochs=3):
        return {"drawn": {"lr": lr}, "epochs": epochs, "accuracy": accuracy, "loss": loss}

    draws = [found(70, 0.5, 1.0), found(80, 0.6, 2.0), found(80, 0.4, 3.0), found(60, 0.1, 4.0)]
    assert classification.choose("SST LSTM", draws, 55.0) is draws[2]
    with pytest.raises(ValueError, match=r"SST LSTM: two draws are best, .* 80 % .* 0.4 nats: .*3.0.* and .*5.0"):
        classification.choose("SST LSTM", [*draws, found(80, 0.4, 5.0)], 55.0)
    with pytest.raises(ValueError, match="none of 4 draws differs from chance: .* 80 % after 3 epochs, .* than 80.5 %"):
        classification.choose("SST LSTM", draws, 80.5)


@pytest.fixture
def searched(classification, tmp_path, monkeypatch):
    """A run of made-up sentences, with trainings replaced by what a function of learning rate and epochs says."""
    calls = []

    def run_search(accuracy_of):
        def fake(trainings, folder, threads):
            logs = []
            for options in trainings:
                option = dict(zip(options, options[1:], strict=False))
                lr, epochs = float(option["--lr"]), int(option["--max-epoch"])
                assert float(option["--forget-bias"]) in classification.FORGET_BIASES
                assert option.get("--valid-subset", "valid") == "valid", "a draw sees no test figure"
                calls.append((lr, epochs))
                accuracy = accuracy_of(lr, epochs)
                logs.append([validation(accuracy, 1 - accuracy / 100, 60.0, epochs)])
            return logs

        monkeypatch.setattr(classification, "run_trainings", fake)
        recipe = classification.recipe
        with Progress() as progress:
            run = Run(recipe, Cell("SST RRNN(F)", 1, "smoke"), tmp_path, progress=progress)
            data = recipe.prepare(run)
            return json.loads((recipe.search(run, data) / "draws.json").read_text()), calls, run, data

    return run_search


def test_draws_at_chance_are_trained_on_up_to_the_limit(searched, classification):
    first, second = (classification.draw("SST", n, classification.SETTINGS["smoke"])["lr"] for n in (0, 1))
    found, calls, _, _ = searched(lambda lr, epochs: 90.0 if lr == second or epochs >= 8 else 52.0)
    assert calls[:4] == [(first, 2), (second, 2), (first, 4), (first, 8)]
    assert [(d["epochs"], d["accuracy"]) for d in found["draws"][:2]] == [(8, 90.0), (2, 90.0)]
    assert 60 < found["better_than_chance"] < 85


def test_the_best_draw_is_tried_with_every_bias_of_forget_gates(searched, classification):
    lrs = [classification.draw("SST", n, classification.SETTINGS["smoke"])["lr"] for n in (0, 1)]
    found, calls, _, _ = searched(lambda lr, epochs: 80.0 + lr)
    best = max(lrs)
    assert calls == [(lrs[0], 2), (lrs[1], 2), (best, 2), (best, 2)]
    drawn = [d["drawn"] for d in found["draws"]]
    assert [d["forget_bias"] for d in drawn] == [1.0, 1.0, 0.0, 2.0]
    assert all({**d, "forget_bias": 1.0} == drawn[lrs.index(best)] for d in drawn[2:]), "all else is the best draw's"


def test_a_row_whose_draws_stay_at_chance_is_refused(searched, classification):
    found, calls, run, data = searched(lambda lr, epochs: 52.0 + lr)
    assert [epochs for _, epochs in calls] == [2, 2, 4, 4, 8, 8, 16, 16], "no bias is tried"
    with pytest.raises(ValueError, match="SST RRNN.F.: none of 2 draws differs from chance"):
        classification.recipe.train(run, data)


def test_a_constant_predictor_is_no_result(searched, classification, tmp_path):
    _, _, run, data = searched(lambda lr, epochs: 80.0 + lr)
    recipe = classification.recipe
    line = "x | INFO | valid | " + json.dumps(validation(51.0, 0.7, 100.0).statistics | {"test_accuracy": 50.0}) + "\n"
    (run.folder / "train.log").write_text(line)
    with pytest.raises(ValueError, match="seed 1: the trained model predicts one label for every sentence"):
        recipe.evaluate(run, data, tmp_path)
    (run.folder / "train.log").write_text(line.replace("100.0", "99.0"))
    values = {m.metric: m.value for m in recipe.evaluate(run, data, tmp_path)}
    assert values["validation_accuracy"] == 51.0 and values["test_accuracy"] == 50.0


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
    (record,) = read_folder(tmp_path / "records")
    assert set(record.metrics) == metrics and record.parameters
    if script == "rational_lm":
        assert 2 < record.value("test_perplexity") < 6, "20 words, of which two may follow each"
    else:
        points = record.points("search_validation_accuracy")
        assert [x for x, _ in points] == [1, 2, 3, 4], "two draws, then two other biases"
        assert record.value("search_validation_accuracy") == max(value for _, value in points)
