"""What is owed at the published sizes: cells without a record, their hours, recipes that have no such scale."""

from __future__ import annotations

import pytest

from seqstruct.harness.estimates import main, owed, report
from seqstruct.harness.records import append_records
from seqstruct.harness.script import Cell, Script
from tests.harness.scripts import TEXT, make_repository

LONG = TEXT.replace("minutes=1.5 disk=2", 'minutes=90 disk=1024; [[ "$row" != copy ]] || minutes=30')


def test_hours_and_disk_are_those_of_the_cells_without_a_record(tmp_path, record):
    script = Script(make_repository(tmp_path, LONG))
    assert script.estimate(Cell("plain", 2, "paper")) == ("1.5", 90.0, 1024.0)
    # three rows of three seeds, and a baseline of one
    assert list(owed(script)) == [("`nmt_lectures/fake.sh`", "1.5", 10, 9 * 1.5 + 0.5, 10.0)]
    known = {"paper": "nmt_lectures", "table": "1.5", "scale": "paper"}
    append_records(script.path.parent / "records", [
        record(**known, row="plain", seed=2), record(**known, row="copy", seed=1),
        record(**{**known, "scale": "small"}, row="plain", seed=1),
        record(**{**known, "table": "2"}, row="plain", seed=3),
    ])
    assert list(owed(script)) == [("`nmt_lectures/fake.sh`", "1.5", 8, 8 * 1.5, 8.0)]
    assert report(script.path.parents[1]).splitlines()[2:] == [
        "| `nmt_lectures/fake.sh` | 1.5 | 8 | 12 | 8.0 |", "| all |  | 8 | 12 | 8.0 |"]


def test_tables_of_minutes_and_recipes_without_the_scale_are_left_out(tmp_path, capsys):
    script = Script(make_repository(tmp_path))  # ten cells of a minute and a half
    (line,) = owed(script)
    assert line[3] == pytest.approx(0.25)
    assert main([str(script.path.parents[1])]) == 1
    assert "expected a folder of recipes that owe an hour or more" in capsys.readouterr().err
    for said, answer in (("its scales are smoke and small", True), ("no such row", False)):
        text = LONG.replace("cell() {", f'cell() {{\n    [[ "$scale" != paper ]] || {{ echo "{said}" >&2; exit 1; }}')
        script.path.write_text(text)
        if answer:
            assert list(owed(Script(script.path))) == []
        else:
            with pytest.raises(ValueError, match=said):
                list(owed(Script(script.path)))
