"""Folders of train, valid and test that meta.json describes, with the SHA-256 of every other file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seqstruct.data.files import read_json, sha256, verify, write_json

SPLITS = ("train", "valid", "test")
META = "meta.json"


def write_meta(folder: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """Write meta.json of a folder that has all its other files; its contents come back."""
    meta = {**about, "sha256": {path.name: sha256(path) for path in sorted(folder.iterdir())}}
    write_json(folder / META, meta)
    return meta


def read_meta(
    folder: str | os.PathLike, command: str, keys: Sequence[str] = (), dictionaries: Sequence[str] = ()
) -> dict[str, Any]:
    """The contents of meta.json.  command: of `seqstruct prepare`, for the error.

    Raises ValueError if the folder, meta.json or one of `keys` is missing, or a file of `dictionaries` is missing or
    altered.
    """
    path = Path(folder) / META
    try:
        meta = read_json(path)
        for name in dictionaries:
            check_file(folder, meta, name)
        for key in keys:
            meta[key]
    except OSError:
        raise ValueError(f"{path} cannot be read; `seqstruct prepare {command}` makes such a folder") from None
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} is truncated or altered: {error!r}") from None
    return meta


def check_file(folder: str | os.PathLike, meta: Mapping[str, Any], name: str) -> Path:
    """The path of a file of the folder.  Raises ValueError if it is missing or altered."""
    path = Path(folder) / name
    if name not in meta["sha256"] or not path.is_file():
        raise ValueError(f"{path} is missing")
    verify(path, meta["sha256"][name])
    return path


def check_split(folder: str | os.PathLike, split: str, splits: Sequence[str] = SPLITS) -> None:
    """Raise ValueError unless there is such a split."""
    if split not in splits:
        raise ValueError(f"{folder} has no split {split!r}; there are: {', '.join(splits)}")


def check_counts(
    name: str, found: Mapping[str, int], published: Mapping[str, int], what: str, tolerance: float = 0.0
) -> None:
    """Raise ValueError, naming the first split, unless the numbers of `what` are the published ones, up to a part of
    them."""
    for split, expected in published.items():
        if abs(found[split] - expected) > tolerance * expected:
            raise ValueError(f"{name}: the {split} set has {found[split]} {what}, expected {expected}: "
                             "truncated or altered (see --unchecked)")
