"""Cells as jobs of hydra's submitit launcher: `python -m seqstruct.harness.launch --multirun ...`, one cell each.

A recipe's `--launcher slurm` writes that command.  A cell that was interrupted or refused goes on when it is launched
again.  fairseq keeps its best score in its process, so a job never runs two cells.
"""

from __future__ import annotations

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Sequence

import hydra
from omegaconf import DictConfig

from seqstruct.harness.command import interrupt_on_sigterm, run_cells
from seqstruct.harness.recipe import Cell, Recipe


def hydra_command(
    script: Path,
    cells: Sequence[Cell],
    *,
    runs: Path,
    records: Path,
    launcher: str,
    source: str | None = None,
    max_minutes: float | None = None,
    options: Sequence[str] = (),
) -> list[str]:
    """The command that launches one job for each cell.

    launcher: a hydra launcher's name ("submitit_slurm"; "submitit_local" runs the jobs on this machine).
    options: fields of hydra.launcher, each as "name=value".  Raises ValueError if one has no "=".
    """
    for option in options:
        if "=" not in option:
            raise ValueError(f"launcher option {option!r}: expected NAME=VALUE")
    # a choice sweep splits at commas, which a hydra string in double quotes protects
    sweep = ",".join(_quoted(json.dumps([cell.row, cell.seed, cell.scale])) for cell in cells)
    command = [
        sys.executable, "-m", "seqstruct.harness.launch", "--multirun", f"hydra/launcher={launcher}",
        f"hydra.sweep.dir={_quoted(str(runs / 'launcher'))}", "hydra.sweep.subdir=${hydra.job.num}",
        "hydra.job.chdir=false", f"hydra.job.name={script.stem}", f"+script={_quoted(str(script))}",
        f"+runs={_quoted(str(runs))}", f"+records={_quoted(str(records))}", f"+cell={sweep}",
    ]
    command += [f"hydra.launcher.{option}" for option in options]
    if source is not None:
        command.append(f"+source={_quoted(str(Path(source).resolve()))}")
    if max_minutes is not None:
        command.append(f"+max_minutes={max_minutes}")
    return command


def _quoted(text: str) -> str:
    """Text as a quoted string of hydra's override grammar."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def load_recipe(script: Path) -> Recipe:
    """The `recipe` of a script, which is imported under a name of its own and finds its neighbours, as when it is run.

    Raises ValueError if it has none.
    """
    # two papers may have a script of one name
    name = f"seqstruct_recipe_{script.parent.name}_{script.stem}"
    spec = spec_from_file_location(name, script)
    if spec is None or spec.loader is None:
        raise ValueError(f"{script}: expected a Python script")
    module = module_from_spec(spec)
    sys.modules[name] = module
    if str(script.parent) not in sys.path:
        sys.path.insert(0, str(script.parent))
    spec.loader.exec_module(module)
    recipe = getattr(module, "recipe", None)
    if not isinstance(recipe, Recipe):
        raise ValueError(f"{script}: expected a module with a Recipe named `recipe`")
    return recipe


# 1.1: the level is set for the whole process, and fairseq does not run under later ones
@hydra.main(version_base="1.1", config_path=None)
def job(config: DictConfig) -> None:
    """One cell: script, cell (JSON of row, seed, scale), runs, records, and perhaps source and max_minutes."""
    interrupt_on_sigterm()
    row, seed, scale = json.loads(config.cell)
    run_cells(
        load_recipe(Path(config.script)), [Cell(row, seed, scale)], runs=config.runs, records=config.records,
        source=config.get("source"), max_minutes=config.get("max_minutes"),
    )


if __name__ == "__main__":
    job()
