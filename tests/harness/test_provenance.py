"""Provenance: what is dirty, and what a record says of the machine."""

from __future__ import annotations

import subprocess

import pytest
import torch

from seqstruct.harness.provenance import describe_commit, machine, processor


@pytest.fixture
def repository(tmp_path):
    """A repository with one commit of code, a text and a record."""
    for name in ("seqstruct/a.py", "recipes/paper/records/2.jsonl", "recipes/paper/x.py", "README.md", "recipes/R.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1\n")
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "one"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.parametrize("changed, dirty", [
    (None, False), ("recipes/paper/records/2.jsonl", False), ("recipes/paper/records/new.jsonl", False),
    ("README.md", False), ("recipes/R.md", False), ("seqstruct/a.py", True), ("recipes/paper/x.py", True),
    ("seqstruct/new.py", True), ("recipes/paper/paper.json", False), ("recipes/evidence.txt", False),
    ("recipes/.mine.txt", False),
])
def test_records_and_texts_do_not_make_a_tree_dirty(repository, changed, dirty):
    if changed:
        (repository / changed).write_text("2\n")
    described = describe_commit(repository)
    assert described.endswith("-dirty") == dirty and len(described.removesuffix("-dirty")) == 7


@pytest.mark.parametrize("changed, passed_over", [
    ("recipes/paper/records/2.jsonl", True), ("README.md", True), ("seqstruct/a.py", False),
    ("recipes/paper/x.py", False),
])
def test_the_commit_is_the_last_one_that_decides_a_number(repository, changed, passed_over):
    before = describe_commit(repository)
    (repository / changed).write_text("2\n")
    words = ["git", "-c", "user.name=n", "-c", "user.email=e", "commit", "-qam", "two"]
    subprocess.run(words, cwd=repository, check=True)
    assert (describe_commit(repository) == before) == passed_over


def test_a_folder_that_is_no_repository_has_no_commit(repository):
    assert describe_commit(repository / "seqstruct") is None


@pytest.mark.parametrize("switch, kernels", [("1", "triton 3.6"), ("0", "pytorch")])
def test_a_gpu_and_its_kernels_are_named(monkeypatch, switch, kernels):
    assert "gpu" not in machine() or torch.cuda.is_available()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "A GPU")
    monkeypatch.setattr("seqstruct.ops.gpu.installed", lambda: True)
    monkeypatch.setattr("seqstruct.harness.provenance.metadata.version", lambda name: "3.6" if name == "triton" else "")
    monkeypatch.setenv("SEQSTRUCT_COMPILED", switch)
    found = machine()
    assert (found["gpu"], found["gpu_kernels"]) == ("A GPU", kernels)


def test_the_machine_is_named(monkeypatch):
    monkeypatch.setenv("MKL_CBWR", "AVX2")
    monkeypatch.setattr("seqstruct.harness.provenance.switched_on", lambda: True)
    found = machine()
    assert found["threads"] == str(torch.get_num_threads())
    assert found["kernels"] == "compiled" and found["MKL_CBWR"] == "AVX2"
    assert found["instructions"] == torch.backends.cpu.get_cpu_capability() and found["blas"] and found["processor"]
    monkeypatch.undo()
    monkeypatch.setenv("SEQSTRUCT_COMPILED", "0")
    assert machine()["kernels"] == "pytorch"


def test_a_processor_has_its_family_and_model(tmp_path):
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: A  \nprocessor\t: 1\n")
    assert processor(info) == "A (family 26, model 2)"
    info.write_text("CPU architecture: 8\n")
    assert processor(info)
    assert processor(tmp_path / "none")
