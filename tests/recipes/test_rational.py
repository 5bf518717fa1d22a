"""Recipes of tables 6.3 and 6.5: their rows, sizes and settings."""

from __future__ import annotations

import pytest

from seqstruct.models.language_models.recurrent_lm import (
    RecurrentLanguageModel,
    RecurrentLanguageModelConfig,
    hidden_size_within,
)
from seqstruct.search.settings import points, read_settings
from tests.models.building import dictionary_of, task_of
from tests.recipes.composed import ROOT, commands, composed, script

LANGUAGE_MODELS, CLASSIFIERS = "peng_thesis/rational_lm", "peng_thesis/text_classification"


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


@pytest.mark.parametrize("row, cell, layers, budget, dropout, rate", [
    ("LSTM 2 layers 24M", "LSTM", 2, 24_000_000, 0.7, 35), ("LSTM 3 layers 24M", "LSTM", 3, 24_000_000, 0.7, 35),
    ("LSTM 2 layers 10M", "LSTM", 2, 10_000_000, 0.6, 35), ("RRNN(C) 2 layers 10M", "C", 2, 10_000_000, 0.6, 17.5),
    ("RRNN(B) max-plus 3 layers 24M", "B_max_plus", 3, 24_000_000, 0.7, 35),
])
def test_published_settings_of_language_models(row, cell, layers, budget, dropout, rate):
    listed = commands(script("peng_thesis/table-6.3"), row, "paper")
    train = next(words for words in listed if words[0] == "fairseq-hydra-train")
    config = composed(LANGUAGE_MODELS, *[word for word in train if word.split("=")[0] in ("row", "size", "scale")])
    model = config["model"]
    assert (model["cell"], model["decoder_layers"], model["parameter_budget"]) == (cell, layers, budget)
    assert (model["dropout"], config["optimization"]["lr"]) == (dropout, [rate])
    assert (config["optimizer"]["_name"], config["lr_scheduler"]["force_anneal"]) == ("sgd", 175)
    assert config["optimization"]["clip_norm"] == pytest.approx(5 / 35, rel=1e-5)
    small = composed(LANGUAGE_MODELS, "row=rrnn_c", "size=10m_small", "scale=small")
    assert small["optimizer"] == {"_name": "adam"} and small["model"]["parameter_budget"] == 1_000_000


def test_published_settings_of_classifiers():
    config = composed(CLASSIFIERS, "row=rrnn_f")
    assert (config["checkpoint"]["patience"], config["lr_scheduler"]["lr_patience"]) == (30, 10)
    assert (config["dataset"]["batch_size"], config["model"]["embed_dim"]) == (64, 300)
    assert composed(CLASSIFIERS, "corpus=amazon")["dataset"]["batch_size"] == 16
    assert composed(CLASSIFIERS, "scale=small_cr")["optimization"]["max_epoch"] == 10


def drawn(number, *words):
    settings = read_settings(ROOT / "configs" / CLASSIFIERS / "search.yaml", words)
    return settings, points(settings, number)


def test_draws_are_within_table_e1():
    settings, found = drawn(1, "scale=paper")
    assert len(found) == 20 and settings["epochs"] == settings["up_to"] == 500
    ranges = {
        "model.hidden_size": (100, 300), "model.vertical_dropout": (0, 0.5), "model.recurrent_dropout": (0, 0.5),
        "model.embedding_dropout": (0, 0.5), "optimization.lr": (1e-4, 1e-2), "optimizer.weight_decay": (1e-7, 1e-5),
        "optimization.clip_norm": (1, 5),
    }
    for name, (low, high) in ranges.items():
        values = [point[name][0] if isinstance(point[name], list) else point[name] for point in found]
        assert low <= min(values) < max(values) <= high and len(set(values)) > 10
    assert settings["then"] == {"model.forget_bias": [0.0, 2.0]} and found[0]["model.forget_bias"] == 1.0
    assert len(drawn(1, "scale=small")[1]) == 6 and drawn(1, "scale=small_cr")[0]["up_to"] == 24


@pytest.mark.parametrize("scale", ["small", "paper"])
def test_all_models_of_a_corpus_try_the_same_settings(scale):
    recipe, found = script("peng_thesis/table-6.5"), {}
    for row in ("SST LSTM", "SST RRNN(B) max-plus", "CR LSTM", "CR RRNN(F)"):
        (search,) = (words for words in commands(recipe, row, scale) if words[1] == "search")
        assert "--labels" in search, "a setting has to differ from chance"
        found.setdefault(row.split()[0], set()).add(search[search.index("--seed") + 1])
    assert found == {"SST": {"1"}, "CR": {"3"}}
    *_, record = commands(recipe, "SST LSTM", scale)
    assert "train.log:valid_most_predicted@best<100" in record, "a constant predictor is no result"
