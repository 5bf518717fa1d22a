"""Files from elsewhere: downloaded, resumed where a download broke off, checked, and taken out of archives.

A folder of downloads keeps what is there already, whole or in part, so a command that broke off goes on when it is
called again.  Files with a published checksum must have it; of the others the SHA-256 of the first download is written
down in the folder's SHA256SUMS, and later runs must find the same.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from email.utils import formatdate
from functools import partial
from pathlib import Path, PurePath, PurePosixPath
from typing import IO

from seqstruct.data.files import locked, sha256, undamaged, verify, write_text
from seqstruct.data.text.aligned import UNPACKING_ERRORS, read_checksums

SUMS = "SHA256SUMS"
ATTEMPTS = 3
TIMEOUT = 60  # seconds without a byte
BLOCK = 1 << 14  # bytes written at once, the most that a broken download loses
ARCHIVES = (".tar", ".tar.gz", ".tgz", ".zip")
# the last one is of zip archives that are encrypted, or packed as Python's library cannot unpack
DAMAGE = (tarfile.TarError, zipfile.BadZipFile, *UNPACKING_ERRORS, RuntimeError)


@dataclass(frozen=True)
class Remote:
    """A file to download.

    address: of http or https.  checksum: as `files.verify` takes it, empty where none is published.  name: of the file
    on disk, by default the last part of the address.  mirrors: other places, tried in order, where the same contents
    may have another form, name and checksum.
    """

    address: str
    checksum: str = ""
    name: str = ""
    mirrors: tuple[Remote, ...] = ()

    @property
    def file(self) -> str:
        return self.name or self.address.rsplit("/", 1)[-1]


def download(
    address: str, path: str | os.PathLike, checksum: str = "", part: str | os.PathLike | None = None
) -> None:
    """Download one file; what a broken download left is kept, and the next one goes on from there.

    checksum: as `Remote` has it; a file without it is removed.  part: the file of what is left, by default `path`.part.
    Raises ValueError, with the reason, after three attempts in vain.
    """
    import pooch
    import requests

    path, reason = Path(path), None
    path.parent.mkdir(parents=True, exist_ok=True)
    part = Path(part or f"{path}.part")
    known = f"{'md5' if len(checksum) == 32 else 'sha256'}:{checksum}" if checksum else None
    for logger in (pooch.get_logger(), logging.getLogger("urllib3")):
        logger.setLevel("WARNING")
    print(f"downloading {address}", file=sys.stderr)
    for _ in range(ATTEMPTS):
        try:
            pooch.retrieve(address, known, path.name, path.parent, downloader=partial(_resume, part))
            return
        except requests.HTTPError as error:
            reason, status = error, error.response.status_code
            if status in (requests.codes.requested_range_not_satisfiable, requests.codes.precondition_failed):
                part.unlink()  # of another version: longer than the file, or older
            elif status < 500:
                break
        except OSError as error:
            reason = error
    raise ValueError(f"{address} could not be downloaded: {reason}")


def _resume(part: Path, address: str, path: str, _: object) -> None:
    """Fill `part` up and move it to `path`; a server that cannot go on in the middle starts it anew, and one whose file
    was changed since refuses (412)."""
    import requests
    from pooch import HTTPDownloader

    with open(part, "ab") as stream:

        def begin(response: requests.Response, **_: object) -> None:
            if response.status_code == requests.codes.ok:
                stream.truncate(0)

        # some publishers refuse the library's own name; a file is wanted as it lies there, its .gz not unpacked
        headers = {"User-Agent": "seqstruct", "Accept-Encoding": "identity"}
        if stream.tell():
            headers["Range"] = f"bytes={stream.tell()}-"
            headers["If-Unmodified-Since"] = formatdate(os.fstat(stream.fileno()).st_mtime, usegmt=True)
        get = HTTPDownloader(sys.stderr.isatty(), BLOCK, headers=headers, hooks={"response": begin}, timeout=TIMEOUT)
        get(address, stream, None)
    os.replace(part, path)


def fetch(remotes: Sequence[Remote], folder: str | os.PathLike, manual: str = "") -> None:
    """Download into a folder what is not there yet, and check all of it; another call for the folder waits meanwhile.

    manual: what to do where no address answers, for the error.
    Raises ValueError if a file cannot be had from anywhere, or is altered; a download that proves altered is removed.
    """
    folder = Path(os.path.realpath(folder))  # a link may lead to what is not there yet
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        with suppress(OSError):  # some file systems have no locks
            stack.enter_context(locked(folder))  # two that fill up the same part would both add to it
        for remote in remotes:
            _fetch(remote, folder, manual)


def _fetch(remote: Remote, folder: Path, manual: str) -> None:
    places = (remote, *remote.mirrors)
    present = next((place for place in places if (folder / place.file).is_file()), None)
    if present is not None:
        _check(folder, present)
        return
    reasons = []
    parts = [folder / f"{remote.file}.part"]
    for number, mirror in enumerate(remote.mirrors, 1):  # without the same checksum its file may be another one
        same = mirror.file == remote.file and mirror.checksum and mirror.checksum == remote.checksum
        parts.append(parts[0] if same else folder / f"{mirror.file}.{number}.part")
    for place, part in zip(places, parts, strict=True):
        known = place.checksum or _sums(folder).get(place.file, "")
        try:
            download(place.address, folder / place.file, known, part)
            _check(folder, place)
            break
        except ValueError as error:
            reasons.append(str(error))
    else:
        raise ValueError("; ".join([*reasons, manual] if manual else reasons))
    for part in parts:
        part.unlink(missing_ok=True)


def _sums(folder: Path) -> dict[str, str]:
    return read_checksums(folder / SUMS) if (folder / SUMS).is_file() else {}


def _check(folder: Path, remote: Remote) -> None:
    path, sums = folder / remote.file, _sums(folder)
    if expected := remote.checksum or sums.get(remote.file):
        verify(path, expected)
    if remote.file not in sums:
        sums[remote.file] = sha256(path)
        write_text(folder / SUMS, (f"{digest}  {name}" for name, digest in sorted(sums.items())))


def raw_folder(args: argparse.Namespace, remotes: Sequence[Remote] = (), manual: str = "") -> Path:
    """The folder with the raw files: `args.source`, where nothing is downloaded, or `args.downloads`, by `fetch`.

    Unless `args.unchecked`, files in `args.source` that have the name of a remote one must have its checksum.
    Raises ValueError if it is no folder, or None where there is nothing to download, and as `fetch` does.
    """
    if args.source is None and not remotes:
        raise ValueError(f"nothing is downloaded, --from DIR is needed: {manual}")
    if args.source is None:
        fetch(remotes, args.downloads, manual)
        return Path(args.downloads)
    folder = Path(args.source)
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder")
    for place in () if args.unchecked else [place for remote in remotes for place in (remote, *remote.mirrors)]:
        if place.checksum and (folder / place.file).is_file():
            verify(folder / place.file, place.checksum)
    return folder


def collect(
    folder: str | os.PathLike, wanted: Mapping[str, Sequence[str]], scratch: str | os.PathLike, manual: str = ""
) -> dict[str, Path]:
    """Files of a folder by what they are wanted as, each under one of some names, whatever folders they are in; a name
    such as orig/x.de wants the folder, too.

    They lie at any depth, plain or .gz, or inside of .tar, .tar.gz, .tgz or .zip archives; those members alone are
    unpacked into the folder `scratch`.  Of files of one name the one nearest to the folder is taken: deeper ones may be
    of a corpus that was made there.  manual: how to get what is missing, for the error.
    Raises ValueError naming every file that is missing, or an archive that is truncated or altered.
    """
    folder = Path(folder)
    keys = {f"{name}{end}": key for key, choices in wanted.items() for name in choices for end in ("", ".gz")}
    found: dict[str, Path] = {}
    archives = []
    files = (path for path in folder.rglob("*") if path.is_file())
    for path in sorted(files, key=lambda path: (len(path.parts), path)):
        if name := _name(path, keys):
            found.setdefault(keys[name], path)
        elif path.name.endswith(ARCHIVES):
            archives.append(path)
    for number, archive in enumerate(archives):
        missing = {name: key for name, key in keys.items() if key not in found}
        if missing:
            found |= unpack(archive, missing, Path(scratch, str(number)))
    lost = [" or ".join(choices) for key, choices in wanted.items() if key not in found]
    if lost:
        advice = f"; {manual}" if manual else ""
        raise ValueError(f"{folder}: missing, as files or in archives: {', '.join(lost)}{advice}")
    return found


def _name(path: PurePath, keys: Mapping[str, str]) -> str | None:
    """Which of these names a path has as its last part, or as its last two."""
    return next((name for name in (path.name, "/".join(path.parts[-2:])) if name in keys), None)


def unpack(archive: Path, keys: Mapping[str, str], into: Path) -> dict[str, Path]:
    """By key, the members of these names; regular files alone are taken, and written under the names that are wanted.

    Raises ValueError if the archive is truncated or altered.
    """
    found: dict[str, Path] = {}
    into.mkdir(parents=True)
    with undamaged(archive, *DAMAGE):
        for member, opened in members(archive):
            name = _name(PurePosixPath(member), keys)
            if name and keys[name] not in found:
                path = into / name
                path.parent.mkdir(exist_ok=True)
                with opened() as stream, open(path, "wb") as copy:
                    shutil.copyfileobj(stream, copy, 1 << 20)
                found[keys[name]] = path
                if len(found) == len(set(keys.values())):
                    break
    return found


def members(archive: Path) -> Iterator[tuple[str, Callable[[], IO[bytes]]]]:
    """The name of each regular file in an archive, and what opens it.  Raises one of `DAMAGE` on a broken one."""
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as container:
            for entry in container.infolist():
                if not entry.is_dir():
                    yield entry.filename, partial(container.open, entry)
    else:
        with tarfile.open(archive) as container:
            for member in container:
                if member.isfile():
                    yield member.name, partial(container.extractfile, member)
