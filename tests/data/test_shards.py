"""The command that names the shards of a folder."""

from __future__ import annotations

import os
import runpy

import pytest
from fairseq.data import Dictionary, data_utils

from seqstruct.data import shards


@pytest.mark.parametrize(("given", "status"), [(["{tmp}"], 0), ([], 2), (["{tmp}/0"], 1)])
def test_the_command_prints_the_data_path_or_one_sentence(given, status, tmp_path, monkeypatch, capsys):
    for name in ("0", "1", "10", "1.old"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr("sys.argv", ["shards", *(word.format(tmp=tmp_path) for word in given)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(shards.__file__, run_name="__main__")
    assert ended.value.code == status
    expected = os.pathsep.join(f"{tmp_path}/{number}" for number in (0, 1, 10)) + "\n" if status == 0 else ""
    assert capsys.readouterr().out == expected


def test_a_last_line_without_its_newline_is_a_line(tmp_path):
    for split, text in (("train", "a b\nb\nc"), ("valid", "a\r\nc"), ("test", "b")):
        (tmp_path / f"{split}.txt").write_bytes(text.encode())
    assert shards.binarise(tmp_path, tmp_path / "bin", 2) == f"{tmp_path}/bin/0{os.pathsep}{tmp_path}/bin/1"
    dictionary = Dictionary.load(str(tmp_path / "bin" / "0" / "dict.txt"))
    for name, lines in {"0/train": ["a b", "c"], "1/train": ["b"], "0/valid": ["a", "c"], "0/test": ["b"]}.items():
        found = data_utils.load_indexed_dataset(str(tmp_path / "bin" / name), dictionary)
        assert [dictionary.string(line) for line in found] == lines, name
    with pytest.raises(ValueError, match="train.txt: expected 1 to 3 shards, got 4"):
        shards.binarise(tmp_path, tmp_path / "more", 4)
