"""The scripts of data-prep/: executable, quiet where nobody watches, and clear about the interpreter they need."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from seqstruct.cli.prepare import build_parser
from seqstruct.data.registry import ENTRIES, find
from tests.data.scripts import SCRIPTS, run
from tests.data.text.test_parallel import corpus, prefixes  # noqa: F401  a fixture

ROOT = SCRIPTS.parent
COMMON = SCRIPTS / "common.sh"
LINES = r"""set -euo pipefail
# shellcheck source=data-prep/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
"""
LAST = re.compile(r'prepare( [\w.:-]+)* "\$@"')
LISTOPS = ("--lengths", "5:9", "--train", "3", "--valid", "2", "--test", "2")


def test_scripts_are_short_and_run_anywhere(tmp_path):
    for path in SCRIPTS.glob("*.sh"):
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") <= 15, path.name
        assert path == COMMON or LINES in text and LAST.fullmatch(text.splitlines()[-1]), path.name
    done, other = (
        subprocess.run(
            [SCRIPTS / "text_classification.sh", name, "--made-up", "--out", name], cwd=tmp_path,
            capture_output=True, text=True, env={**os.environ, "PYTHON": sys.executable},
        )
        for name in ("sst", "imdb")
    )
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["sst: ready"]), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["sst"]
    assert (other.returncode, "expected sst, subj, cr or amazon first, got 'imdb'" in other.stderr) == (1, True)


@pytest.mark.parametrize("name", [entry.name for entry in ENTRIES if entry.trial])
def test_a_script_whose_corpus_is_large_makes_a_small_one_up(name, tmp_path):
    done = run(name, "--made-up", "--out", tmp_path / "out")
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, [f"{tmp_path / 'out'}: ready"]), done.stderr


def test_the_heads_of_scripts_name_options_that_are_there():
    for path in SCRIPTS.glob("*.sh"):
        line, *_ = re.findall(r"^# --help .*", path.read_text("utf-8"), re.M) or [""]
        words = shlex.split(path.read_text("utf-8").splitlines()[-1])
        if len(words) > 2 and line:
            known = build_parser(find(words[1])).format_help()
            assert all(option in known for option in re.findall(r"--[\w-]+", line)), path.name


def test_all_are_executable():
    scripts = [*SCRIPTS.glob("*.sh"), *(path for path in (ROOT / ".ci").iterdir() if path.suffix != ".py")]
    assert len(scripts) > 25
    assert [path.name for path in scripts if path != COMMON and not os.access(path, os.X_OK)] == []


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """A copy of data-prep/ without a .venv beside it, and a python3 that has no packages first on the PATH."""
    for name in ("data-prep", "seqstruct"):
        (tmp_path / "clone" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "clone" / name).symlink_to(ROOT / name)
    program(tmp_path / "bin" / "python3", f'exec {sys.executable} -S -I "$@"')
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHON", "PYTHONPATH")}
    return {**environment, "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"}


def program(path: Path, line: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def listops(folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess:
    command = [folder / "clone" / "data-prep" / "listops.sh", "--out", folder / "out", *LISTOPS]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_without_the_packages_one_sentence_says_what_to_do(tmp_path, bare):
    done = listops(tmp_path, bare)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith(f"listops.sh: no Python with what is needed (tried python3 {tmp_path}/clone/.venv/")
    assert f"run make venv in {tmp_path}/clone, or activate the environment" in done.stderr
    program(tmp_path / "shim", "echo 'pyenv: python3.13: command not found' >&2; exit 127")
    done = listops(tmp_path, {**bare, "PYTHON": str(tmp_path / "shim")})
    assert done.returncode == 1 and f"(tried {tmp_path}/shim): " in done.stderr
    assert not (tmp_path / "out").exists()


def test_scripts_find_their_clone_where_cd_searches_other_folders(tmp_path):
    """From the clone they are called by a relative name, and `cd` then prints what it finds by CDPATH."""
    program(tmp_path / "python", f'case "$1" in -c) exit 0;; esac; echo "$PYTHONPATH" > {tmp_path}/said')
    environment = {**os.environ, "PYTHON": str(tmp_path / "python"), "CDPATH": ".", "PYTHONPATH": ""}
    subprocess.run(["bash", "data-prep/listops.sh"], cwd=ROOT, env=environment, check=True)
    assert (tmp_path / "said").read_text() == f"{ROOT}\n"


def test_the_clone_s_own_interpreter_is_found(tmp_path, bare):
    program(tmp_path / "clone" / ".venv" / "bin" / "python", f'exec {sys.executable} "$@"')
    done = listops(tmp_path, bare)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out" / "train.txt").is_file()


@pytest.mark.parametrize("there", [True, False])
def test_a_link_may_be_the_folder_to_make_and_logs_have_no_bars(there, corpus, tmp_path):  # noqa: F811
    target = tmp_path / "disk"
    if there:
        target.mkdir()
    (tmp_path / "link").symlink_to(target)
    words = [word for split, prefix in prefixes(corpus).items() for word in (f"--{split}", prefix)]
    done = run("parallel", *words, "--src", "de", "--trg", "en", "--vocabulary", "50", "--out", tmp_path / "link")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\r" not in done.stdout and done.stdout.splitlines()[-1] == f"{tmp_path / 'link'}: ready"
    assert (tmp_path / "link").is_symlink() and (target / "bin" / "dict.de.txt").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disk", "from", "link"]
