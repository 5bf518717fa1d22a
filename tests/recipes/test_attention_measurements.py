"""The recipes that measure attention: growth, decoding, encoding; rows and metrics as published, smoke scale."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from seqstruct.benchmarks import decode, decode_models, encode, write_curves
from seqstruct.benchmarks.timing import Place
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


def test_decoding_curves_have_the_rows_of_the_figures(tmp_path: Path) -> None:
    recipe = load_recipe(FOLDER / "decoding_curves.py")
    module = sys.modules[type(recipe).__module__]
    assert set(module.NAMES.values()) == {*decode_models.PLANS, decode.LIMIT}
    content = {
        "greedy": {name: [[32, 4.0], [64, 8.0 if name == "softmax" else 4.0]] for name in module.NAMES.values()},
        "beam": {name: [[32, 5.0], [64, 20.0 if name == "softmax" else 5.0]] for name in module.NAMES.values()},
        "full": {name: 3.0 if name == "softmax" else 1.5 for name in module.NAMES.values()},
    }
    (tmp_path / "conditional.json").write_text(json.dumps(content))
    (tmp_path / "unconditional.json").write_text(json.dumps({**content, "full": {}}))
    seen: dict[str, set[str]] = {}
    memory = {"state_memory", "memory_share", "reserved_memory"}
    for row in recipe.rows:
        found = recipe.evaluate(run_of(row, tmp_path), tmp_path, tmp_path)
        for m in found:
            seen.setdefault(m.table, set()).add(row)
            assert m.metric in published(m.table)[row]
        for table in {m.table for m in found}:
            assert published(table)[row] == {m.metric for m in found if m.table == table} | memory
        values = {m.metric: m.value for m in found}
        fast = row != "softmax"
        assert values["decoding_speed"] == (16 / 0.004 if fast else 16 / 0.008)
        assert values["speed_up"] == values["full_run_speed_up"] == (2.0 if fast else 1.0)
        assert values["beam_decoding_speed"] == pytest.approx(16 / 0.005 if fast else 16 / 0.02)
        assert values["beam_speed_up"] == (4.0 if fast else 1.0)
        assert values["full_run_speed"] == 64 * 16 / (1.5 if fast else 3.0)
    assert seen == {table: set(published(table)) for table in ("figure-4.2", "figure-4.3", "figure-5.1")}


def test_states_are_counted_as_they_are_used_and_beside_that_as_they_are_reserved(monkeypatch, tmp_path) -> None:
    recipe = load_recipe(FOLDER / "decoding_states.py")
    for name, value in {"LAYERS": 3, "MODEL": 8, "HEADS": 2, "FEED_FORWARD": 8, "WORDS": 12}.items():
        monkeypatch.setattr(decode_models, name, value)
    monkeypatch.setattr(decode, "BATCH", 2)
    monkeypatch.setitem(sys.modules[type(recipe).__module__].LENGTHS, "small", (9, 33))
    found = {(m.table, m.metric): m for m in recipe.evaluate(run_of("softmax", tmp_path), tmp_path, tmp_path)}
    # keys, values and padding of 3 layers, and a length of each row
    causal = {cells: 3 * (2 * (2 * 2 * cells * 4 * 4) + 2 * cells + 2 * 8) / 1e6 for cells in (9, 16, 33, 64)}
    assert found["figure-4.3", "state_memory"].points == [(n, pytest.approx(causal[n])) for n in (9, 33)]
    assert found["figure-4.3", "reserved_memory"].points == [
        (9, pytest.approx(causal[16])), (33, pytest.approx(causal[64]))]  # doubled after 8 and after 32  # fmt: skip
    # across nothing is spare: the source is written at once
    assert found["figure-4.2", "state_memory"].value == pytest.approx(2 * causal[33])
    assert found["figure-4.2", "reserved_memory"].value == pytest.approx(causal[64] + causal[33])
    assert {m.value for (_, metric), m in found.items() if metric == "memory_share"} == {100.0}
    sys.modules[type(recipe).__module__].counted.cache_clear()
    rfa = {(m.table, m.metric): m.value for m in recipe.evaluate(run_of("RFA-Gaussian", tmp_path), tmp_path, tmp_path)}
    assert rfa["figure-4.2", "reserved_memory"] == rfa["figure-4.2", "state_memory"]  # one size, and no spare room
    assert rfa["figure-4.2", "memory_share"] == pytest.approx(
        100 * rfa["figure-4.2", "state_memory"] / found["figure-4.2", "state_memory"].value)  # fmt: skip
    assert {table for table, _ in found} == {"figure-4.2", "figure-4.3", "figure-5.1"}


def test_encoding_has_the_rows_of_table_5_8(tmp_path: Path) -> None:
    recipe = load_recipe(FOLDER / "text_encoding.py")
    module = sys.modules[type(recipe).__module__]
    assert set(recipe.rows) == set(published("5.8"))
    assert list(module.NAMES.values()) == list(encode.layers(4))
    times = {name: [[512, 10.0 / (i + 1)]] for i, name in enumerate(module.NAMES.values())}
    (tmp_path / "encoding.json").write_text(json.dumps({"time": times, "memory": times}))
    found = {m.metric: m.value for m in recipe.evaluate(run_of("Linformer 64", tmp_path), tmp_path, tmp_path)}
    assert found == {"encoding_speed": pytest.approx(2.0), "memory": pytest.approx(0.5), "layer_time": 5.0}


@pytest.mark.parametrize("kind", write_curves.KINDS)
def test_curves_are_written(kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in {"LAYERS": 2, "MODEL": 8, "HEADS": 2, "FEED_FORWARD": 8, "WORDS": 12}.items():
        monkeypatch.setattr(decode_models, name, value)
    for name, value in {"BATCH": 2, "MODEL": 8, "HEADS": 2, "FEED_FORWARD": 8}.items():
        monkeypatch.setattr(encode, name, value)
    out = tmp_path / "curves.json"
    assert write_curves.main([kind, "--lengths", "3", "5", "--repeats", "1", "--full", "--out", str(out)]) == 0
    content = json.loads(out.read_text())
    quantities = ("time", "memory") if kind == "encoding" else ("greedy", "beam")
    for quantity in quantities:
        assert all([n for n, _ in points] == [3, 5] for points in content[quantity].values())
    assert set(content["full"]) == (set() if kind == "encoding" else set(content["beam"]))
    assert all(value > 0 for value in content["full"].values())


def test_curves_that_cannot_be_measured_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "curves.json"
    for options, message in ((["--lengths", "0"], "lengths and repeats of 1 or more"),
                             (["--lengths", "3", "--repeats", "0"], "lengths and repeats of 1 or more"),
                             (["--lengths", "3", "--device", "nowhere"], "no device nowhere")):  # fmt: skip
        assert write_curves.main(["encoding", *options, "--out", str(out)]) == 1
        assert message in capsys.readouterr().err
    assert not out.exists()


def test_a_full_run_goes_on_from_what_it_decoded() -> None:
    class Counter(torch.nn.Module):
        """The next word is the last one plus 1."""

        def forward(self, tokens: torch.Tensor, **_: object) -> tuple[torch.Tensor, None]:
            seen.append(tokens[0].tolist())
            return torch.nn.functional.one_hot(tokens[:, -1:] + 1, 20).float(), None

    seen: list[list[int]] = []
    assert decode_models.full_run(Counter(), 3, 2, Place.of("cpu", "float32")) > 0
    assert seen == [[2], [2, 3], [2, 3, 4]]
