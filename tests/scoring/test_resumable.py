"""A file that grows block by block, in runs that are interrupted."""

from __future__ import annotations

import pytest

from seqstruct.scoring.resumable import ResumableFile


class Interrupted(Exception):
    pass


def test_a_part_begun_anew_is_not_taken_for_the_one_before(tmp_path):
    path = tmp_path / "out"
    with pytest.raises(Interrupted), ResumableFile(path, {"scale": "log"}) as file:
        file.append(b"one\n", {"lines": 1})
        raise Interrupted
    with pytest.raises(Interrupted), ResumableFile(path, {"scale": "probability"}) as file:
        assert file.state is None
        file.stream.write(b"a longer block of others, without its note")
        raise Interrupted
    with ResumableFile(path, {"scale": "log"}) as file:
        assert file.state is None
        file.append(b"one\ntwo\n", {"lines": 2})
    assert path.read_bytes() == b"one\ntwo\n" and [*tmp_path.iterdir()] == [path]


def test_two_processes_do_not_write_one_file(tmp_path):
    path = tmp_path / "out"
    with ResumableFile(path, {"scale": "log"}) as file:
        file.append(b"one\n", {"lines": 1})
        with pytest.raises(ValueError, match="out.part: another process writes it"):
            ResumableFile(path, {"scale": "probability"})
        file.append(b"two\n", {"lines": 2})
    assert path.read_bytes() == b"one\ntwo\n" and [*tmp_path.iterdir()] == [path]
    with pytest.raises(Interrupted), ResumableFile(path, {}):
        raise Interrupted
    with ResumableFile(path, {}) as file:  # an interrupted run holds nothing
        file.append(b"three\n", {})
    assert path.read_bytes() == b"three\n"


def test_a_folder_in_the_place_of_the_file_is_named_before_anything_is_written(tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(IsADirectoryError) as told:
        ResumableFile(tmp_path / "out", {})
    assert told.value.filename == str(tmp_path / "out") and [p.name for p in tmp_path.iterdir()] == ["out"]
