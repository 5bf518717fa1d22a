"""Files: written beside and renamed, and checked by checksum."""

from __future__ import annotations

import errno
import fcntl
import glob
import gzip
import hashlib
import json
import os
import shutil
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Iterable, Iterator
from uuid import uuid4

JSON_KINDS = {dict: "an object", list: "a list"}


@contextmanager
def atomic_write(path: str | os.PathLike, mode: str = "w") -> Iterator[IO]:
    """A file that appears under its name only when it is whole; on any error nothing is left behind.

    mode: "w" (UTF-8 text) or "wb".  A symbolic link is followed.
    Raises OSError, which names the path as it was given, with the old file untouched; before the block, if a folder is
    in the place of the file.
    """
    asked, path = os.fspath(path), Path(os.path.realpath(path))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), asked)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    try:
        with open(beside, mode.replace("w", "x"), encoding=None if "b" in mode else "utf-8") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(beside, path)
    except BaseException as error:
        with suppress(OSError):
            beside.unlink()
        if isinstance(error, OSError) and error.filename in (beside, str(beside)):  # which nobody has heard of
            raise OSError(error.errno, error.strerror, asked) from None
        raise


def write_text(path: str | os.PathLike, lines: Iterable[object]) -> None:
    """Lines of UTF-8 text, by `atomic_write`."""
    with atomic_write(path) as stream:
        stream.writelines(f"{line}\n" for line in lines)


def check_free(path: str | os.PathLike) -> Path:
    """The path that a folder to make has once links are followed.

    Raises ValueError if the name is taken, by anything but an empty folder.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ValueError(f"{path} exists and is not empty; choose another folder or remove it")
    return path


@contextmanager
def scratch_beside(path: str | os.PathLike) -> Iterator[Path]:
    """A hidden folder beside a name, for what is too large for the system's temporary files; it goes with the block.

    path: a symbolic link is followed.  What a killed call for the same name left behind goes first; the hidden folder
    of a living one is locked and stays.
    """
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{glob.escape(path.name)}.partial-{'?' * 8}"):
        with locked(left, wait=False) as dead:
            if dead:
                shutil.rmtree(left, ignore_errors=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{path.name}.partial-", dir=path.parent))
    with locked(beside, wait=False):
        try:
            yield beside
        finally:
            shutil.rmtree(beside, ignore_errors=True)


@contextmanager
def new_folder(path: str | os.PathLike) -> Iterator[Path]:
    """A folder to fill, which appears under its name only when the block ends; on any error nothing is left behind.

    It is filled in a `scratch_beside` the name; that one, `folder.parent` to the block, may hold scratch files too.
    path: a symbolic link is followed, to an empty folder or to nothing.
    Raises ValueError if the name is taken, by anything but an empty folder, before the block or after it.
    """
    path = check_free(path)
    with scratch_beside(path) as beside:
        made = beside / "made"
        made.mkdir()
        yield made
        os.replace(made, check_free(path))


@contextmanager
def locked(path: str | os.PathLike, wait: bool = True, stop: threading.Event | None = None) -> Iterator[bool]:
    """Hold the advisory lock of a folder, or of a file that is made for it.

    wait: else it is False if another holds it, or the file system has no locks.  stop: for threads, which no signal
    wakes while they wait: where it is set first, it is False.
    """
    handle = os.open(path, os.O_RDONLY if os.path.isdir(path) else os.O_RDWR | os.O_CREAT)
    held = False
    try:
        while True:
            with suppress(BlockingIOError if wait else OSError):
                fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait and stop is None else fcntl.LOCK_NB))
                held = True
            if held or not wait or stop is None or stop.wait(0.2):
                break
        yield held
    finally:
        os.close(handle)


def write_json(path: str | os.PathLike, value: object, **options: bool) -> None:
    """A value as indented JSON, by `atomic_write`.  options: of `json.dump`."""
    with atomic_write(path) as stream:
        json.dump(value, stream, indent=1, **options)
        stream.write("\n")


def read_json(path: str | os.PathLike, *kinds: type) -> Any:
    """The value in a JSON file, of one of these kinds: dict if none is given.

    Raises ValueError, naming the file, where it is damaged or of another kind; OSError if it is absent.
    """
    with undamaged(path, ValueError, RecursionError):
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    if not isinstance(found, kinds or dict):
        expected = " or ".join(JSON_KINDS[kind] for kind in kinds or [dict])
        raise ValueError(f"{path}: expected {expected} in JSON, got {type(found).__name__}")
    return found


def sha256(path: str | os.PathLike, algorithm: str = "sha256") -> str:
    """Hexadecimal SHA-256, or what else `hashlib` has, of a file's bytes."""
    with open(path, "rb") as stream:
        digest = hashlib.new(algorithm, usedforsecurity=False)
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def verify(path: str | os.PathLike, expected: str) -> None:
    """Raise ValueError unless the file has the expected checksum: an MD5 of 32, or a SHA-256 of 64 hexadecimal digits,
    for some publishers give no better one."""
    name, algorithm = ("MD5", "md5") if len(expected) == 32 else ("SHA-256", "sha256")
    found = sha256(path, algorithm)
    if found != expected:
        raise ValueError(f"{path}: {name} {found}, expected {expected}: the file is truncated or altered")


def open_text(path: str | os.PathLike) -> IO[str]:
    """A UTF-8 text file to read, unpacked on the way if it ends in .gz; newlines end lines, nothing else does.

    A byte order mark at its beginning, as programs of Windows write it, is not of the text.
    """
    if str(path).endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="\n")
    return open(path, encoding="utf-8-sig", newline="\n")


def existing(path: Path, more: str = "") -> Path:
    """The path of a file.  Raises ValueError if there is none, with what more there is to say."""
    if not path.is_file():
        raise ValueError(f"{path}: no such file{more}")
    return path


@contextmanager
def undamaged(name: object, *errors: type[Exception]) -> Iterator[None]:
    """These errors in the block become a ValueError that names what is truncated or altered."""
    try:
        yield
    except errors as error:
        raise ValueError(f"{name}: truncated or altered: {' '.join(str(error).split())}") from None
