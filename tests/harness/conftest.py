"""Fixtures of the harness's tests."""

from __future__ import annotations

import pytest

from seqstruct.harness.records import Record


@pytest.fixture
def record():
    """A function that makes a record, whole but for what it is told to change; of one metric unless given several."""

    def make(metric="difference", value=0.25, unit="nats", axis="", points=(), **changes):
        split = {"axis": axis, "points": points} if axis else {}
        whole = dict(
            paper="stack_attention", table="figure-2", row="dyck Tf",
            metrics={metric: {"value": value, "unit": unit, **split}}, seed=1, scale="small",
            dataset="Dyck-2", configuration_hash="ab12", data_checksums={"a": "00"},
            parameters=43109, seconds=12.5, peak_memory=1 << 20, versions={"torch": "2"}, command="python x.py",
        )
        return Record(**{**whole, **changes})

    return make
