"""The recipes of the tables of Stack Attention: parameters as published, YAML as the recipe says, what a run draws."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from fairseq.data import Dictionary

from seqstruct.harness.command import main
from seqstruct.harness.launch import load_recipe
from seqstruct.harness.recipe import Cell
from seqstruct.harness.search import SearchSpace, draw
from seqstruct.models.stack_lstm_lm import StackLSTMLanguageModel, StackLSTMLanguageModelConfig
from seqstruct.models.structured_transformer import (
    StructuredTransformerModel,
    StructuredTransformerModelConfig,
    structured_transformer_stack_europarl,
)
from seqstruct.models.structured_transformer_lm import (
    StructuredTransformerLanguageModel,
    structured_transformer_lm_cfl,
    structured_transformer_lm_ptb,
)
from tests.models.building import cfl_dictionary, language_model_config, task_of

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "recipes" / "stack_attention"
CONFIGS = ROOT / "configs" / "stack_attention"
TABLES = json.loads((FOLDER / "paper.json").read_text())["tables"]


def recipe_and_module(name):
    recipe = load_recipe(FOLDER / f"{name}.py")
    return recipe, sys.modules[type(recipe).__module__]


def dictionary_of_size(size):
    dictionary = Dictionary()
    for number in range(size - len(dictionary)):
        dictionary.add_symbol(f"w{number}")
    return dictionary


def options_of(words):
    return {
        word[2:].replace("-", "_"): words[i + 1] for i, word in enumerate(words[:-1]) if word.startswith("--")
    }


def parameters(model):
    return sum(p.numel() for p in model.parameters())


def published(table):
    return {entry["row"]: entry["value"] for entry in TABLES[table]["rows"] if entry["metric"] == "parameters"}


@pytest.mark.parametrize("row", list(published("5")))
def test_parameters_of_table_5(row):
    recipe, _ = recipe_and_module("cfl")
    given = options_of(recipe.settings(Cell(row, 1, "paper"))["train_options"])
    task = task_of(cfl_dictionary(row.split()[0]))
    if given["arch"] == "stack_lstm_lm":
        config = StackLSTMLanguageModelConfig(hidden_size=int(given["hidden_size"]), stack=given["stack"])
        built = StackLSTMLanguageModel.build_model(config, task)
    else:
        namespace = argparse.Namespace(
            decoder_embed_dim=int(given["decoder_embed_dim"]), decoder_self_attention=given["decoder_self_attention"]
        )
        structured_transformer_lm_cfl(namespace)
        built = StructuredTransformerLanguageModel.build_model(language_model_config(**vars(namespace)), task)
    assert parameters(built) == published("5")[row]


@pytest.mark.parametrize("model", ["Tf", "Tf+Sup", "Tf+Nd"])
def test_parameters_of_table_2(model):
    _, module = recipe_and_module("language_modeling")
    given = options_of(module.train_options(model, 256))
    assert given["arch"] == "structured_transformer_lm_ptb"
    namespace = argparse.Namespace(
        decoder_embed_dim=int(given["decoder_embed_dim"]), decoder_self_attention=given["decoder_self_attention"]
    )
    structured_transformer_lm_ptb(namespace)
    config = language_model_config(**vars(namespace))
    built = StructuredTransformerLanguageModel.build_model(config, task_of(dictionary_of_size(23_835)))
    assert parameters(built) == published("2")[model]
    assert built.decoder.output_projection.weight is built.decoder.embed_tokens.weight


@pytest.mark.parametrize("row", list(published("3")))
def test_parameters_of_table_3(row):
    """The sizes of all nine rows give a vocabulary of 6,156 entries: what the threshold of 50 uses leaves of 32,000."""
    recipe, module = recipe_and_module("translation")
    assert set(recipe.rows) == set(published("3"))
    model, size = module.model_and_size(row)
    given = options_of(module.train_options(model, size))
    assert given["arch"] == "structured_transformer_stack_europarl"
    namespace = argparse.Namespace(
        decoder_embed_dim=int(given["decoder_embed_dim"]), encoder_self_attention=given["encoder_self_attention"],
        decoder_self_attention=given["decoder_self_attention"],
    )
    structured_transformer_stack_europarl(namespace)
    config = StructuredTransformerModelConfig()
    for name, value in vars(namespace).items():
        setattr(config, name, value)
    built = StructuredTransformerModel.build_model(config, task_of(dictionary_of_size(6_156)))
    assert parameters(built) == published("3")[row]


def composed(name, *overrides):
    """The model, task and training of a YAML file as hydra composes it."""
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    with initialize_config_dir(config_dir=str(CONFIGS), version_base="1.1"):
        config = compose(name, overrides=[*overrides, "common.user_dir=x", "task.data=x", "checkpoint.save_dir=x"])
    return OmegaConf.to_container(config, resolve=True)


def test_yaml_of_table_2_says_what_the_recipe_does():
    recipe, module = recipe_and_module("language_modeling")
    for row, model in (("tf", "Tf"), ("sup", "Tf+Sup"), ("nd", "Tf+Nd")):
        config = composed("ptb", f"ptb_row={row}")
        given = options_of(module.train_options(model, module.SETTINGS["paper"].embed_dim))
        preset = argparse.Namespace(decoder_self_attention=given["decoder_self_attention"])
        structured_transformer_lm_ptb(preset)
        assert config["model"] == {"_name": "structured_transformer_lm", **vars(preset)}
        agree(config, given, module.SETTINGS["paper"].epochs)
        assert config["task"]["sample_break_mode"] == given["sample_break_mode"]
        assert config["task"]["tokens_per_sample"] == int(given["tokens_per_sample"])


@pytest.mark.parametrize("size", [160, 240, 360])
def test_yaml_of_table_3_says_what_the_recipe_does(size):
    recipe, module = recipe_and_module("translation")
    for row, model in (("tf", "Tf"), ("sup", "Tf+Sup"), ("nd", "Tf+Nd")):
        config = composed("europarl", f"europarl_row={row}", f"europarl_size=d{size}")
        given = options_of(module.train_options(model, size))
        preset = argparse.Namespace(
            decoder_embed_dim=size, encoder_self_attention=given["encoder_self_attention"],
            decoder_self_attention=given["decoder_self_attention"],
        )
        structured_transformer_stack_europarl(preset)
        said = {**vars(StructuredTransformerModelConfig()), **config["model"]}
        for name, value in vars(preset).items():
            assert said[name] == value, name
        assert config["dataset"]["max_tokens"] == module.SETTINGS["paper"].max_tokens
        assert config["criterion"]["label_smoothing"] == float(given["label_smoothing"])
        agree(config, given, module.SETTINGS["paper"].epochs)


def agree(config, given, epochs):
    assert config["hydra"]["job"]["chdir"] is False if "hydra" in config else True
    assert config["checkpoint"]["patience"] == int(given["patience"])
    assert config["lr_scheduler"] == {
        "_name": given["lr_scheduler"], "lr_shrink": float(given["lr_shrink"]), "lr_patience": int(given["lr_patience"])
    }
    assert config["optimization"]["clip_norm"] == float(given["clip_norm"])
    assert config["optimization"]["max_epoch"] == epochs
    assert config["criterion"]["_name"] == given["criterion"]


@pytest.mark.parametrize(("row", "cell"), [
    ("lstm", "dyck LSTM"), ("lstm_sup", "dyck LSTM+Sup"), ("lstm_nd", "dyck LSTM+Nd"),
    ("lstm_nd3", "hardest-cfl LSTM+Nd"),
])
def test_yaml_of_the_lstm_rows_says_what_the_recipe_does(row, cell):
    recipe, _ = recipe_and_module("cfl")
    given = options_of(recipe.settings(Cell(cell, 1, "paper"))["train_options"])
    config = composed("cfl_lstm", f"row={row}")
    assert config["model"] == {
        "_name": given["arch"], "initialization_bound": 0.1, "hidden_size": int(given["hidden_size"]),
        "stack": given["stack"],
    }
    assert config["dataset"]["batch_size"] == int(given["batch_size"])
    agree(config, given, 200)


def test_draws_depend_on_the_seed_alone_and_fill_their_ranges():
    space = SearchSpace((1e-6, 1e-4), (128, 512))
    drawn = [draw(space, seed) for seed in range(1, 1001)]
    assert drawn[4] == draw(space, 5) and len({d["learning_rate"] for d in drawn}) == 1000
    logs = np.log10([d["learning_rate"] for d in drawn])
    assert -6 <= logs.min() < -5.95 and -4.05 < logs.max() <= -4 and abs(logs.mean() + 5) < 0.1
    tokens = [d["max_tokens"] for d in drawn]
    assert 128 <= min(tokens) < 135 and 505 < max(tokens) <= 512 and abs(np.mean(tokens) - 320) < 15
    assert draw(SearchSpace((0.1, 0.1)), 3) == {"learning_rate": pytest.approx(0.1)}
    with pytest.raises(ValueError, match="max_tokens: expected ends above 0 in order, got 5 and 4"):
        draw(SearchSpace((0.1, 0.1), (5, 4)), 1)
    with pytest.raises(ValueError, match="learning_rate: expected ends above 0"):
        draw(SearchSpace((0.0, 0.1)), 1)


def test_recipes_print_their_draws(capsys):
    wanted = [("language_modeling", "Tf+Nd", 20), ("translation", "Tf d=240", 5), ("cfl", "dyck LSTM", 10)]
    for name, row, count in wanted:
        recipe, module = recipe_and_module(name)
        assert main(recipe, ["--scale", "paper", "--row", row, "--draws"]) == 0
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [line["seed"] for line in lines] == list(range(1, count + 1))
        setting = module.SETTINGS["paper"]
        space = SearchSpace(setting.learning_rate) if name == "cfl" else setting.space
        assert lines[1] == {"table": recipe.table, "row": row, "seed": 2, "scale": "paper", **draw(space, 2)}


def test_rows_of_table_2_and_its_stand_ins():
    recipe, module = recipe_and_module("language_modeling")
    assert {entry["row"] for name in ("2", "2-stand-ins") for entry in TABLES[name]["rows"]} == set(recipe.rows)
    assert not {cell.row for cell in recipe.cells("small")} & set(module.MODELS)
    assert len(recipe.cells("paper")) == 12 * 20 and len(recipe.cells("smoke")) == 1


def test_rows_of_tables_1_and_4():
    recipe, module = recipe_and_module("complexity")
    assert {entry["row"] for name in "14" for entry in TABLES[name]["rows"]} == set(recipe.rows)
    metrics = {f"{quantity}_exponent" for quantity in module.QUANTITIES}
    assert {entry["metric"] for name in "14" for entry in TABLES[name]["rows"]} == metrics


def test_rows_of_table_6_and_what_they_measure(tmp_path):
    recipe, module = recipe_and_module("cost")
    assert {entry["row"] for entry in TABLES["6"]["rows"]} <= set(recipe.rows)
    assert [module.task_of(row) for row in ("Tf+Nd", "hardest-cfl LSTM", "translation Tf")] == [
        "ptb", "cfl", "translation"]
    hashes = {recipe.configuration_hash(Cell(row, 1, "small")) for row in recipe.rows}
    assert len(hashes) == len(recipe.rows)
    for row in recipe.rows:
        options = recipe.train_options(Cell(row, 1, "small"))
        assert options.count("--max-update") == options.count("--lr") == 1
    entries = [{"ups": 1.0, "bsz": 99.0}, {"ups": 4.0, "bsz": 10.0}, {"ups": 2.0, "bsz": 20.0}]
    log = tmp_path / "train.log"
    log.write_text("".join(
        f"t | INFO | train_inner | {json.dumps({name: str(value) for name, value in e.items()})}\n" for e in entries
    ))
    run = SimpleNamespace(cell=Cell("hardest-cfl Tf", 1, "small"), peak_memory=3_000_000)
    found = {m.metric: m.value for m in recipe.evaluate(run, tmp_path, log)}
    assert found == {
        "examples_per_second": pytest.approx(30 / 0.75), "minutes_per_epoch": pytest.approx(10_000 / 40 / 60),
        "resident_memory": 3.0,
    }


def test_a_dictionary_is_filled_up(tmp_path):
    _, module = recipe_and_module("cost")
    (tmp_path / "dict.txt").write_text("a 3\nb 1\n")
    module.fill(tmp_path / "dict.txt", 13)
    dictionary = Dictionary.load(str(tmp_path / "dict.txt"))
    assert len(dictionary) == 13 and dictionary.index("b") == 5
    with pytest.raises(ValueError, match="expected at most 7 entries, found 13"):
        module.fill(tmp_path / "dict.txt", 7)


def test_what_cannot_be_run_is_said_in_a_sentence(tmp_path, capsys):
    language_modeling, _ = recipe_and_module("language_modeling")
    translation, _ = recipe_and_module("translation")
    at = ["--runs", str(tmp_path)]
    assert main(language_modeling, ["--scale", "paper", "--row", "Tf", "--seed", "1", *at]) == 1
    assert "row Tf: --from DIR is needed" in capsys.readouterr().err
    assert main(language_modeling, ["--scale", "small", "--row", "Tf", *at]) == 1
    assert "row Tf is Table 2's" in capsys.readouterr().err
    assert main(translation, ["--scale", "small", *at]) == 1
    assert "at scale small see recipes/multi30k" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["language_modeling", "translation", "complexity", "cost"])
def test_the_smoke_scale_runs(name, tmp_path):
    done = subprocess.run(
        [sys.executable, FOLDER / f"{name}.py", "--scale", "smoke", "--runs", tmp_path], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
