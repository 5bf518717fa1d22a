"""The data of checkpoints: found wherever a project lies and whatever the working directory is, else said."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from seqstruct.cli import main
from seqstruct.scoring.forced import load_scorer
from seqstruct.scoring.parsers import load_dependency_parser, load_parser
from seqstruct.scoring.trained import load_model
from tests.golden.checkpoints.make import FOLDER

LOADERS = {
    "lm_cfl": load_model,
    "palm": load_parser,
    "joint_parser": load_dependency_parser,
    "transformer_recognizer": load_model,
    "mt_modern": lambda path, data=None: load_scorer([path, path], data, cpu=True),
}  # and the folder of data that each was trained on, below FOLDER
DATA = {"joint_parser": "data/parsing", "transformer_recognizer": "data/recognition"}


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    """A folder as of a project that was moved, with checkpoints in runs/x; the working directory is another."""
    (tmp_path / "project" / "runs" / "x").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path / "project"


def checkpoint(project: Path, name: str) -> Path:
    return Path(shutil.copy(FOLDER / f"{name}.pt", project / "runs" / "x"))


@pytest.mark.parametrize("name", LOADERS)
def test_data_are_found_below_a_folder_above_the_checkpoint(name, project):
    path, data = checkpoint(project, name), DATA.get(name, "data/text")
    with pytest.raises(ValueError, match=rf"{path} needs .*looked for in .*{project / data}.* \(say where by --data"):
        LOADERS[name](path)
    shutil.copytree(FOLDER / data, project / data)
    LOADERS[name](path)


@pytest.mark.parametrize("name", LOADERS)
def test_data_are_the_prepared_folder_or_the_bin_in_it(name, project):
    path, data = checkpoint(project, name), FOLDER / DATA.get(name, "data/text")
    shutil.copytree(data, project / "mine" / "bin")
    for folder in (data, project / "mine", project / "mine" / "bin"):
        LOADERS[name](path, folder)
    with pytest.raises(ValueError, match=rf"{path} needs .*: looked for in {project} \(say where by --data"):
        LOADERS[name](path, project)


def test_commands_draw_from_another_directory(project, capsys):
    out = project / "x.svg"
    line = ["plot", "attention", str(checkpoint(project, "lm_softmax")), "( )", "--out", str(out)]
    assert main(line) == 1
    assert "(say where by --data" in capsys.readouterr().err and not out.exists()
    shutil.copytree(FOLDER / "data" / "text", project / "data" / "text")
    words = [line.split()[0] for line in (project / "data" / "text" / "dict.txt").read_text().splitlines()]
    line[3] = " ".join(words[:3])
    assert main(line) == 0 and out.exists()
