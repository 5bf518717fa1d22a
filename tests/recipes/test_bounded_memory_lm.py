"""Tables 5.4a and 5.4b: rows, presets and plans; the YAML of all language models of the thesis says what recipes do."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from seqstruct.attention import Site, parse_choices
from seqstruct.harness.launch import load_recipe
from seqstruct.harness.recipe import Cell
from seqstruct.models import structured_transformer_lm as models

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "recipes" / "peng_thesis"
CONFIGS = ROOT / "configs" / "peng_thesis"
TABLES = json.loads((FOLDER / "paper.json").read_text("utf-8"))["tables"]
BOUNDED, EFFICIENT = (load_recipe(FOLDER / f"{name}.py") for name in ("bounded_memory_lm", "efficient_lm"))
MODULE = sys.modules[type(BOUNDED).__module__]
ROWS = {  # of YAML: a row of a recipe, and its size
    "base": [("small BASE", "small"), ("big BASE", "big"), ("16 layers BASE", "layers_16"),
             ("32 layers BASE", "layers_32")],
    "phi_elu": [("small phi-elu", "small"), ("32 layers ELU 128", "layers_32")],
    "rfa_gaussian": [("big RFA-Gaussian", "big")],
    "rfa_arccos": [("small RFA-arccos", "small")],
    "rfa_gate_gaussian": [("small RFA-GATE-Gaussian", "small")],
    "rfa_gate_arccos": [("big RFA-GATE-arccos", "big")],
    "rfa_gate_gaussian_stateful": [("small RFA-GATE-Gaussian-Stateful", "small")],
    "rfa_32": [("32 layers RFA 32", "layers_32")],
    "t2r_32": [("32 layers T2R 32", "layers_32")],
    **{f"{name.lower().replace('-', '_')}_{n}": [(f"16 layers {name} {n}", "layers_16")]
       for name in ("Linformer", "ABC-RD", "ABC-MLP") for n in (32, 64)},
    "gated_softmax": [],
}  # fmt: skip


def options_of(row: str) -> dict[str, str]:
    recipe = EFFICIENT if row in EFFICIENT.rows else BOUNDED
    words = recipe.settings(Cell(row, 1, "paper"))["train_options"]
    return dict(zip(words, [*words[1:], "--"], strict=True))


def test_rows_are_those_of_the_tables_and_measure_their_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    published = {(e["row"], e["metric"]) for t in ("5.4a", "5.4b") for e in TABLES[t]["rows"]}
    assert {row for row, _ in published} == set(BOUNDED.rows)
    monkeypatch.setattr(MODULE, "perplexity", lambda *arguments: float(arguments[-1]))
    for row in BOUNDED.rows:
        run = SimpleNamespace(cell=Cell(row, 1, "paper"), parameters=7)
        found = {m.metric: m.value for m in BOUNDED.evaluate(run, Path(), Path())}
        assert {metric for name, metric in published if name == row} == set(found) - {"parameters"}
        if row.startswith("32"):
            assert found["test_perplexity"] == 256
        else:
            assert (found["test_perplexity_0"], found["test_perplexity_480"]) == (0, 480)
    with pytest.raises(ValueError, match="at scale small see efficient_lm.py"):
        BOUNDED.cells("small")


@pytest.mark.parametrize("row", BOUNDED.rows)
def test_plans_are_read(row: str) -> None:
    options = options_of(row)
    layers = int(row.split()[0])
    assert len(parse_choices(options["--decoder-self-attention"], layers, Site.DECODER_SELF)) == layers
    preset = argparse.Namespace()
    getattr(models, options["--arch"])(preset)
    assert preset.decoder_layers == layers


def composed(row: str, size: str) -> dict[str, Any]:
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    with initialize_config_dir(config_dir=str(CONFIGS), version_base="1.1"):
        config = compose("efficient_lm", overrides=[
            f"efficient_lm_row={row}", f"efficient_lm_size={size}", "common.user_dir=x", "task.data=x",
            "checkpoint.save_dir=x",
        ])  # fmt: skip
    return OmegaConf.to_container(config, resolve=True)


@pytest.mark.parametrize(("name", "row", "size"), [(n, *pair) for n, pairs in ROWS.items() for pair in pairs])
def test_yaml_says_what_the_recipes_do(name: str, row: str, size: str) -> None:
    config, given = composed(name, size), options_of(row)
    preset = argparse.Namespace(decoder_self_attention=given["--decoder-self-attention"])
    getattr(models, given["--arch"])(preset)
    assert config["model"] == {"_name": "structured_transformer_lm", **vars(preset)}
    assert config["task"]["_name"] == given["--task"]
    assert config["task"]["tokens_per_sample"] == int(given["--tokens-per-sample"])
    assert config["dataset"]["batch_size"] == int(given["--batch-size"])
    assert config["criterion"]["_name"] == given["--criterion"]
    assert config["distributed_training"]["ddp_backend"] == given["--ddp-backend"]
    assert config["optimizer"]["_name"] == given["--optimizer"]
    assert config["optimizer"].get("adam_betas") == given.get("--adam-betas")
    assert config["optimization"]["lr"] == [float(given["--lr"])]
    assert config["optimization"]["clip_norm"] == float(given["--clip-norm"])
    assert config["optimization"]["max_update"] == int(given["--max-update"])
    scheduler = dict(config["lr_scheduler"])
    assert scheduler.pop("_name") == given["--lr-scheduler"]
    assert {f"--{key.replace('_', '-')}": float(value) for key, value in scheduler.items()} == {
        key: float(given[key])
        for key in ("--warmup-updates", "--warmup-init-lr", "--min-lr", "--t-mult", "--lr-period-updates",
                    "--lr-shrink")
        if key in given
    }  # fmt: skip


def test_every_yaml_row_has_its_place() -> None:
    assert set(ROWS) == {path.stem for path in (CONFIGS / "efficient_lm_row").glob("*.yaml")}
    assert {path.stem for path in (CONFIGS / "efficient_lm_size").glob("*.yaml")} == {
        "small", "big", "layers_16", "layers_32"
    }  # fmt: skip
    assert composed("gated_softmax", "small")["model"]["decoder_self_attention"] == "gated_softmax"
