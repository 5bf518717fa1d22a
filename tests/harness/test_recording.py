"""Records of a cell: whose trainings they count."""

from __future__ import annotations

import pytest

from seqstruct.harness.recording import make_records
from seqstruct.scoring.measurement import Measurement
from tests.bridge.test_logs import line

A, B = Measurement("a", 1.0, "u"), Measurement("b", 2.0, "u", table="5.7")
SAID = {"paper": "peng_thesis", "table": "5.5a", "row": "BASE", "seed": 1, "scale": "small", "dataset": "d",
        "configuration": "0" * 16, "command": "c", "data": None}


@pytest.mark.parametrize("kinds, parameters, seconds, memory", [
    ((), 300, 9.0, 0), (("shared",), 10, 1.5, 7), (("shared", "shared"), 30, 4.5, 8),
    (("shared", "train"), 300, 3.0, 8), (("train", "train"), 300, 4.5, 8), (("step", "record"), 300, 9.0, 7),
    (("step", "train"), 300, 3.0, 8),
])
def test_trainings_of_a_cell_and_those_that_it_shares(tmp_path, kinds, parameters, seconds, memory):
    cell = tmp_path / "cell"
    cell.mkdir()
    (cell / "train.log").write_text("num. shared model params: 300\n" + line("train", train_wall="9"))
    steps = []
    for number, kind in enumerate(kinds, 1):
        (tmp_path / f"{number}.log").write_text(f"num. shared model params: {number}0\n")
        log = "train.log" if kind == "train" else str(tmp_path / f"{number}.log")
        steps.append({"kind": kind, "log": log, "seconds": 1.5 * number, "peak_memory": 6 + number})
    found = make_records([A, B], cell=cell, steps=steps, **SAID)
    assert [(r.table, list(r.metrics)) for r in found] == [("5.5a", ["a"]), ("5.7", ["b"])]
    assert (found[0].parameters, found[0].seconds, found[0].peak_memory) == (parameters, seconds, memory)


@pytest.mark.parametrize("again, table", [(A, "5.5a"), (A._replace(table="5.5a"), "5.5a"), (B, "5.7")])
def test_a_table_has_a_metric_once(tmp_path, again, table):
    assert len(make_records([A, B, A._replace(table="5.7")], cell=tmp_path, steps=[], **SAID)) == 2
    with pytest.raises(ValueError, match=f"expected {again.metric} once for table {table}, got it again: "):
        make_records([A, B, again], cell=tmp_path, steps=[], **SAID)


def test_data_that_is_not_there_has_no_record(tmp_path):
    with pytest.raises(ValueError, match="counts: expected the folder of the prepared data, found none"):
        make_records([A], cell=tmp_path, steps=[], **{**SAID, "data": tmp_path / "counts"})
