"""The settings of a cell's trainings, as hydra composes them of the files that its commands name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf

from seqstruct.harness.configs import read_config
from seqstruct.harness.paper import Published, read_tables
from seqstruct.harness.script import Cell, Script

ROOT = Path(__file__).resolve().parents[2]


def trainings(recipe: str, row: str, scale: str = "paper", seed: int = 1) -> list[dict[str, Any]]:
    """Of each command with a config, in their order.  recipe: such as "stack_attention/table-2"."""
    plan = Script(ROOT / "recipes" / f"{recipe}.sh").plan(Cell(row, seed, scale))
    return [settings(step.words) for step in plan.steps if "--config-dir" in step.words]


def settings(words: tuple[str, ...]) -> dict[str, Any]:
    """What `--config-dir DIR --config-name NAME KEY=VALUE ...` composes; words that the shell makes are left out."""
    folder, name = (words[words.index(option) + 1] for option in ("--config-dir", "--config-name"))
    given = [w for w in words if "=" in w and not w.startswith("-") and "$(" not in w]
    # a key that no file has is one of fairseq's
    overrides = [f"++{w}" if "." in w.partition("=")[0] else w for w in given]
    with initialize_config_dir(config_dir=str(ROOT / folder), version_base="1.1"), no_schema(name):
        return OmegaConf.to_container(compose(name, overrides=["task.data=x", *overrides]), resolve=True)


@contextmanager
def no_schema(name: str) -> Iterator[None]:
    """Take away what a search in this process told hydra of a config of that name: all of fairseq's defaults."""
    repository = ConfigStore.instance().repo
    schema = repository.pop(f"{name}.yaml", None)
    try:
        yield
    finally:
        if schema is not None:
            repository[f"{name}.yaml"] = schema


def composed(family: str, *words: str, name: str = "train") -> dict[str, Any]:
    """What a file of configs/ says with these words, fairseq's own defaults apart."""
    GlobalHydra.instance().clear()
    with initialize_config_dir(config_dir=str(ROOT / "configs" / family), version_base="1.1"), no_schema(name):
        config = compose(name, overrides=["task.data=DATA", "checkpoint.save_dir=OUT", *words])
    return OmegaConf.to_container(config, resolve=True)


def script(name: str) -> Script:
    """A recipe by the name of its paper and its table: peng_thesis/table-6.3."""
    return Script(ROOT / "recipes" / f"{name}.sh")


@cache
def published(paper: str, *tables: str) -> tuple[Published, ...]:
    """What paper.json has of some tables, averages of others apart."""
    found = {table.name: table.published for table in read_tables(ROOT / "recipes" / paper)}
    return tuple(entry for table in tables for entry in found[table] if not entry.average_of)


def published_rows(paper: str, *tables: str) -> set[str]:
    return {entry.row for entry in published(paper, *tables)}


def commands(recipe: Script, row: str, scale: str, seed: int = 1, **options: Any) -> list[tuple[str, ...]]:
    """The words of a cell's commands; configs that they name are read, so that there are no others."""
    plan = recipe.plan(Cell(row, seed, scale), **options)
    for step in plan.steps:
        read_config(ROOT, step.words)
    assert plan.dataset and plan.minutes > 0
    return [step.words for step in plan.steps]


def option(words: tuple[str, ...], name: str) -> str:
    """The value of an option."""
    return words[words.index(name) + 1]
