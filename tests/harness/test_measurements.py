"""Numbers read from logs of fairseq."""

from __future__ import annotations

import json
import re

import pytest

from seqstruct.benchmarks import generate_speed
from seqstruct.harness.measurements import read, require
from seqstruct.scoring.measurement import Measurement, write
from tests.bridge.test_logs import line

SPEED = "INFO | fairseq_cli.generate | Translated 1,000 sentences (9 tokens) in 2.0s (50.5 sentences/s, {} tokens/s)\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.log").write_text(
        "num. shared model params: 1,234 (num. trained: 1,234)\n"
        + "rank   0: capabilities =  9.0  ; total memory = 79.500 GB ; name = A GPU\n"
        + line("train_inner", epoch="1", wps="3", gb_free="78.5")
        + line("train_inner", epoch="1", wps="9", gb_free="75")
        + line("valid", epoch="1", valid_loss="4", valid_ppl="16", valid_num_updates="5")
        + line("train_inner", epoch="2", wps="4")
        + line("valid", epoch="2", valid_loss="3", valid_best_loss="3", valid_ppl="8", valid_num_updates="10")
        + line("valid", epoch="2", valid_loss="5", valid_best_loss="3", valid_ppl="32", valid_num_updates="15")
        + line("train", epoch="2", train_loss="2.5") + line("train", epoch="3", train_loss="1.5")
    )
    (tmp_path / "decode.log").write_text(SPEED.format(4) + SPEED.format(7.25))
    return tmp_path


@pytest.mark.parametrize("request_, value", [
    ("m[u]=train.log:valid_ppl", 32.0), ("m[u]=train.log:valid_ppl@best", 8.0), ("m[u]=train.log:wps@median", 4.0),
    ("m[u]=train.log:train_loss@best", 2.5), ("m[u]=train.log:parameters", 1234.0),
    ("m[u]=train.log:gpu_memory", 4.5),
    ("m[u]=train.log+train.log:parameters", 2468.0), ("m[u]=decode.log:tokens_per_second", 7.25),
    ("m[u]=decode.log:sentences_per_second", 50.5),
])
def test_what_a_request_finds(folder, request_, value):
    assert read(folder, [request_, f"4.4:{request_}"]) == [
        Measurement("m", value, "u"), Measurement("m", value, "u", table="4.4")]


@pytest.mark.parametrize("statistic", ["2^valid_loss", "valid_ppl"])
def test_a_statistic_by_epoch(folder, statistic):
    (found,) = read(folder, [f"m[u]=train.log:{statistic}@best/epoch"])
    assert found == Measurement("m", 8.0, "u", "epoch", [(1.0, 16.0), (2.0, 32.0)])


def test_a_log_of_a_shared_training_is_named_from_where_commands_run(folder, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(folder.parent)
    (found,) = read(tmp_path_factory.mktemp("cell"), [f"m[u]={folder.name}/train.log:parameters"])
    assert found.value == 1234


@pytest.mark.parametrize("request_, told", [
    ("m[u]=decode.log:wps@median", "says no wps"), ("m[u]=train.log:sentences_per_second", "says no sentences"),
    ("m[u]=decode.log:gpu_memory", "says no gpu_memory"),
    ("m=train.log:wps", "expected METRIC[UNIT]=FILE:KEY or FILE.json"),
    ("m[u]=train.log+train.log:valid_loss/epoch", "expected one FILE with KEY/epoch, whose points are not added up"),
    ("m[u]=train.log:parameters/string length", "says no points of parameters"),
])
def test_what_it_does_not_find(folder, request_, told):
    with pytest.raises(ValueError, match=re.escape(told)):
        read(folder, [request_])


def test_the_faster_decoding_of_each_side_counts(folder, capsys):
    (folder / "other.log").write_text(SPEED.format(2.9))
    logs = [str(folder / name) for name in ("decode.log", "other.log")]
    out = folder / "speed.json"
    assert generate_speed.main([*logs, "--against", logs[1], "--out", str(out)]) == 0
    assert [(m.metric, m.value) for m in read(folder, ["speed.json"])] == [
        ("decoding_speed", 7.25 / 2.9), ("decoding_tokens_per_second", 7.25)]
    assert generate_speed.main([str(folder / "train.log"), "--against", logs[0], "--out", str(out)]) == 1
    assert "expected the line of fairseq-generate" in capsys.readouterr().err


def test_measurements_are_read_as_they_were_written(tmp_path):
    found = [Measurement("a", 1.5, "u", "length", [[1, 2.0]], "2"), Measurement("b", 3.0, "", points=[])]
    write(tmp_path / "x.json", found)
    assert read(tmp_path, ["x.json"]) == found


@pytest.fixture
def cell(tmp_path):
    (tmp_path / "cell").mkdir()
    line = 'x | INFO | valid | {"epoch": 1, "valid_loss": "3.5", "valid_most_predicted": "64.0"}\n'
    (tmp_path / "cell" / "train.log").write_text(line)
    (tmp_path / "cell" / "scores.json").write_text(json.dumps({"f1": 71.25}))
    return tmp_path / "cell"


def test_perplexities_and_json(cell, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("elsewhere.json", [Measurement("accuracy", 80.0, "%"), Measurement("bleu", 1.0, "BLEU", table="9")])
    assert read(cell, ["p[perplexity]=train.log:2^valid_loss"]) == [Measurement("p", 2**3.5, "perplexity")]
    assert read(cell, ["3.3:f1[%]=scores.json:f1"]) == [Measurement("f1", 71.25, "%", table="3.3")]
    (found,) = read(cell, ["b[share]=elsewhere.json:accuracy"])
    assert (found.metric, found.value, found.unit) == ("b", 80.0, "share")
    assert [(m.metric, m.table) for m in read(cell, ["elsewhere.json"])] == [("accuracy", ""), ("bleu", "9")]
    assert {m.table for m in read(cell, ["2.3:elsewhere.json"])} == {"2.3"}


def test_what_the_training_of_a_cell_took(cell):
    steps = {"a": {"kind": "log", "seconds": 1.0, "peak_memory": 9}, "b": {"kind": "train", "seconds": 7.5,
             "peak_memory": 3 * 2**20}}
    (cell / "steps.json").write_text(json.dumps(steps))
    request = "m[MiB]=steps.json:mebibytes"
    assert read(cell, [request]) == [Measurement("m", 3.0, "MiB")]
    (cell / "steps.json").write_text(json.dumps({"a": steps["a"]}))
    with pytest.raises(ValueError, match="steps.json: it says no mebibytes"):
        read(cell, [request])
    (cell / "steps.json").unlink()  # commands that were typed
    assert read(cell, [request, "f[%]=scores.json:f1"]) == [Measurement("f", 71.25, "%")]


@pytest.mark.parametrize("request_, told", [
    ("loss[nats]", "expected METRIC[UNIT]=FILE:KEY or FILE.json, got 'loss[nats]'"),
    ("f2[%]=scores.json:f2", "scores.json: it says no f2"),
    ("p[p]=scores.json:2^f1", "scores.json: expected a KEY alone"),
    ("f1[%]=scores.json:f1@best", "got 'f1[%]=scores.json:f1@best'"), ("f1[%]=scores.json:f1/epoch", "a KEY alone"),
])
def test_json_that_says_nothing_of_it(cell, request_, told):
    with pytest.raises(ValueError, match=re.escape(told)):
        read(cell, [request_])


@pytest.mark.parametrize("content, request_", [
    (b'[{"metric": "f1"}]', "x.json"), (b'{"f1": 1}', "x.json"), (b"null", "x.json"), (b'{"f1', "x.json"),
    (b"", "x.json"),
    (b'[{"metric": "f1"}]', "f[%]=x.json:f1"), (b"[{}]", "f[%]=x.json:f1"), (b"[3]", "f[%]=x.json:f1"),
    (b"null", "f[%]=x.json:f1"), (b"\xff", "x.json"), (b"\xff", "f[%]=x.json:f1"), (b"\xff", "f[%]=x.log:f1"),
])
def test_what_is_damaged_is_named(cell, content, request_):
    path = cell / ("x.log" if ".log" in request_ else "x.json")
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: (truncated or altered|expected)"):
        read(cell, [request_])


def test_a_perplexity_beyond_float64_is_told(cell):
    (cell / "train.log").write_text(line("valid", epoch="1", valid_loss="1024"))
    with pytest.raises(ValueError, match=r"train\.log: 2\^valid_loss is beyond float64: valid_loss is 1024"):
        read(cell, ["p[perplexity]=train.log:2^valid_loss"])


def test_conditions(cell):
    require(cell, ["train.log:valid_most_predicted<100", "train.log:valid_loss@best<4"])
    with pytest.raises(ValueError, match="no result: expected train.log:valid_loss<3.5, got 3.5"):
        require(cell, ["train.log:valid_loss<3.5"])
    with pytest.raises(ValueError, match="expected FILE:KEY<NUMBER, got 'train.log:valid_loss>1'"):
        require(cell, ["train.log:valid_loss>1"])
