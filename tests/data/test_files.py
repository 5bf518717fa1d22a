"""Files are whole or absent."""

from __future__ import annotations

import errno
import gzip
import os
from pathlib import Path

import pytest

from seqstruct.data.files import atomic_write, open_text, sha256, verify


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "deep" / "x.txt"
    with atomic_write(path) as stream:
        stream.write("old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        with atomic_write(path) as stream:
            stream.write("new")
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def test_checksums(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"abc")
    assert sha256(path) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    verify(path, sha256(path))
    with pytest.raises(ValueError, match="truncated or altered"):
        verify(path, "0" * 64)


def test_text_lines_end_at_newlines_alone(tmp_path: Path) -> None:
    text = "a\u2028b\r\nc\n"
    (tmp_path / "x.txt").write_bytes(text.encode())
    with gzip.open(tmp_path / "x.gz", "wb") as stream:
        stream.write(text.encode())
    for name in ("x.txt", "x.gz"):
        with open_text(tmp_path / name) as stream:
            assert list(stream) == ["a\u2028b\r\n", "c\n"]
