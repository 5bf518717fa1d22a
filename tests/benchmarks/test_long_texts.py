"""Training steps of the models of table 4.5: every mechanism is measured as its config says, nothing is dropped."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from seqstruct.attention import Site, parse_choices
from seqstruct.benchmarks import long_texts
from seqstruct.benchmarks.timing import Contestant, Place
from seqstruct.harness import measurements

CONFIGS = Path(__file__).resolve().parents[2] / "configs" / "peng_thesis" / "long_range"
ROWS = sorted(path.stem for path in (CONFIGS / "row").glob("*.yaml"))


@pytest.mark.training
@pytest.mark.parametrize("row", ROWS)
def test_every_mechanism_is_measured_at_its_length_with_nothing_dropped(row: str) -> None:
    settings = long_texts.settings_of(CONFIGS, "train", [f"row={row}", "scale=smoke"], (9, 20))
    for length, model in settings.items():
        assert parse_choices(model["encoder_self_attention"], 1, Site.ENCODER_SELF)
        assert re.findall(r"length=(\d+)", model["encoder_self_attention"]) in ([], [str(length + 1)])
        assert model["max_source_positions"] == length + 1
        assert model["dropout"] == model["attention_dropout"] == model["activation_dropout"] == 0.0
    found = long_texts.compared([settings], (9, 20), 2, 1, Place.of("cpu", "float32"))
    assert [m.metric for m in found] == ["speed_9", "memory_9", "speed_20", "memory_20"]
    assert {m.value for m in found} == {1.0}


@pytest.mark.parametrize("size, layers, tied", [("listops", 6, True), ("imdb", 4, None), ("aan", 4, None)])
def test_published_sizes(size: str, layers: int, tied: bool | None) -> None:
    model = long_texts.settings_of(CONFIGS, "train", ["row=linear", "scale=paper", f"size={size}"], (1000,))[1000]
    assert (model["encoder_layers"], model.get("tie_layers")) == (layers, tied)


def test_the_last_row_is_measured_and_every_length_has_a_name(tmp_path: Path, monkeypatch) -> None:
    words = ["--config-dir", str(CONFIGS), "--config-name", "train", "--base", "transformer", "--repeats", "1",
             "--out", str(tmp_path / "found.json"), "--lengths", "1000", "1024", "2000"]
    taken = []
    monkeypatch.setattr(long_texts, "settings_of", lambda _, __, overrides, lengths: taken.append(overrides) or
                        dict.fromkeys(lengths, {}))
    steps = Contestant(lambda: torch.zeros(3), lambda _: None)
    monkeypatch.setattr(long_texts, "training_step", lambda *_: steps)
    monkeypatch.setattr(long_texts, "audit", lambda _: SimpleNamespace(peak=2.0))
    for rows, held in ((["row=linear"], 2), (["row=transformer", "row=linear"], 2), (["row=transformer"], 1)):
        taken.clear()
        assert long_texts.main([*rows, *words]) == 0
        assert taken == [rows, [*rows, "row=transformer"]][:held]
    metrics = [found.metric for found in measurements.read(tmp_path, ["found.json"])]
    assert metrics == [f"{kind}_{name}" for name in ("1k", "1024", "2k") for kind in ("speed", "memory")]


@pytest.mark.training
def test_the_command_writes_or_says_why_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--config-dir", str(CONFIGS), "--config-name", "train", "--base", "transformer", "--repeats", "1",
             "--out", str(tmp_path / "found.json"), "--lengths", "12"]
    assert long_texts.main(["row=abc_mlp_64", "scale=smoke", *words]) == 0
    speed, memory = measurements.read(tmp_path, ["found.json"])
    assert (speed.metric, memory.metric) == ("speed_12", "memory_12") and min(speed.value, memory.value) > 0
    for more, told in ((["row=abc"], "row/abc"), (["row=linear", "--batch", "0"], "batch of 1 or more")):
        assert long_texts.main([*more, *words]) == 1
        assert told in capsys.readouterr().err
