"""Compiling kernels, and choosing them."""

from __future__ import annotations

import pytest
import torch

from seqstruct.ops import compiled as kernels
from seqstruct.ops.compiled import VARIABLE, usable


@pytest.fixture()
def fresh(monkeypatch, tmp_path):
    """An empty cache folder, and nothing loaded."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(VARIABLE, "1")
    kernels._library.cache_clear()
    yield tmp_path / "seqstruct"
    kernels._library.cache_clear()


def test_kernels_are_off_by_default(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert not usable(torch.zeros(1))


def test_other_precisions_and_mixtures_are_left_to_pytorch(compiled):
    compiled(True)
    assert usable(torch.zeros(1), None, torch.zeros(2))
    assert not usable(torch.zeros(1, dtype=torch.bfloat16))
    assert not usable(torch.zeros(1), torch.zeros(1, dtype=torch.float64))
    assert not usable(torch.zeros(1, device="meta"))


def test_a_value_that_is_neither_0_nor_1_is_refused(monkeypatch):
    monkeypatch.setenv(VARIABLE, "yes")
    with pytest.raises(ValueError, match="expected SEQSTRUCT_COMPILED to be 0 or 1, got 'yes'"):
        usable(torch.zeros(1))


def test_a_compiler_that_is_missing_is_named(fresh, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(ValueError, match="no-such-compiler"):
        usable(torch.zeros(1))
    assert not fresh.exists()


def test_a_compiler_that_fails_leaves_no_file(fresh, monkeypatch, tmp_path):
    stub = tmp_path / "failing"
    stub.write_text('#!/bin/sh\ncase "$*" in *-E*) exit 0;; esac\necho broken >&2\nexit 1\n')
    stub.chmod(0o755)
    monkeypatch.setenv("CXX", str(stub))
    with pytest.raises(ValueError, match="broken"):
        usable(torch.zeros(1))
    assert list(fresh.iterdir()) == []
