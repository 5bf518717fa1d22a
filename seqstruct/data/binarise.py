"""fairseq-preprocess, from subwords or words to what fairseq's tasks read."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path


def preprocess(folder: str | os.PathLike, arguments: Iterable[str | os.PathLike]) -> None:
    """Run fairseq-preprocess with these arguments into a folder, without its log.

    Raises ValueError with its last line if it fails.
    """
    command = [sys.executable, "-m", "fairseq_cli.preprocess", "--destdir", os.fspath(folder), *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise ValueError(f"fairseq-preprocess failed: {(done.stdout.strip().splitlines() or ['no message'])[-1]}")
    Path(folder, "preprocess.log").unlink(missing_ok=True)


def preprocess_pairs(
    text: str | os.PathLike,
    folder: str | os.PathLike,
    languages: tuple[str, str],
    *,
    joined: bool = True,
    workers: int = 1,
    arguments: Iterable[str] = (),
) -> None:
    """The same from text/{train,valid,test}.LANGUAGE.  joined: whether both languages share one dictionary."""
    command = ["--source-lang", languages[0], "--target-lang", languages[1], "--workers", str(workers), *arguments]
    if joined:
        command.append("--joined-dictionary")
    for split in ("train", "valid", "test"):
        command += [f"--{split}pref", os.fspath(Path(text, split))]
    preprocess(folder, command)
