"""The recipe of documents: rows, plans, the stand-in's boundaries, YAML and errors."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml

from seqstruct.attention import Site, parse_choices
from seqstruct.harness.launch import load_recipe
from tests.recipes.runs import RefusedRun

ROOT = Path(__file__).resolve().parents[2]
FOLDER, CONFIGS = ROOT / "recipes" / "peng_thesis", ROOT / "configs" / "peng_thesis"
RECIPE = load_recipe(FOLDER / "document_translation.py")
MODULE = sys.modules[type(RECIPE).__module__]


@pytest.mark.parametrize("scale, table", [("small", "5.5b-stand-in"), ("paper", "5.5b")])
def test_every_row_has_a_place_in_the_published_tables(scale, table):
    tables = json.loads((FOLDER / "paper.json").read_text("utf-8"))["tables"]
    cells = RECIPE.cells(scale)
    assert {cell.row for cell in cells} == {entry["row"] for entry in tables[table]["rows"]}
    for cell in cells:
        for plan, site in zip(MODULE.plans(cell.row, scale), (Site.DECODER_SELF, Site.CROSS), strict=True):
            assert len(parse_choices(plan, 3, site)) == 3
        assert RECIPE.dataset(cell) and RECIPE.estimate(cell).disk > 0
    assert len({RECIPE.configuration_hash(cell) for cell in cells}) == len(cells)


ROWS = {"base": "BASE", "linformer": "Linformer 128-64", "abc_rd": "ABC-RD 128-64", "abc_mlp": "ABC-MLP 128-64"}


@pytest.mark.parametrize("name", ROWS)
def test_yaml_says_what_the_recipe_does(name):
    assert {path.stem for path in (CONFIGS / "documents_row").iterdir()} == set(ROWS)
    base = yaml.safe_load((CONFIGS / "documents.yaml").read_text())
    model = yaml.safe_load((CONFIGS / "documents_row" / f"{name}.yaml").read_text())["model"]
    words = MODULE.train_options(ROWS[name], "paper")
    options = dict(zip(words, [*words[1:], "--"], strict=True))
    assert model["cross_attention"] == options["--cross-attention"]
    assert model["decoder_self_attention"] == options["--decoder-self-attention"]
    assert f"{base['optimization']['lr'][0]:g}" == options["--lr"]
    assert str(base["lr_scheduler"]["warmup_updates"]) == options["--warmup-updates"]
    assert str(base["optimization"]["max_update"]) == options["--max-update"]
    assert str(base["dataset"]["max_tokens"]) == options["--max-tokens"]
    assert base["task"]["_name"] == options["--task"] and base["hydra"]["job"]["chdir"] is False


def test_wrong_input(tmp_path):
    with pytest.raises(ValueError, match="row Linformer 128-64: at scale paper alone"):
        RECIPE.prepare(RefusedRun("Linformer 128-64", "small"))
    with pytest.raises(ValueError, match="row ABC-MLP 32-16: at scale small and smoke alone"):
        RECIPE.prepare(RefusedRun("ABC-MLP 32-16", "paper"))
    with pytest.raises(ValueError, match="with text/train.docs"):
        RECIPE.prepare(RefusedRun("BASE", "paper", tmp_path))
    with pytest.raises(ValueError, match="a folder with the raw files of Multi30k"):
        RECIPE.prepare(RefusedRun("BASE", "small"))
