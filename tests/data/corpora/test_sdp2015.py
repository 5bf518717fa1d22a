"""Splits of SDP 2015 and of the treebank: which sentence goes where, and what is missing or wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from seqstruct.data.corpora import sdp2015
from seqstruct.data.text.conllu import read_conllu
from seqstruct.data.text.sdp import read_sdp
from tests.data.scripts import prepare, prepared

SCRIPT = Path(__file__).resolve().parents[3] / "data-prep" / "sdp2015.sh"
WORDS = "1\tdogs\tdog\tNNS\t-\t-\t_\tARG1\n2\tbark\tbark\tVBP\t+\t+\tv\t_\n"
CONVERTER = """#!/bin/sh
# a converter for trees of one line: the first word is the root
for last; do :; done
while read -r line; do
  printf '%s\\n' "$line" | tr '() ' '\\n\\n\\n' | grep '^w' |
    awk '{print NR "\\t" $1 "\\t_\\tX\\tX\\t_\\t" (NR > 1) "\\tdep\\t_\\t_"}'
  echo
done < "$last"
"""


def sdp(path: Path, numbers: list[str], header: str = "#SDP 2015") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(header + "\n" + "".join(f"#{number}\n{WORDS}\n" for number in numbers), encoding="utf-8")


@pytest.fixture
def graphs(tmp_path: Path) -> Path:
    for formalism in sdp2015.FORMALISMS:
        sdp(tmp_path / f"ldc/2015/en.{formalism}.sdp", ["20001001", "21903002", "22001001", "22001002", "22100001"])
        sdp(tmp_path / f"ldc/test/en.id.{formalism}.sdp", ["22100003"])
        sdp(tmp_path / f"ldc/test/en.ood.{formalism}.sdp", ["cf01_1", "cf01_2"])
    return tmp_path / "ldc"


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    for section in range(25):
        folder = tmp_path / f"wsj/{section:02}"
        folder.mkdir(parents=True)
        (folder / f"wsj_{section:02}01.mrg").write_text(f"( (S (X w{section}) (X wb)) )\n( (S (X wc)) )\n")
    return tmp_path / "wsj"


def java(tmp_path: Path, text: str = CONVERTER) -> str:
    path = tmp_path / "java"
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_sentences_go_by_their_sections(graphs: Path, tmp_path: Path) -> None:
    counts = prepared("sdp2015", "--from", graphs, "--out", tmp_path / "out", "--unchecked")
    assert counts == {name: {"train": 2, "dev": 2, "id": 1, "ood": 2} for name in sdp2015.FORMALISMS}
    names = {split: [g.name for g in read_sdp(tmp_path / f"out/psd.{split}.sdp")] for split in ("train", "dev", "ood")}
    assert names == {
        "train": ["20001001", "21903002"], "dev": ["22001001", "22001002"], "ood": ["cf01_1", "cf01_2"]
    }
    graph = next(read_sdp(tmp_path / "out/dm.id.sdp"))
    assert (graph.tops, graph.arcs) == ((2,), ((2, 1, "ARG1"),))


def test_trees_are_converted_and_split(graphs: Path, trees: Path, tmp_path: Path) -> None:
    counts = sdp2015.split_trees(trees, tmp_path, "corenlp.jar", java(tmp_path))
    assert counts == {"train": 46, "dev": 2, "test": 2}
    found = [[token.form for token in s.tokens] for s in read_conllu(tmp_path / "ptb.dev.conllu")]
    assert found == [["w20", "wb"], ["wc"]]
    assert [token.head for s in read_conllu(tmp_path / "ptb.test.conllu") for token in s.tokens] == [0, 1, 0]
    again = tmp_path / "again"
    again.mkdir()
    for section in range(25):
        (again / f"wsj_{section:02}01.conllx").write_text(f"1\tw{section}\t_\tX\tX\t_\t0\troot\t_\t_\n\n")
    assert sdp2015.split_trees(again, tmp_path, None, "java") == {"train": 23, "dev": 1, "test": 1}


def test_the_script(graphs: Path, trees: Path, tmp_path: Path) -> None:
    command = [str(SCRIPT), "--from", str(graphs), "--out", str(tmp_path / "out"), "--unchecked"]
    command += ["--trees", str(trees), "--corenlp", "x.jar", "--java", java(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHON": sys.executable})
    assert (done.returncode, done.stdout.splitlines()[-2]) == (0, "ptb: train 46, dev 2, test 2"), done.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir())[:4] == [
        "corpus.json", "dm.dev.sdp", "dm.id.sdp", "dm.ood.sdp"
    ]


def test_capitals_and_line_ends_of_other_systems(graphs: Path, tmp_path: Path) -> None:
    for section in range(25):
        tree = f"1\tw{section}\t_\tX\tX\t_\t0\troot\t_\t_\r\n\r\n"
        (graphs / f"WSJ_{section:02}01.CONLLX").write_bytes(tree.encode())
    counts = prepared("sdp2015", "--from", graphs, "--out", tmp_path / "unix", "--unchecked")
    assert counts["ptb"] == {"train": 23, "dev": 1, "test": 1}
    for path in graphs.rglob("*.sdp"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert prepared("sdp2015", "--from", graphs, "--out", tmp_path / "dos", "--unchecked") == counts
    for path in (tmp_path / "unix").iterdir():
        assert path.read_bytes() == (tmp_path / "dos" / path.name).read_bytes() and b"\r" not in path.read_bytes()


def wrong_header(graphs: Path) -> None:
    sdp(graphs / "2015/en.dm.sdp", ["20001001"], "#SDP 2014")


def wrong_number(graphs: Path) -> None:
    sdp(graphs / "2015/en.dm.sdp", ["x1"])


def missing(graphs: Path) -> None:
    (graphs / "test/en.ood.pas.sdp").unlink()


def twice(graphs: Path) -> None:
    sdp(graphs / "other/en.psd.sdp", ["20001001"])


def truncated(graphs: Path) -> None:
    path = graphs / "test/en.id.dm.sdp"
    path.write_bytes(path.read_bytes()[:-10])


def not_utf8(graphs: Path) -> None:
    path = graphs / "2015/en.dm.sdp"
    path.write_bytes(path.read_bytes().replace(b"bark", b"b\xe9rk", 1))


@pytest.mark.parametrize(("spoil", "message"), [
    (truncated, "ldc/test/en.id.dm.sdp, line 4: expected word 2 and 7 fields"),
    (not_utf8, "ldc/2015/en.dm.sdp: not UTF-8 after line"),
    (wrong_header, "en.dm.sdp, line 1: expected '#SDP 2015', got '#SDP 2014'"),
    (wrong_number, "begins with its number"),
    (missing, r"one file en.ood.pas.sdp .* found 0"), (twice, r"one file en.psd.sdp .* found 2"),
])
def test_wrong_graphs(graphs: Path, tmp_path: Path, capsys: Any, spoil: Any, message: str) -> None:
    spoil(graphs)
    with pytest.raises(ValueError, match=message):
        prepared("sdp2015", "--from", graphs, "--out", tmp_path / "out", "--unchecked")
    assert not (tmp_path / "out").exists()
    assert prepare("sdp2015", "--from", graphs, "--out", tmp_path / "out", "--unchecked") == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_other_numbers_of_sentences(graphs: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="dm: the train set has 2 sentences, expected 33961: .*--unchecked"):
        prepared("sdp2015", "--from", graphs, "--out", tmp_path / "out")


def test_wrong_trees(trees: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="need --corenlp JAR"):
        sdp2015.split_trees(trees, tmp_path, None, "java")
    with pytest.raises(ValueError, match="no-such-java cannot be run"):
        sdp2015.split_trees(trees, tmp_path, "x.jar", "no-such-java")
    with pytest.raises(ValueError, match="ended with status 3: out of memory"):
        sdp2015.split_trees(trees, tmp_path, "x.jar", java(tmp_path, "#!/bin/sh\necho out of memory >&2\nexit 3\n"))
    with pytest.raises(ValueError, match="gave 0 sentences for 46 trees"):
        sdp2015.split_trees(trees, tmp_path, "x.jar", java(tmp_path, "#!/bin/sh\n"))
    (trees / "WSJ_0301.MRG").write_text("( (S (X w)) )\n")
    with pytest.raises(ValueError, match="each file once, found .*0301"):
        sdp2015.split_trees(trees, tmp_path, "x.jar", "java")
    (trees / "WSJ_0301.MRG").unlink()
    for name in ("wsj_0301.conllx", "wsj_0301.dep"):
        (trees / name).write_bytes(b"1\tb\xe9\t_\tX\tX\t_\t0\troot\t_\t_\n")
        with pytest.raises(ValueError, match="wsj_0301.conllx: not UTF-8 after line 0"):
            sdp2015.split_trees(trees, tmp_path, None, "java")
    (trees / "wsj_0301.conllx").write_text("1\tb\t_\tX\tX\t_\t0\troot\t_\t_\n\n")
    with pytest.raises(ValueError, match="each file once, found .*wsj_0301.conllx and .*wsj_0301.dep"):
        sdp2015.split_trees(trees, tmp_path, None, "java")
    (trees / "wsj_0301.conllx").unlink()
    (trees / "wsj_0301.dep").unlink()
    (trees / "07/wsj_0701.mrg").unlink()
    with pytest.raises(ValueError, match="sections 07"):
        sdp2015.split_trees(trees, tmp_path, "x.jar", "java")
