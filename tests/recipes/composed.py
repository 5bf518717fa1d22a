"""The settings of a cell's trainings, as hydra composes them of the files that its commands name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

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
    with initialize_config_dir(config_dir=str(ROOT / folder), version_base="1.1"):
        return OmegaConf.to_container(compose(name, overrides=["task.data=x", *overrides]), resolve=True)
