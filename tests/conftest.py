"""Fixtures of the whole suite."""

from __future__ import annotations

import gc
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Callable, Generator, Iterator

import pytest
import torch

from seqstruct.bridge.patches.compat import NOISE, prepare_fairseq
from seqstruct.cli import main
from seqstruct.data.text import binarise
from seqstruct.harness.records import Record
from seqstruct.ops.linear import VARIABLE as LINEAR
from tests import trainings
from tests.models.front_door import fairseq

pytest_plugins = [
    "seqstruct.testing",  # the laws, and the fixture `generator`
    "tests.models.reversals",
    "tests.loading.trained",
]
prepare_fairseq()
os.environ.setdefault(LINEAR, "torch")  # whatever the processor; commands that tests run inherit it
TESTS = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    """pytest sets filters of its own for each test, so what the plugin keeps quiet is said to it too."""
    for message in NOISE:
        config.addinivalue_line("filterwarnings", "ignore:" + message.replace(":", r"\x3a"))
    trainings.register(config)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What was imported and collected stays to the end: it is not looked through again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True, scope="session")
def no_waiting_for_the_disk() -> Iterator[None]:
    """What tests write need not outlive a power cut: a flush waits for all that others wrote, up to a minute."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def fairseq_preprocess_in_this_process() -> Iterator[None]:
    """Most of what it takes on small files is to import fairseq; scripts and commands of tests run it apart."""

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess:
        try:
            return subprocess.CompletedProcess(command, 0, fairseq("preprocess", *command[3:]))
        except (Exception, SystemExit) as error:
            return subprocess.CompletedProcess(command, 1, f"{type(error).__name__}: {error}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(binarise, "subprocess", SimpleNamespace(run=run, PIPE=None, STDOUT=None))
        yield


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a `seqstruct` command that is to end with one sentence, which comes back."""

    def run(*words: object) -> str:
        capsys.readouterr()
        try:
            status = main(list(map(str, words)))
        except SystemExit as end:
            assert end.code == 2
            status = 1
        printed = capsys.readouterr()
        assert status == 1 and printed.out == "" and printed.err.count("\n") == 1
        assert printed.err.startswith(f"seqstruct {words[0]}")
        return printed.err

    return run


def reference_folder() -> Path | None:
    folder = os.environ.get("SEQSTRUCT_REFERENCE")
    return TESTS.parent / folder if folder else None


@pytest.fixture(scope="session")
def reference() -> Path:
    """The folder of reference numbers and corpora; skips where SEQSTRUCT_REFERENCE is unset."""
    path = reference_folder()
    if path is None:
        pytest.skip("SEQSTRUCT_REFERENCE is unset: no reference folder")
    if not path.is_dir():
        pytest.fail(f"SEQSTRUCT_REFERENCE={path}: no such folder")
    return path


@pytest.fixture(scope="session")
def golden() -> Callable[[str, str], Path]:
    """golden(folder, name): a reference file, from tests/golden or the reference folder; skips where neither has it."""

    def find(folder: str, name: str) -> Path:
        own = TESTS / "golden" / folder / name
        if own.exists():
            return own
        outside = reference_folder()
        if outside is None:
            pytest.skip(f"golden/{folder}/{name} is not in the project and SEQSTRUCT_REFERENCE is unset")
        return outside / "golden" / folder / name

    return find


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Small tensors run fastest on one thread, also where tests run side by side; OMP_NUM_THREADS asks for others."""
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))


@pytest.fixture
def threads():
    """What sets the number of threads; that of before comes back."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def record():
    """A function that makes a record, whole but for what it is told to change; of one metric unless given several."""

    def make(metric="difference", value=0.25, unit="nats", axis="", points=(), **changes):
        split = {"axis": axis, "points": points} if axis else {}
        whole = dict(
            paper="stack_attention", table="figure-2", row="dyck Tf",
            metrics={metric: {"value": value, "unit": unit, **split}}, seed=1, scale="small",
            dataset="Dyck-2", configuration_hash="ab12", data_checksums={"a": "00"},
            parameters=43109, seconds=12.5, peak_memory=1 << 20, versions={"torch": "2"}, command="python x.py",
        )
        return Record(**{**whole, **changes})

    return make
