"""Line by line and by fairseq-preprocess the same bytes come out; what fails is said."""

from __future__ import annotations

import subprocess

import pytest
from fairseq.data import Dictionary

from seqstruct.data.text import binarise
from seqstruct.data.text.binarise import preprocess, write_lines


def test_both_ways_agree(tmp_path, monkeypatch):
    lines = ["a b c a", "", "d  b <unk>"]
    for split in ("train", "valid"):
        (tmp_path / f"{split}.txt").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "dict.txt").write_text("a 3\nb 2\nc 1\n")
    arguments = ["--only-source", "--srcdict", tmp_path / "dict.txt", "--trainpref", tmp_path / "train.txt"]
    with monkeypatch.context() as apart:
        apart.setattr(binarise, "subprocess", subprocess)  # the command itself, as users have it
        preprocess(tmp_path / "by_command", arguments)
    dictionary = Dictionary.load(str(tmp_path / "dict.txt"))
    assert write_lines(lines, tmp_path / "train", dictionary) == 3
    for name in ("train.bin", "train.idx"):
        assert (tmp_path / name).read_bytes() == (tmp_path / "by_command" / name).read_bytes()
    assert not (tmp_path / "by_command" / "preprocess.log").exists()
    with pytest.raises(ValueError, match="fairseq-preprocess failed: .*absent"):
        preprocess(tmp_path / "again", ["--only-source", "--trainpref", tmp_path / "absent"])
