"""A long file that grows block by block, and that an interrupted run can go on with."""

from __future__ import annotations

import errno
import gzip
import json
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from seqstruct.data.files import atomic_write, locked


class ResumableFile:
    """To be used in a `with` statement; the file appears under its name when the block ends.

    Until then it is NAME.part, and NAME.part.json says what it belongs to, how many of its bytes count, and the state
    that came with the last block.  A ValueError removes both; after anything else, a kill among it, the next run with
    the same identity finds them.  One process at a time writes a file: the part is locked.  Packed, block by block, if
    the name ends in .gz.
    """

    def __init__(self, path: str | os.PathLike, identity: dict[str, Any]):
        """identity: what the file is made of, in JSON's types; a part of another identity is written anew.

        Raises OSError if the part cannot be opened, or a folder is in the place of the file; ValueError if another
        process writes it.
        """
        self.path = Path(path)
        if self.path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        self.part, self.note = (self.path.with_name(self.path.name + end) for end in (".part", ".part.json"))
        self.identity = json.loads(json.dumps(identity))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.lock = ExitStack()
        if not self.lock.enter_context(locked(self.part, wait=False)):
            raise ValueError(f"{self.part}: another process writes it, or the file system has no locks")
        kept = self._kept()
        self.state: dict[str, Any] | None = None if kept is None else kept["state"]
        if kept is None:  # else a kill before the first note would leave another's beside bytes that it is not of
            self.note.unlink(missing_ok=True)
        self.stream = open(self.part, "wb" if kept is None else "r+b")  # closed by __exit__
        if kept is not None:
            self.stream.truncate(kept["bytes"])
            self.stream.seek(kept["bytes"])

    def _kept(self) -> dict[str, Any] | None:
        try:
            kept = json.loads(self.note.read_text("utf-8"))
            whole = kept["identity"] == self.identity and self.part.stat().st_size >= kept["bytes"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return kept if whole else None

    def append(self, block: bytes, state: dict[str, Any]) -> None:
        """Write a block; a run that goes on after it begins with `state`, of JSON's types."""
        self.stream.write(gzip.compress(block, 6, mtime=0) if self.path.name.endswith(".gz") else block)
        self.stream.flush()
        os.fsync(self.stream.fileno())
        with atomic_write(self.note) as note:
            json.dump({"identity": self.identity, "bytes": self.stream.tell(), "state": state}, note)

    def __enter__(self) -> ResumableFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self.lock:
            self.stream.close()
            if kind is None:
                os.replace(self.part, self.path)
            elif issubclass(kind, ValueError):
                self.part.unlink(missing_ok=True)
            else:
                return
            self.note.unlink(missing_ok=True)


def fingerprint(path: str | os.PathLike) -> list[Any]:
    """What tells whether a file is still the same: its full name, size, and time of change.  Raises OSError."""
    found = os.stat(path)
    return [os.path.abspath(path), found.st_size, found.st_mtime_ns]
