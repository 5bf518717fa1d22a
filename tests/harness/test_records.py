"""Records: complete, appended whole or not at all, refused where malformed."""

from __future__ import annotations

import errno
import json
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import pytest

from seqstruct.harness.records import Record, append_records, latest, of_each_seed, read_records


def test_a_record_has_the_keys_of_the_format_and_survives_the_round_trip(record):
    one = record(axis="length", points=[[40, 0.5]], machine={"threads": "1"})
    assert Record.from_json(one.to_json()) == one
    assert set(json.loads(record().to_json())) == {
        "paper", "table", "row", "metrics", "seed", "scale", "dataset", "configuration_hash",
        "data_checksums", "parameters", "seconds", "peak_memory", "versions", "command",
    }


def test_append_keeps_what_was_there_and_sorts_by_table(record, tmp_path):
    append_records(tmp_path, [record()])
    append_records(tmp_path, [record(seed=2), record(table="5", parameters=None)])
    assert [r.seed for r in read_records(tmp_path / "figure-2.jsonl")] == [1, 2]
    assert [r.table for r in read_records(tmp_path / "5.jsonl")] == ["5"]
    assert sorted(os.listdir(tmp_path)) == ["5.jsonl", "figure-2.jsonl"]


def test_a_line_without_its_newline_is_not_joined_to_the_next(record, tmp_path):
    (tmp_path / "figure-2.jsonl").write_text(record().to_json())
    append_records(tmp_path, [record(seed=2)])
    assert len(read_records(tmp_path / "figure-2.jsonl")) == 2


def test_a_full_disk_leaves_the_old_file_whole_and_says_so(record, tmp_path, monkeypatch):
    append_records(tmp_path, [record()])
    before = (tmp_path / "figure-2.jsonl").read_bytes()

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left.*2 new records are not in it, the old ones are") as caught:
        append_records(tmp_path, [record(seed=2), record(seed=3)])
    assert caught.value.errno == errno.ENOSPC
    assert (tmp_path / "figure-2.jsonl").read_bytes() == before
    assert os.listdir(tmp_path) == ["figure-2.jsonl"]


@pytest.mark.parametrize("old, new, message", [
    ('"command": "python x.py"}', '"command": "pyth', "Unterminated string"),
    (None, "[]", "expected a JSON object, got list"),
    (None, "{}", "missing keys: command, configuration_hash"),
    (None, "", "Expecting value"),
    ('"seed": 1', '"seed": 1, "extra": 1', "unknown keys: extra"),
    ("12.5", '"long"', "seconds: expected a finite number, got 'long'"),
    ("0.25", "NaN", "difference: value: expected a finite number"),
    ('{"difference": {"value": 0.25, "unit": "nats"}}', "{}", "metrics: expected at least one"),
    (', "unit": "nats"', "", "difference: expected an object with value and unit"),
    ('"nats"', '"nats", "axis": "length", "points": [[1]]', "points: expected pairs of finite numbers"),
    ('"nats"', '"nats", "axis": "length"', "difference: expected an object with value and unit, or also"),
    ('"small"', '"tiny"', "scale: expected one of smoke, small, paper, got 'tiny'"),
    ('"figure-2"', '"../figure-2"', "table: expected a name for a file, got '../figure-2'"),
    ('"figure-2"', '""', "table: expected a name for a file, got ''"),
    ("stack_attention", "other", "paper: expected one of stack_attention"),
    ("0.25", "1" + "0" * 400, "difference: value: expected a finite number"),
    ('"versions": {', '"versions": {"commit": 5, ', "versions: expected an object of strings"),
    ("0.25", "[" * 100_000, "maximum recursion depth"),
    ("0.25", "[" * 900 + "]" * 900, "not a record"),
])
def test_a_malformed_line_is_named(record, tmp_path, old, new, message):
    path = tmp_path / "figure-2.jsonl"
    good = record().to_json()
    path.write_text(good + "\n" + (new if old is None else good.replace(old, new)) + "\n")
    with pytest.raises(ValueError, match="line 2: not a record: ") as caught:
        read_records(path)
    assert message in str(caught.value) and str(path) in str(caught.value)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="line 2"):
        append_records(tmp_path, [record()])
    assert path.read_bytes() == before


def test_a_line_that_is_not_utf_8_is_named(record, tmp_path):
    path = tmp_path / "figure-2.jsonl"
    path.write_bytes(record().to_json().encode() + b"\n\xff\n")
    with pytest.raises(ValueError, match=f"^{path}, line 2: not a record: 'utf-8' codec"):
        read_records(path)


def test_no_file_is_no_records(tmp_path):
    assert read_records(tmp_path / "5.jsonl") == []


def test_a_run_made_again_replaces_the_one_before(record):
    first, second, again = record(), record(seed=2), record(value=0.125)
    assert latest([first, second, again]) == [second, again]


def test_what_only_an_earlier_record_of_a_run_has_still_counts(record):
    entries = {name: {"value": value, "unit": ""} for name, value in (("bleu", 30.0), ("speed", 5.0))}
    whole, again = record(metrics=entries), record(metrics={"bleu": {"value": 31.0, "unit": ""}}, seconds=9.0)
    assert latest([whole, again]) == [replace(whole, metrics={"speed": entries["speed"]}), again]


def test_seeds_trained_as_one_are_taken_apart_and_the_rest_stays(record):
    entries = {
        "accuracy": {"value": 0.5, "unit": "%", "axis": "seed", "points": [[3, 0.25], [7, 0.75]]},
        "parameters": {"value": 11, "unit": ""},
        "by length": {"value": 2.0, "unit": "", "axis": "length", "points": [[5, 2.0]]},
    }
    apart = of_each_seed([record(metrics=entries, seed=3)])
    assert [(r.seed, {name: m["value"] for name, m in r.metrics.items()}) for r in apart] == [
        (3, {"accuracy": 0.25, "parameters": 11, "by length": 2.0}), (7, {"accuracy": 0.75})]
    assert apart[0].points("by length") == [[5, 2.0]] and apart[1].value("parameters") is None


def _append(work):
    folder, one = work
    append_records(folder, [one])


def test_processes_that_append_together_lose_nothing(record, tmp_path):
    with ProcessPoolExecutor(4) as pool:
        list(pool.map(_append, [(tmp_path, record(seed=seed)) for seed in range(13)]))
    assert sorted(r.seed for r in read_records(tmp_path / "figure-2.jsonl")) == list(range(13))
