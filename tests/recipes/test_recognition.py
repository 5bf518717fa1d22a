"""FLaRe: the published settings and sizes, and what scale small changes."""

from __future__ import annotations

import pytest

from seqstruct.data.recognition.languages import LANGUAGES
from seqstruct.harness.script import Cell
from tests.recipes.composed import option, published_rows, script, settings

RECIPE = script("flare/table-2")


def training(row, scale, seed=1):
    (words,) = [step.words for step in RECIPE.plan(Cell(row, seed, scale)).steps if step.kind == "train"]
    return settings(words)


def test_rows_are_those_of_the_table():
    rows = set(RECIPE.rows("small")) | set(RECIPE.baselines("small"))
    assert rows == published_rows("flare", "2") and len(RECIPE.rows("small")) == 60
    assert {row.split()[0] for row in rows} <= set(LANGUAGES)
    assert {*RECIPE.rows("small")} < {*RECIPE.rows("paper")}
    assert (len(RECIPE.seeds("parity Tf", "small")), len(RECIPE.seeds("parity Tf", "paper"))) == (3, 10)


@pytest.mark.parametrize("row", ["parity LSTM", "dyck-2-3 Tf, LM+NS"])
def test_runs_draw_from_the_published_ranges(row):
    found = [training(row, "paper", seed) for seed in (1, 2, 3)]
    assert len({settings["optimization"]["lr"][0] for settings in found}) == 3
    for drawn in found:
        assert 1e-4 <= drawn["optimization"]["lr"][0] <= 1e-2 and 128 <= drawn["dataset"]["max_tokens"] <= 4096
        assert (drawn["optimization"]["max_epoch"], drawn["optimization"]["clip_norm"]) == (1000, 5.0)
        assert drawn["lr_scheduler"] == {"_name": "reduce_lr_on_plateau", "lr_shrink": 0.5, "lr_patience": 5}
        assert drawn["checkpoint"]["patience"] == 10
        weights = [drawn["criterion"][f"{name}_weight"] for name in ("language_modeling", "next_symbols")]
        if row.endswith("LM+NS"):
            assert drawn["task"]["next_symbols"] and all(0.01 <= weight <= 10 for weight in weights)
        else:
            assert weights == [0, 0] and not drawn["task"]["next_symbols"]


@pytest.mark.parametrize("row, layers, size", [("RNN", 5, 79), ("LSTM", 5, 40), ("Tf", 5, 32)])
def test_the_published_sizes(row, layers, size):
    model = training(f"majority {row}", "paper")["model"]
    assert (model["decoder_layers"], model.get("hidden_size", model.get("decoder_embed_dim"))) == (layers, size)


def test_recurrent_networks_have_one_layer_at_scale_small():
    layers = {row: training(f"majority {row}", "small")["model"].get("decoder_layers") for row in
              ("RNN", "LSTM", "RRNN", "Tf", "delta negative", "LSTM+Nd")}
    assert layers == {"RNN": 1, "LSTM": 1, "RRNN": 1, "Tf": 5, "delta negative": 5, "LSTM+Nd": None}


def test_all_seeds_have_the_same_strings():
    prepared = {option(RECIPE.plan(Cell("parity Tf", seed, "paper")).steps[0].words, "--out") for seed in (1, 2, 3)}
    assert len(prepared) == 1
