"""Judgements of `seqstruct doctor`, and the command itself with nothing but the standard library at hand."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from seqstruct.cli import doctor
from seqstruct.cli.doctor import BROKEN, OK, WARNING, Probe
from tests.requirements import REQUIRED

ROOT = Path(__file__).resolve().parents[2]
FINE = Probe(output="")


@pytest.mark.parametrize(
    "version, numbers",
    [("2.13.0+cpu", (2, 13, 0)), ("0.12.3.1", (0, 12, 3, 1)), ("1.0.0a0+8a6b", (1, 0, 0)), ("dev", ())],
)
def test_release_reads_the_leading_numbers(version, numbers):
    assert doctor.release(version) == numbers


@pytest.mark.parametrize("version, state", [((3, 9), BROKEN), ((3, 10), OK), ((3, 13), OK), ((3, 14), BROKEN)])
def test_python(version, state):
    assert doctor.check_python(version).state == state


@pytest.mark.parametrize(
    "version, imported, state, fix",
    [
        ("2.13.0", FINE, OK, ""),
        ("2.12.1", FINE, BROKEN, "pip install --upgrade torch"),
        (None, Probe(error="ModuleNotFoundError"), BROKEN, "pip install torch"),
        ("2.13.0", Probe(error="OSError: libc10.so"), BROKEN, "pip install --force-reinstall torch"),
    ],
)
def test_torch(version, imported, state, fix):
    check = doctor.check_least("torch", version, doctor.TORCH_LEAST, imported)
    assert (check.state, check.fix) == (state, fix)


BROKEN_IMPORT = Probe(error="ValueError: mutable default")


@pytest.mark.parametrize(
    "fixed, upstream, python, imported, state, said",
    [
        ("0.12.3.1", None, (3, 11), FINE, OK, "fairseq-fixed 0.12.3.1"),
        ("0.12.3.0", None, (3, 11), FINE, WARNING, "tested is fairseq-fixed==0.12.3.1"),
        ("0.12.3.1", None, (3, 11), BROKEN_IMPORT, BROKEN, "--force-reinstall"),
        (None, "0.12.2", (3, 11), BROKEN_IMPORT, BROKEN, "does not run on Python 3.11"),
        (None, "0.12.2", (3, 10), BROKEN_IMPORT, BROKEN, "mutable default"),
        (None, "0.12.2", (3, 10), FINE, BROKEN, "older than 0.12.3"),
        (None, "0.12.3", (3, 10), FINE, WARNING, "the same code"),
        ("0.12.3.1", "0.12.2", (3, 11), FINE, BROKEN, "over each other"),
        (None, None, (3, 11), BROKEN_IMPORT, BROKEN, "not installed"),
        (None, None, (3, 11), FINE, WARNING, "not installed by pip"),
    ],
)
def test_fairseq(fixed, upstream, python, imported, state, said):
    check = doctor.check_fairseq(fixed, upstream, python, imported)
    assert check.state == state
    assert said in str(check)
    assert (state == OK) == (check.fix == "")
    if upstream:
        assert check.fix.startswith("pip uninstall -y fairseq")
        assert check.fix.endswith("pip install fairseq-fixed==0.12.3.1")


@pytest.mark.parametrize("version, state", [("1.3.2", OK), ("1.3.9", OK), ("1.0.7", BROKEN), (None, BROKEN)])
def test_hydra(version, state):
    check = doctor.check_pinned("hydra", version, doctor.HYDRA)
    assert (check.state, check.fix) == (state, "" if state == OK else "pip install hydra-core==1.3.2")


@pytest.mark.parametrize(
    "compiler, headers, needed, state",
    [
        ("/usr/bin/c++", True, True, OK),
        (None, True, True, BROKEN),
        (None, True, False, WARNING),
        ("/usr/bin/c++", False, True, BROKEN),
    ],
)
def test_compiler(compiler, headers, needed, state):
    assert doctor.check_compiler(compiler, headers, needed).state == state


@pytest.mark.parametrize(
    "seen, driver, state, said",
    [
        ('{"built_for": "13.0", "devices": ["H200"], "mps": false}', True, OK, "H200"),
        ('{"built_for": null, "devices": [], "mps": false}', True, WARNING, "CPU only"),
        ('{"built_for": "13.0", "devices": [], "mps": false}', True, WARNING, "sees no device"),
        ('{"built_for": null, "devices": [], "mps": false}', False, OK, "training runs on the CPU"),
    ],
)
def test_accelerator(seen, driver, state, said):
    check = doctor.check_accelerator(Probe(output=seen), driver)
    assert check.state == state
    assert said in check.found


@pytest.mark.parametrize(
    "seen, variable, state, said",
    [
        ('[true, "libseqstruct.so.1", "build"]', None, OK, "compiled for CPUs (libseqstruct.so.1)"),
        ('[false, "libseqstruct.so.1", "build"]', "0", OK, "SEQSTRUCT_COMPILED=0"),
        ('[false, "libseqstruct.so.1", "build"]', None, WARNING, "fix: build, where there are torch and"),
    ],
)
def test_operators(seen, variable, state, said, monkeypatch):
    monkeypatch.delenv("SEQSTRUCT_COMPILED", raising=False)
    if variable:
        monkeypatch.setenv("SEQSTRUCT_COMPILED", variable)
    check = doctor.check_operators(Probe(output=seen))
    assert check.state == state and said in str(check)
    assert doctor.check_operators(Probe(error="no torch")).state == WARNING


def test_missing_packages_are_named_with_one_command():
    check = doctor.check_others({"rich": "15.0.0", "tqdm": None, "sacrebleu": None})
    assert (check.state, check.fix) == (BROKEN, "pip install tqdm sacrebleu")


def test_probe_gives_the_last_line_of_an_error():
    assert doctor.probe("raise ValueError('a\\nlast line')").error == "last line"
    assert doctor.probe("print(7)").output == "7\n"
    assert doctor.probe("import time; time.sleep(60)", timeout=0.2).error.startswith("no answer")


def test_requirements_of_setup_are_all_examined():
    pinned = {pin.partition("==")[0] for pin in (doctor.FAIRSEQ, doctor.HYDRA, doctor.OMEGACONF)}
    assert {*doctor.OTHERS, "numpy", "torch"} | pinned == set(REQUIRED)
    for name, least in (("numpy", doctor.NUMPY_LEAST), ("torch", doctor.TORCH_LEAST)):
        assert REQUIRED[name] == (">=", doctor.dotted(least))


def test_this_machine_is_sound(capsys):
    status = doctor.run(None)
    printed = capsys.readouterr().out
    assert status == 0, printed
    assert BROKEN not in printed


@pytest.mark.slow
def test_the_command_needs_the_standard_library_alone():
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-S", "-m", "seqstruct", "doctor"], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 1, done.stderr
    assert done.stderr == ""
    assert re.search(r"broken +torch +not installed\n +fix: pip install torch\n", done.stdout)
    assert "fix: pip install fairseq-fixed==0.12.3.1" in done.stdout
