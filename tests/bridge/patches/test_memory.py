"""Memory that a training frees is there for its next arrays."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest
from fairseq.trainer import Trainer

from seqstruct.bridge.patches import memory
from seqstruct.bridge.patches.patch import PATCHES

GLIBC = platform.libc_ver()[0] == "glibc"
PAGES = 20 << 20 >> 12  # of one of the five arrays that `COUNT` has at a time
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
    assert asked and after < PAGES // 100 < PAGES <= before, (before, after)


@pytest.mark.skipif(not GLIBC, reason="the C library is not glibc")
def test_the_environment_has_the_last_word(monkeypatch):
    before, after, asked = counted(monkeypatch, MALLOC_TRIM_THRESHOLD_="131072", MALLOC_MMAP_THRESHOLD_="131072")
    assert not asked and min(before, after) >= 5 * PAGES


def test_other_systems_are_left_alone(monkeypatch):
    for name in memory.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda _: object())
    assert not memory.keep_freed_memory()


def test_trainers_ask_for_it():
    assert any(p.owner is Trainer and p.function is memory.initialize and p.applied for p in PATCHES.values())
