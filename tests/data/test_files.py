"""Files are whole or absent."""

from __future__ import annotations

import errno
import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from seqstruct.data.files import (
    atomic_write,
    new_folder,
    open_text,
    read_json,
    scratch_beside,
    sha256,
    undamaged,
    verify,
)


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


def test_errors_name_the_path_that_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    monkeypatch.chdir(tmp_path)
    for asked in ("folder", "link", tmp_path / "folder"):
        with pytest.raises(IsADirectoryError) as refused:
            with atomic_write(asked):
                pytest.fail("refused before anything is computed")
        assert refused.value.filename == str(asked)
    with pytest.raises(IsADirectoryError) as late:
        with atomic_write("file"):
            Path("file").mkdir()
    assert (late.value.filename, late.value.filename2) == ("file", None)
    for asked in ("/proc/x.json", str(tmp_path / ("x" * 250))):  # the second with what is put before and behind it
        with pytest.raises(OSError) as nowhere:
            with atomic_write(asked):
                pass
        assert nowhere.value.filename == asked
    with pytest.raises(FileNotFoundError) as other:  # of the block's own
        with atomic_write("text"):
            open("absent")
    assert other.value.filename == "absent"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder", "link"]


@pytest.mark.parametrize("content", [b"", b'{"a": ', b"\0\n", b'{"a": "\xe9"}', b"[" * 100_000, b"[]", b"3", b"null"])
def test_a_damaged_description_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b'{"a": [1]}')
    assert read_json(path) == read_json(path, dict, list) == {"a": [1]}
    with pytest.raises(ValueError, match="x.json: expected a list in JSON, got dict"):
        read_json(path, list)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"x.json: (truncated or altered: |expected an object in JSON, got )"):
        read_json(path)


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


@pytest.mark.parametrize("name", ["x.txt", "x.gz"])
def test_a_byte_order_mark_is_not_of_the_text(tmp_path: Path, name: str) -> None:
    with (gzip.open if name == "x.gz" else open)(tmp_path / name, "wb") as stream:
        stream.write("\ufeffpos a\n\ufeffb\n".encode())
    with open_text(tmp_path / name) as text:
        assert list(text) == ["pos a\n", "\ufeffb\n"]


KILLED = """
import os, signal, sys
from seqstruct.data.files import new_folder
with new_folder(sys.argv[1]) as folder:
    (folder / "part").write_text("x")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_call_left_goes_and_what_is_at_work_stays(tmp_path: Path) -> None:
    out = tmp_path / "out[1]"
    subprocess.run([sys.executable, "-c", KILLED, out], check=False)
    (left,) = tmp_path.iterdir()
    with new_folder(out) as folder:
        assert not left.exists()
        with pytest.raises(ValueError, match="exists and is not empty"):  # another call for the name, which ends first
            with new_folder(out) as other:
                assert folder.exists()
                (other / "x").touch()
                (folder / "y").touch()
                out.mkdir()
                (out / "z").touch()
        (out / "z").unlink()
    assert [path.name for path in tmp_path.iterdir()] == [out.name]
    assert [path.name for path in out.iterdir()] == ["y"]


def test_scratch_goes_and_so_does_all_after_an_error(tmp_path: Path) -> None:
    with new_folder(tmp_path / "deep" / "out") as folder:
        (folder.parent / "scratch").touch()
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out"]
    with pytest.raises(KeyError):
        with new_folder(tmp_path / "deep" / "other"):
            raise KeyError
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out"]


def test_scratch_beside_a_name_outlives_the_folder_that_is_made_under_it(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    with scratch_beside(out) as scratch:
        (scratch / "unpacked").write_text("large")
        with new_folder(out) as folder:
            (folder / "file").write_text("made")
        assert (scratch / "unpacked").read_text() == "large" and scratch.parent == out.parent
        (tmp_path / "link").symlink_to(out)
        with scratch_beside(tmp_path / "link") as other:  # on the disk that the link is for
            assert other.parent == out.parent and scratch.exists()
    assert [path.name for path in out.parent.iterdir()] == ["out"]


@pytest.mark.parametrize("there", [True, False])
def test_links_are_followed(tmp_path: Path, there: bool) -> None:
    target = tmp_path / "disk" / "data"
    if there:
        target.mkdir(parents=True)
    (tmp_path / "link").symlink_to(target)
    with new_folder(tmp_path / "link") as folder:
        (folder / "x").touch()
    assert (tmp_path / "link").is_symlink() and [path.name for path in target.iterdir()] == ["x"]
    with pytest.raises(ValueError, match="exists and is not empty"):
        with new_folder(tmp_path / "link"):
            pass
    (tmp_path / "file").symlink_to(target / "new" / "text")
    with atomic_write(tmp_path / "file") as stream:
        stream.write("x")
    assert (tmp_path / "file").is_symlink() and (target / "new" / "text").read_text() == "x"


def test_what_is_said_of_damage_is_one_line() -> None:
    with pytest.raises(ValueError, match=r"^x: truncated or altered: not opened: - gz - bz2$"):
        with undamaged("x", OSError):
            raise OSError("not opened:\n- gz\n- bz2")
