"""`seqstruct path` from another folder, and the command's frame."""

import subprocess
import sys
from pathlib import Path

import pytest

import seqstruct
from seqstruct.cli import main
from seqstruct.harness.paper import INSTALLED


def test_path_is_the_package_folder_from_anywhere(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["path"]) == 0
    folder = Path(capsys.readouterr().out.rstrip("\n"))
    assert folder == Path(seqstruct.__file__).resolve().parent
    assert (folder / "models").is_dir()


def test_configs_are_those_of_the_checkout_or_of_the_wheel(tmp_path, monkeypatch, capsys):
    root = Path(seqstruct.__file__).resolve().parents[1]
    package = tmp_path / "site-packages" / "seqstruct"
    (package.parent / "configs").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    found = []
    for installed in (False, True):
        if installed:
            (package / INSTALLED).mkdir(parents=True)
            monkeypatch.setattr(seqstruct, "__file__", str(package / "__init__.py"))
        assert main(["path", "--configs"]) == 0
        found.append(capsys.readouterr().out.rstrip("\n"))
    assert found == [str(root / "configs"), str(package / INSTALLED / "configs")]
    assert (root / "configs" / "stack_attention" / "cfl" / "train.yaml").is_file()


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"seqstruct {seqstruct.__version__}\n"


def test_unknown_command_is_refused_without_a_traceback():
    root = Path(seqstruct.__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "seqstruct", "sing"], capture_output=True, text=True, env={"PYTHONPATH": str(root)}
    )
    assert done.returncode == 2
    assert "invalid choice: 'sing'" in done.stderr
    assert "Traceback" not in done.stderr
