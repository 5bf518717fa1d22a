"""The command that names the shards of a folder."""

from __future__ import annotations

import os
import runpy

import pytest

from seqstruct.data import shards


@pytest.mark.parametrize(("given", "status"), [(["{tmp}"], 0), ([], 2), (["{tmp}/0"], 1)])
def test_the_command_prints_the_data_path_or_one_sentence(given, status, tmp_path, monkeypatch, capsys):
    for number in (0, 1, 10):
        (tmp_path / str(number)).mkdir()
    monkeypatch.setattr("sys.argv", ["shards", *(word.format(tmp=tmp_path) for word in given)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(shards.__file__, run_name="__main__")
    assert ended.value.code == status
    expected = os.pathsep.join(f"{tmp_path}/{number}" for number in (0, 1, 10)) + "\n" if status == 0 else ""
    assert capsys.readouterr().out == expected
