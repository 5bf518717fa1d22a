"""Memory that a training frees is there for its next arrays."""

from __future__ import annotations

import platform
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from seqstruct.bridge.patches import memory

GLIBC = platform.libc_ver()[0] == "glibc"
COUNT = """
import resource, torch
from seqstruct.bridge.patches.memory import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    [torch.ones(5 << 20) for _ in range(5)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

before = min(faults() for _ in range(3))
asked = keep_freed_memory()
print(before, min(faults() for _ in range(3)), asked)
"""


def counted(monkeypatch, **variables):
    """Page faults of arrays like those freed before, by glibc's own ways and by ours; whether ours were asked for."""
    for name in memory.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found = subprocess.run([sys.executable, "-c", COUNT], check=True, capture_output=True, text=True)
    before, after, asked = found.stdout.split()
    return int(before), int(after), asked == "True"


@pytest.mark.skipif(not GLIBC, reason="the C library is not glibc")
def test_arrays_come_back_without_page_faults(monkeypatch):
    before, after, asked = counted(monkeypatch)
    assert asked and after < before / 10, (before, after)


@pytest.mark.skipif(not GLIBC, reason="the C library is not glibc")
def test_the_environment_has_the_last_word(monkeypatch):
    before, after, asked = counted(monkeypatch, MALLOC_TRIM_THRESHOLD_="131072", MALLOC_MMAP_THRESHOLD_="131072")
    assert not asked and after > before / 2 > 0, (before, after)


def test_other_systems_are_left_alone(monkeypatch):
    for name in memory.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda _: object())
    assert not memory.keep_freed_memory()


@pytest.mark.parametrize("cpu, there, kept", [(True, True, 1), (False, False, 1), (False, True, 0)])
def test_trainings_on_cpus_ask_for_it(cpu, there, kept, monkeypatch):
    asked, made = [], []
    monkeypatch.setattr(memory, "keep_freed_memory", lambda: asked.append(True))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    cfg = SimpleNamespace(common=SimpleNamespace(cpu=cpu))
    memory.initialize(lambda *given, **named: made.append((given, named)), None, cfg, "task", model=1)
    assert len(asked) == kept and made == [((None, cfg, "task"), {"model": 1})]
