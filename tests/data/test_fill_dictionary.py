"""Dictionaries filled up with words that no text has."""

from __future__ import annotations

import pytest
from fairseq.data import Dictionary

from seqstruct.data import fill_dictionary


def test_a_dictionary_is_filled_up(tmp_path, capsys):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "dict.de.txt").write_text("a 3\nb 1\n")
    (tmp_path / "bin" / "train.bin").write_bytes(b"x")
    command = [str(tmp_path / "bin"), "--out", str(tmp_path / "out"), "--entries"]
    assert fill_dictionary.main([*command, "5"]) == 1
    assert "expected at most 5 entries, found 6" in capsys.readouterr().err and not (tmp_path / "out").exists()
    assert fill_dictionary.main([*command, "13"]) == 0
    dictionary = Dictionary.load(str(tmp_path / "out" / "dict.de.txt"))
    assert len(dictionary) == 13 and dictionary.index("b") == 5
    assert (tmp_path / "out" / "train.bin").read_bytes() == b"x"
    assert dictionary.symbols[6:] == [f"madeupword{number}" for number in range(7)]
    fill_dictionary.copy_filled(tmp_path / "out", 16, tmp_path / "more")
    assert len(Dictionary.load(str(tmp_path / "more" / "dict.de.txt"))) == 16, "what is filled up can be filled further"
    with pytest.raises(ValueError, match="expected a folder outside of .*bin, got .*bin/more"):
        fill_dictionary.copy_filled(tmp_path / "bin", 13, tmp_path / "bin" / "more")
    assert len(list((tmp_path / "bin").iterdir())) == 2
    (tmp_path / "bin" / "dict.de.txt").unlink()
    with pytest.raises(ValueError, match="expected dict.txt or dict.LANGUAGE.txt, found none"):
        fill_dictionary.copy_filled(tmp_path / "bin", 13, tmp_path / "other")
