"""What is measured of efficient attention, as rows of the thesis: decoding, its states, encoding."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from seqstruct.benchmarks import decode, efficient_rows, encode, write_curves
from seqstruct.benchmarks.timing import Place
from seqstruct.harness.paper import paper_folder, read_tables

TABLES = {table.name: table.published for table in read_tables(paper_folder("peng_thesis"))}


def published(table: str) -> dict[str, set[str]]:
    """Metrics by row."""
    found: dict[str, set[str]] = {}
    for entry in TABLES[table]:
        found.setdefault(entry.row, set()).add(entry.metric)
    return found


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LAYERS": 3, "MODEL": 8, "HEADS": 2, "FEED_FORWARD": 8, "WORDS": 12}.items():
        monkeypatch.setattr(decode, name, value)
    for name, value in {"BATCH": 2, "MODEL": 8, "HEADS": 2, "FEED_FORWARD": 8}.items():
        monkeypatch.setattr(encode, name, value)


def test_decoders_have_the_rows_of_the_figures(tmp_path: Path) -> None:
    names = efficient_rows.DECODERS
    assert set(names.values()) == {*decode.PLANS, decode.LIMIT}
    content = {
        "greedy": {name: [[32, 4.0], [64, 8.0 if name == "softmax" else 4.0]] for name in names.values()},
        "beam": {name: [[32, 5.0], [64, 20.0 if name == "softmax" else 5.0]] for name in names.values()},
        "full": {name: 3.0 if name == "softmax" else 1.5 for name in names.values()},
    }
    (tmp_path / "conditional.json").write_text(json.dumps(content))
    (tmp_path / "unconditional.json").write_text(json.dumps({**content, "full": {}}))
    seen: dict[str, set[str]] = {}
    memory = {"state_memory", "memory_share", "reserved_memory"}
    for row in names:
        found = efficient_rows.speed(row, tmp_path)
        for table in {m.table for m in found}:
            seen.setdefault(table, set()).add(row)
            assert published(table)[row] == {m.metric for m in found if m.table == table} | memory
        values = {m.metric: m.value for m in found}
        fast = row != "softmax"
        assert values["decoding_speed"] == (16 / 0.004 if fast else 16 / 0.008)
        assert values["speed_up"] == values["full_run_speed_up"] == (2.0 if fast else 1.0)
        assert values["beam_decoding_speed"] == pytest.approx(16 / 0.005 if fast else 16 / 0.02)
        assert values["beam_speed_up"] == (4.0 if fast else 1.0)
        assert values["full_run_speed"] == 64 * 16 / (1.5 if fast else 3.0)
    assert seen == {table: set(published(table)) for table in efficient_rows.FIGURES}


def test_states_are_counted_as_they_are_used_and_beside_that_as_they_are_reserved(small, monkeypatch) -> None:
    monkeypatch.setattr(decode, "BATCH", 2)
    found = {(m.table, m.metric): m for m in efficient_rows.memory("softmax", (33, 9))}
    # keys, values and padding of 3 layers, and a length of each row
    causal = {cells: 3 * (2 * (2 * 2 * cells * 4 * 4) + 2 * cells + 2 * 8) / 1e6 for cells in (9, 16, 33, 64)}
    assert found["figure-4.3", "state_memory"].points == [(n, pytest.approx(causal[n])) for n in (9, 33)]
    assert found["figure-4.3", "reserved_memory"].points == [
        (9, pytest.approx(causal[16])), (33, pytest.approx(causal[64]))]  # doubled after 8 and after 32
    # across nothing is spare: the source is written at once
    assert found["figure-4.2", "state_memory"].value == pytest.approx(2 * causal[33])
    assert found["figure-4.2", "reserved_memory"].value == pytest.approx(causal[64] + causal[33])
    assert {m.value for (_, metric), m in found.items() if metric == "memory_share"} == {100.0}
    rfa = {(m.table, m.metric): m.value for m in efficient_rows.memory("RFA-Gaussian", (9, 33))}
    assert rfa["figure-4.2", "reserved_memory"] == rfa["figure-4.2", "state_memory"]  # one size, and no spare room
    assert rfa["figure-4.2", "memory_share"] == pytest.approx(
        100 * rfa["figure-4.2", "state_memory"] / found["figure-4.2", "state_memory"].value)
    assert {table for table, _ in found} == set(efficient_rows.FIGURES)


def test_a_decoder_that_has_read_nothing_is_refused(small, refused) -> None:
    with pytest.raises(ValueError, match="expected lengths of 2 or more, got 1"):
        efficient_rows.memory("RFA-Gaussian", (1,))
    assert "expected lengths of 2 or more, got 1" in refused("bench", "decode", "--lengths", "1")


def test_encoding_has_the_rows_of_table_5_8(tmp_path: Path) -> None:
    names = efficient_rows.ENCODERS
    assert set(names) == set(published("5.8")) and list(names.values()) == list(encode.layers(4))
    times = {name: [[512, 10.0 / (i + 1)]] for i, name in enumerate(names.values())}
    (tmp_path / "encoding.json").write_text(json.dumps({"time": times, "memory": times}))
    found = {m.metric: m.value for m in efficient_rows.encoding("Linformer 64", tmp_path)}
    assert found == {"encoding_speed": pytest.approx(2.0), "memory": pytest.approx(0.5), "layer_time": 5.0}


def test_the_command_writes_or_says_why_not(small, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out", str(tmp_path / "found.json")]
    assert efficient_rows.main(["states", "T2R", "--lengths", "3", *out]) == 0
    assert json.loads((tmp_path / "found.json").read_text())[0]["table"] == "figure-5.1"
    for words, told in ((["states", "BASE", "--lengths", "3"], "expected a row of softmax, "),
                        (["speed", "T2R", "--lengths", "3"], "--curves for what was timed"),
                        (["encoding", "BASE", "--curves", str(tmp_path)], "encoding.json")):
        assert efficient_rows.main([*words, *out]) == 1
        assert told in capsys.readouterr().err


@pytest.mark.parametrize("kind", write_curves.KINDS)
def test_curves_are_written(kind: str, small, tmp_path: Path) -> None:
    out = tmp_path / "curves"
    assert write_curves.main([kind, "--lengths", "5", "3", "--repeats", "1", "--full", "--out", str(out)]) == 0
    content = json.loads((out / f"{kind}.json").read_text())
    quantities = ("time", "memory") if kind == "encoding" else ("greedy", "beam")
    for quantity in quantities:
        assert all([n for n, _ in points] == [3, 5] for points in content[quantity].values())
    assert set(content["full"]) == (set(content["beam"]) if kind == "conditional" else set())
    assert all(value > 0 for value in content["full"].values())


def test_curves_that_cannot_be_measured_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "curves"
    for options, message in ((["--lengths", "0"], "lengths and repeats of 1 or more"),
                             (["--lengths", "3", "--repeats", "0"], "lengths and repeats of 1 or more"),
                             (["--lengths", "3", "--device", "nowhere"], "no device nowhere")):
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
    assert decode.full_run(Counter(), 3, Place.of("cpu", "float32")) > 0
    assert seen == [[2], [2, 3], [2, 3, 4]]
