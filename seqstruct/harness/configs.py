"""The files of configs/ that a command composes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml


def config_files(root: Path, words: Sequence[str]) -> list[Path]:
    """The files that `--config-dir DIR --config-name NAME GROUP=FILE ...` takes, in no order of weight.

    root: what DIR is relative to.  None are found where the words have no such options.
    Raises ValueError naming the file that is not there.
    """
    if "--config-dir" not in words or "--config-name" not in words:
        return []
    folder = root / words[words.index("--config-dir") + 1]
    chosen = dict(word.split("=", 1) for word in words if "=" in word and not word.startswith("-"))
    return list(_composed(folder, words[words.index("--config-name") + 1], chosen))


def _composed(folder: Path, name: str, chosen: Mapping[str, str], group: str = "") -> Iterator[Path]:
    path = folder / group / f"{name}.yaml"
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    yield path
    for default in (yaml.safe_load(path.read_text(encoding="utf-8")) or {}).get("defaults", ()):
        if isinstance(default, Mapping):
            ((within, value),) = default.items()
            value = chosen.get(within, value)
            if value is not None:
                yield from _composed(folder, str(value), chosen, f"{group}/{within}".strip("/"))
        elif default != "_self_":
            yield from _composed(folder, default, chosen, group)


def read_config(root: Path, words: Sequence[str]) -> dict[str, Any] | None:
    """What decides a training: the contents of its files by name; None if it names no config."""
    files = config_files(root, words)
    if not files:
        return None
    folder = root / words[words.index("--config-dir") + 1]
    contents = {str(path.relative_to(folder)): yaml.safe_load(path.read_text(encoding="utf-8")) for path in files}
    return {"files": contents}
