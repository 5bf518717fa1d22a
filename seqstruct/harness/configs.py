"""The files of configs/ that a command composes, and what they compose."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml


def read_config(root: Path, words: Sequence[str]) -> dict[str, Any] | None:
    """What decides a training: the contents, by name, of the files that `--config-dir DIR --config-name NAME GROUP=FILE
    ...` takes, each before what overrides it; None if the words name no config.

    root: what DIR is relative to.  Raises ValueError naming the file that is not there.
    """
    if "--config-dir" not in words or "--config-name" not in words:
        return None
    folder = root / words[words.index("--config-dir") + 1]
    chosen = dict(word.split("=", 1) for word in words if "=" in word and not word.startswith("-"))
    files = list(_composed(folder, words[words.index("--config-name") + 1], chosen))
    if "--settings" in words:  # of a search
        files.append(root / words[words.index("--settings") + 1])
    return {"files": {str(path.relative_to(folder)): _read(path) for path in files}}


def said_last(config: Mapping[str, Any] | None, section: str, option: str) -> Any:
    """What the last of `read_config`'s files that says anything of an option says; None where none does."""
    files = (config or {"files": {}})["files"].values()  # None is the content of a file of comments alone
    said = [((content or {}).get(section) or {}).get(option) for content in files]
    return next((value for value in reversed(said) if value is not None), None)


def _composed(folder: Path, name: str, chosen: Mapping[str, str], group: str = "") -> Iterator[Path]:
    path = folder / group / f"{name}.yaml"
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    defaults = list((_read(path) or {}).get("defaults", ()))
    for default in defaults if "_self_" in defaults else [*defaults, "_self_"]:
        if default == "_self_":
            yield path
        elif isinstance(default, Mapping):
            ((within, value),) = default.items()
            value = chosen.get(within, value)
            if value is not None:
                yield from _composed(folder, str(value), chosen, f"{group}/{within}".strip("/"))
        else:
            yield from _composed(folder, default, chosen, group)


def _read(path: Path) -> Any:
    return _parsed(path.read_text(encoding="utf-8"))


@functools.cache  # a few hundred small files, each read for dozens of cells
def _parsed(text: str) -> Any:
    # the loader in C, where PyYAML has it, takes a tenth of the time
    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def composer(folder: str | os.PathLike, name: str) -> Callable[[Sequence[str]], Any]:
    """A function from overrides to the config, without the defaults of fairseq's parts (see `fairseq.dataclass`).

    folder, name: what fairseq-hydra-train calls --config-dir and --config-name.  The plugin is registered; a config's
    `common.user_dir` need not be there.  Raises ValueError if there is no such file.
    """
    if not os.path.isfile(os.path.join(folder, f"{name}.yaml")):
        raise ValueError(f"{os.path.join(folder, f'{name}.yaml')}: no such file")
    import fairseq_cli.train  # noqa: F401  before all else of fairseq: it sets the form of the log lines
    from fairseq.dataclass.initialize import hydra_init
    from hydra import compose, initialize_config_dir
    from hydra.errors import HydraException

    import seqstruct.models
    import seqstruct.tasks  # noqa: F401  --user-dir registers nothing of a package that is imported already

    hydra_init(name)

    def composed(overrides: Sequence[str]) -> Any:
        with initialize_config_dir(config_dir=os.path.abspath(folder), version_base="1.1"):
            try:
                return compose(name, overrides=list(overrides))
            except HydraException as error:
                told = str(error).partition("Config search path")[0]  # which lists packages
                raise ValueError(f"{folder}: {' '.join(told.split())}") from None

    return composed
