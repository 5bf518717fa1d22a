"""What tests of data-prep/ and `seqstruct prepare` share: they call them, and pack small archives for --from."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import subprocess
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from unittest import mock

from seqstruct.cli import main
from seqstruct.cli.prepare import prepare as prepare_by_name
from seqstruct.data.registry import find

SCRIPTS = Path(__file__).resolve().parents[2] / "data-prep"


def prepare(*arguments: object) -> int:
    """The exit status of `seqstruct prepare` with these arguments, in this process."""
    return main(["prepare", *map(str, arguments)])


def prepared(name: str, *arguments: object) -> dict:
    """The corpus.json or meta.json of the folder that `seqstruct prepare` makes; what it refuses with is raised."""
    words = list(map(str, arguments))
    prepare_by_name(find(name), words)
    out = Path(words[words.index("--out") + 1])
    return json.loads(next(path for path in (out / "corpus.json", out / "meta.json") if path.is_file()).read_text())


def run(script: str, *arguments: object) -> subprocess.CompletedProcess:
    """The last line of data-prep/SCRIPT.sh with these arguments, in this process and without a way to the network."""
    last = (SCRIPTS / f"{script}.sh").read_text("utf-8").splitlines()[-1]
    words = [*shlex.split(last.removesuffix('"$@"')), *map(str, arguments)]
    refused = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
    printed, said = io.StringIO(), io.StringIO()
    with mock.patch.dict(os.environ, {**refused, "no_proxy": "127.0.0.1"}):
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
            try:
                status = main(words)
            except SystemExit as end:
                status = end.code
    return subprocess.CompletedProcess(words, status, printed.getvalue(), said.getvalue())


def refused(script: str, *arguments: object) -> str:
    """The one sentence with which a script fails, after what it says of its progress."""
    done = run(script, *arguments)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("downloading ")]
    assert done.returncode != 0 and len(lines) == 1, f"status {done.returncode}: {done.stderr}"
    return lines[0]


def pack_tar(path: Path, members: Mapping[str, str | bytes]) -> None:
    """A .tar, .tgz or .tar.gz archive of texts by name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as archive:
        for name, content in members.items():
            content = content.encode() if isinstance(content, str) else content
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def pack_zip(path: Path, members: Mapping[str, str | bytes]) -> None:
    """A .zip archive of texts by name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def pack_damaged_zip(path: Path, name: str) -> None:
    """An archive whose one member cannot be unpacked, though its directory is whole."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, "text" * 99)
    data = path.read_bytes()
    start = 30 + len(name)  # behind the member's header
    path.write_bytes(data[:start] + b"\xff" * 4 + data[start + 4 :])


def read(path: Path) -> list[str]:
    """The lines of a text."""
    return path.read_text(encoding="utf-8").split("\n")[:-1]
