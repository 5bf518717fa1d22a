"""The recipe of language models with efficient attention: its rows, plans, texts and errors."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest

from seqstruct.attention import Site, parse_choices
from seqstruct.harness.launch import load_recipe
from seqstruct.harness.recipe import Cell

FOLDER = Path(__file__).resolve().parents[2] / "recipes" / "peng_thesis"
RECIPE = load_recipe(FOLDER / "efficient_lm.py")


def options_of(row: str, scale: str) -> dict[str, str]:
    words = RECIPE.settings(Cell(row, 1, scale))["train_options"]
    return dict(zip(words, [*words[1:], "--"], strict=True))


@pytest.mark.parametrize("scale, table", [("small", "4.3-stand-in"), ("paper", "4.3")])
def test_every_row_has_a_place_in_the_published_tables(scale: str, table: str) -> None:
    tables = json.loads((FOLDER / "paper.json").read_text("utf-8"))["tables"]
    published = {entry["row"] for entry in tables[table]["rows"]}
    rows = {cell.row for cell in RECIPE.cells(scale)}
    assert rows == published - {f"{size} RFA-GATE-Gaussian-Stateful" for size in ("small", "big")}


@pytest.mark.parametrize("scale", ["smoke", "small", "paper"])
def test_plans_are_read_and_sizes_are_those_of_the_scale(scale: str) -> None:
    for cell in RECIPE.cells(scale):
        options = options_of(cell.row, scale)
        layers = int(options["--decoder-layers"])
        assert len(parse_choices(options["--decoder-self-attention"], layers, Site.DECODER_SELF)) == layers
        assert RECIPE.dataset(cell)
        assert RECIPE.estimate(cell).minutes <= (30 if scale != "paper" else float("inf"))
    if scale == "paper":
        assert options_of("big BASE", scale)["--decoder-embed-dim"] == "1024"  # table A.2
        assert options_of("small BASE", scale)["--decoder-layers"] == "6"
        assert options_of("small BASE", scale)["--criterion"] == "adaptive_loss"


def test_a_text_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such file"):
        inspect.getmodule(type(RECIPE)).read(tmp_path / "wiki.test.tokens")
