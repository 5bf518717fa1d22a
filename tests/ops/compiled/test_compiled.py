"""Building the operators' library, loading it, and choosing its kernels."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.autograd import forward_ad

from seqstruct.ops import compiled as kernels
from seqstruct.ops.chains import chain_log_partition
from seqstruct.ops.compiled import VARIABLE, build, usable
from seqstruct.ops.pushdown import pushdown_stack, transition_count
from seqstruct.ops.superposition import superposition_stack

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture()
def nothing_built(monkeypatch, tmp_path):
    """No library, and none loaded."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(build, "library_path", lambda: tmp_path / "libseqstruct.so.none")
    monkeypatch.setattr(kernels, "_loaded", None)


def test_kernels_are_on_by_default(compiled, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert usable(torch.zeros(1))
    compiled(False)
    assert not usable(torch.zeros(1))


def test_other_precisions_and_mixtures_are_left_to_pytorch(compiled):
    compiled(True)
    assert usable(torch.zeros(1), None, torch.zeros(2))
    assert not usable(torch.zeros(1, dtype=torch.bfloat16))
    assert not usable(torch.zeros(1), torch.zeros(1, dtype=torch.float64))
    assert not usable(torch.zeros(1, device="meta"))


def test_derivatives_of_their_own_are_refused_to_transforms(generator):
    logits, pushed = torch.randn(2, 3, transition_count(1, 2), generator=generator), torch.ones(2, 3, 1)
    for function, x in (
        (lambda x: superposition_stack(x.softmax(2), pushed)[0].sum(), logits[:, :, :3]),
        (lambda x: pushdown_stack(x, pushed, torch.ones(1), states=1, symbols=2).sum(), logits),
        (lambda x: chain_log_partition(x, torch.zeros(2, 2, 3, 3)).sum(), logits[:, :, :3]),
    ):
        assert function(x).isfinite()
        for transform in (torch.func.grad(function), lambda x, function=function: torch.func.jvp(function, (x,), (x,))):
            with pytest.raises(RuntimeError):
                transform(x)
        with forward_ad.dual_level(), torch.no_grad(), pytest.raises(RuntimeError):
            function(forward_ad.make_dual(x, x))


def test_a_value_that_is_neither_0_nor_1_is_refused(monkeypatch):
    monkeypatch.setenv(VARIABLE, "yes")
    with pytest.raises(ValueError, match="expected SEQSTRUCT_COMPILED to be 0 or 1, got 'yes'"):
        usable(torch.zeros(1))


def test_where_nothing_was_built_pytorch_serves_and_says_so_once(nothing_built, caplog):
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert not usable(torch.zeros(1))
            readings, _ = superposition_stack(torch.ones(1, 2, 3) / 3, torch.ones(1, 2, 4))
    assert readings.shape == (1, 2, 4)
    assert [x.name for x in caplog.records] == ["seqstruct.ops.compiled"]
    assert "PyTorch's take their place.  To build them: python -m seqstruct.ops.compiled.build" in caplog.text


def test_a_library_that_is_asked_for_and_was_not_built_is_refused(nothing_built, monkeypatch):
    monkeypatch.setenv(VARIABLE, "1")
    with pytest.raises(ValueError, match="were not built for these sources: python -m seqstruct.ops.compiled.build"):
        usable(torch.zeros(1))


def test_threads_that_begin_together_load_it_once(compiled):
    """In a process of its own, where nothing is loaded yet, and loading takes its time."""
    code = """
import threading, time, warnings
import torch
from seqstruct.ops.compiled import usable
warnings.simplefilter("error")
load = torch.ops.load_library
torch.ops.load_library = lambda path: (time.sleep(0.3), load(path))
found, together = [], threading.Barrier(4)
def begin():
    together.wait()
    found.append(usable(torch.zeros(1)))
threads = [threading.Thread(target=begin) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(found)
"""
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, VARIABLE: "1"}, capture_output=True,
                          text=True, check=False)
    assert done.stdout == "[True, True, True, True]\n", done.stderr


def test_its_name_changes_with_the_sources(monkeypatch, tmp_path):
    before = build.library_path(tmp_path)
    assert before == build.library_path(tmp_path) and before.parent == tmp_path
    other = tmp_path / "more.h"
    other.write_text("// more\n")
    files = [*build.sources(), other]
    monkeypatch.setattr(build, "sources", lambda: files)
    assert build.library_path(tmp_path) != before


@pytest.mark.parametrize("compiler", ["no-such-compiler", "false"])
def test_a_compiler_that_is_missing_or_fails_leaves_no_file(compiler, monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", compiler)
    with pytest.raises(ValueError, match=compiler):
        build.build(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("written", [False, True])
def test_older_libraries_go_once_the_new_one_is_there(written, monkeypatch, tmp_path):
    """By a compiler that writes what it is asked for, or nothing."""
    compiler, folder = tmp_path / "compiler", tmp_path / "libraries"
    writes = 'while [ "$1" != -o ]; do shift; done\necho new > "$2"\n'
    compiler.write_text("#!/bin/sh\n" + (writes if written else ""))
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.delenv("CXXFLAGS", raising=False)
    folder.mkdir()
    old, path = folder / "libseqstruct.so.old", build.library_path(folder)
    old.write_text("old\n")
    if written:
        assert build.build(folder) == path and path.read_text() == "new\n"
    else:
        with pytest.raises(FileNotFoundError):
            build.build(folder)
    assert list(folder.iterdir()) == [path if written else old]


def test_without_torch_nothing_is_built(monkeypatch, tmp_path):
    monkeypatch.setattr(build.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="torch is not installed"):
        build.build(tmp_path)


SAME = """
import os, torch
from seqstruct.ops.chains import chain_marginals
from seqstruct.ops.memory.bounded_memory import causal_bounded_memory, empty_bounded_memory
from seqstruct.ops.memory.feature_maps import EluMap, GaussianMap
from seqstruct.ops.memory.linear_attention import causal_linear_attention, empty_memory
from seqstruct.ops.pushdown import pushdown_stack, transition_count
from seqstruct.ops.superposition import superposition_stack
from seqstruct.ops.trees import constituency_marginals, projective_marginals, spanning_marginals

draw = torch.Generator().manual_seed(3)
x, y, z = (torch.randn(2, 2, 70, 13, generator=draw) for _ in range(3))
logits, rows = torch.randn(2, 13, transition_count(2, 3), generator=draw), torch.randn(2, 7, 13, generator=draw)
found = []
for on in "01":
    os.environ["SEQSTRUCT_COMPILED"] = on
    found.append([superposition_stack(x[0, :, :, :3].softmax(-1), y[0])[0]])
    found[-1] += [form(x[0, :, :13] / 3) for form in (projective_marginals, spanning_marginals)]
    found[-1].append(constituency_marginals(torch.stack([x, y], 4)[0, :, :13], torch.tensor([13, 9])))
    found[-1] += chain_marginals(x[0], z[0, :, :69, :, None] + y[0, :, 1:, None])
    found[-1].append(pushdown_stack(logits, x[0, :, :13], y[0, 0, 0], states=2, symbols=3))
    found[-1].append(causal_bounded_memory(empty_bounded_memory(2, 2, 13, 13, 13, x), x, y, z, x, True)[0])
    for features, size in ((EluMap(), 13), (GaussianMap(rows, True, torch.ones(2, 13)), 14)):
        memory = empty_memory(2, 2, size, 13, x)
        found[-1].append(causal_linear_attention(memory, x, y, z, None, features, None, 0.1)[0])
torch.testing.assert_close(*found, rtol=1e-3, atol=1e-5)
"""


@pytest.mark.parametrize("level", ["default", "avx2"])
def test_other_processors_get_the_same_numbers(level, library):
    """The kernels for processors that lack the last instructions of this one."""
    environment = {**os.environ, "ATEN_CPU_CAPABILITY": level, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", SAME], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
