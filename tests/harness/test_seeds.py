"""Figures of seeds that were trained as one, as fairseq-validate logs them."""

from __future__ import annotations

import json

import pytest

from seqstruct.harness.seeds import main, measure

SEEDS = {4: (50.0, 1.0, 51.0, 10.0), 5: (60.0, 2.0, 61.0, 20.0), 6: (60.0, 1.5, 62.0, 30.0),
         11: (40.0, 0.1, 41.0, 90.0)}
NAMES = ("valid_accuracy", "valid_loss", "test_accuracy", "test_fact_accuracy")


def lines():
    for split in ("valid", "test"):
        found = {f"{name}_seed_{seed}": value for seed, values in SEEDS.items()
                 for name, value in zip(NAMES, values, strict=True) if name.startswith(split)}
        yield f"x | INFO | {split} | {json.dumps({f'{split}_accuracy': 1.0, **found})}"


def test_the_facts_of_the_half_that_is_best_on_validation():
    found = {m.metric: m for m in measure(list(lines()))}
    assert found["test_accuracy"].value == 53.75 and found["validation_loss"].unit == "nats"
    assert found["test_accuracy"].points == [(4, 51.0), (5, 61.0), (6, 62.0), (11, 41.0)]
    assert found["fact_accuracy"].value == 37.5
    assert found["fact_accuracy_of_best_half"].value == 25.0, "the loss decides nothing between seeds 5 and 6"
    assert {m.metric for m in measure(list(lines()), answers_alone=True)} == {
        "test_accuracy", "validation_accuracy", "validation_loss"}


def test_the_command(tmp_path, capsys):
    (tmp_path / "validate.log").write_text("\n".join(lines()))
    assert main([str(tmp_path / "validate.log"), "--out", str(tmp_path / "seeds.json")]) == 0
    assert len(json.loads((tmp_path / "seeds.json").read_text())) == 5
    (tmp_path / "empty.log").write_text("")
    assert main([str(tmp_path / "empty.log"), "--out", str(tmp_path / "none.json")]) == 1
    assert "expected test_accuracy_seed_N" in capsys.readouterr().err and not (tmp_path / "none.json").exists()
    with pytest.raises(ValueError, match="found none"):
        measure([])


def test_one_seed_has_no_half(monkeypatch):
    monkeypatch.setattr("tests.harness.test_seeds.SEEDS", {4: SEEDS[4]})
    assert {m.value for m in measure(list(lines()), answers_alone=True)} == {50.0, 1.0, 51.0}
    with pytest.raises(ValueError, match="expected two seeds or more, of which a half is best, got 1"):
        measure(list(lines()))
