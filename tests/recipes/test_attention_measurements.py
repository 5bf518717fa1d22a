"""The recipes that measure attention: growth, decoding, encoding; rows and metrics as published, smoke scale."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from seqstruct.harness.launch import load_recipe
from seqstruct.harness.recipe import Cell

FOLDER = Path(__file__).resolve().parents[2] / "recipes" / "peng_thesis"
TABLES = json.loads((FOLDER / "paper.json").read_text("utf-8"))["tables"]


def published(*tables: str) -> dict[str, set[str]]:
    """Metrics by row."""
    found: dict[str, set[str]] = {}
    for table in tables:
        for entry in TABLES[table]["rows"]:
            found.setdefault(entry["row"], set()).add(entry["metric"])
    return found


def run_of(row: str, folder: Path, scale: str = "small") -> SimpleNamespace:
    return SimpleNamespace(cell=Cell(row, 1, scale), folder=folder)


@pytest.mark.parametrize("row", published("4.1", "5.2"))
def test_growth_has_the_published_rows_and_metrics(row: str, tmp_path: Path) -> None:
    recipe = load_recipe(FOLDER / "attention_growth.py")
    assert set(recipe.rows) == set(published("4.1", "5.2"))
    points = {"time": 2.0, "memory": 1.0, "forward_memory": 0.5, "operators": 0.0}
    measured = tmp_path / "growth.json"
    content = {name: [(n, 3.0 * n**power) for n in (8, 16, 32)] for name, power in points.items()}
    measured.write_text(json.dumps(content))
    found = {m.metric: m for m in recipe.evaluate(run_of(row, tmp_path), tmp_path, measured)}
    table = "4.1" if row in published("4.1") else "5.2"
    assert {m.table for m in found.values()} == {table}
    assert set(found) == published(table)[row]
    assert found["time_exponent"].value == pytest.approx(2.0)
    assert found["memory_exponent"].value == pytest.approx(1.0 if row.startswith("training") else 0.5)
    assert found["operators_exponent"].value == pytest.approx(0.0, abs=1e-12)
