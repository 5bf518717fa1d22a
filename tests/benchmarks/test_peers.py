"""What is said of others' packages, and folders with such that are named."""

from __future__ import annotations

import sys

import pytest

from seqstruct.benchmarks import peers
from seqstruct.cli import main
from seqstruct.cli.bench import BENCHMARKS
from tests.requirements import EXTRAS


def test_versions_are_told_or_how_to_get_them(monkeypatch, tmp_path):
    assert peers.told("fairseq").startswith("beside fairseq 0.12.3")
    monkeypatch.setitem(peers.PEERS, "other", peers.Peer("a_package_of_others", "a-package-of-others"))
    assert peers.told("other") == 'without other, which is not installed: pip install "seqstruct[bench]"'
    folder = tmp_path / "a_package_of_others"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    assert peers.told("other") == f"beside other of {folder}", "no version is known"
    monkeypatch.delitem(sys.modules, "a_package_of_others")
    (folder / "__init__.py").write_text("import nothing_of_that_name")
    assert peers.told("other") == "without other, which is installed but does not load"


def test_the_extra_has_the_peers_that_come_from_pypi():
    declared = {peer.distribution for peer in peers.PEERS.values() if peer.source == peers.EXTRA}
    assert declared - EXTRAS["bench"].keys() == {"fairseq-fixed"}, "which is required anyway"
    assert all(relation == "==" for name, (relation, _) in EXTRAS["bench"].items() if name != "transformers")


def test_folders_of_peers_are_the_last_that_are_looked_at(monkeypatch, tmp_path, refused):
    monkeypatch.setattr(sys, "path", list(sys.path))
    command = ["bench", "rational", "--lengths", "1", "--repeats", "1", "--peer"]
    assert f"--peer: there is no folder {tmp_path / 'none'}" in refused(*command, tmp_path / "none")
    monkeypatch.setattr("seqstruct.benchmarks.rational.SIZE", 4)
    assert main([*command, str(tmp_path)]) == 0
    assert sys.path[-1] == str(tmp_path)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_takes_a_device(name, refused):
    for device in ("abacus", "meta"):
        assert f"no device {device} here" in refused("bench", name, "--device", device)
