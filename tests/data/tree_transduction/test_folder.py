"""Folders of formulas: what they hold, that they come out the same again, and how bad ones are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seqstruct.data.files import sha256
from seqstruct.data.tree_transduction.folder import SPLITS, FormulasRequest, read_meta, read_split, write_folder
from seqstruct.data.tree_transduction.formula import Branching, parse_prefix, prefix
from tests.data.scripts import prepare

SMALL = FormulasRequest(train=20, valid=5, test=4)


def test_what_a_folder_holds(tmp_path: Path) -> None:
    meta = write_folder(SMALL, tmp_path / "a")
    assert read_meta(tmp_path / "a") == json.loads(json.dumps(meta))
    splits = {split: read_split(tmp_path / "a", split, meta) for split in SPLITS}
    assert splits["train"].depths == [d for d in (2, 3, 4) for _ in range(20)]
    assert splits["valid"].depths == [d for d in (2, 3, 4) for _ in range(5)]
    assert splits["test"].depths == [d for d in (2, 3, 4, 5, 6) for _ in range(4)]
    forms = [tuple(form) for split in splits.values() for form in split.prefix]
    assert len(set(forms)) == len(forms) == 60 + 15 + 20
    lengths = [len(form) for form in splits["test"].prefix[:4]]
    assert meta["lengths"]["test"]["2"]["prefix_max"] == max(lengths)
    assert meta["lengths"]["test"]["2"]["prefix_mean"] == pytest.approx(sum(lengths) / 4, abs=0.01)


def test_seeds(tmp_path: Path) -> None:
    write_folder(SMALL, tmp_path / "a")
    write_folder(SMALL, tmp_path / "again")
    write_folder(FormulasRequest(train=20, valid=5, test=4, seed=2), tmp_path / "other")
    for name in ("train.prefix", "valid.infix", "test.prefix", "meta.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    assert (tmp_path / "a/test.prefix").read_bytes() == (tmp_path / "other/test.prefix").read_bytes()
    assert (tmp_path / "a/train.prefix").read_bytes() != (tmp_path / "other/train.prefix").read_bytes()


def altered(folder: Path, name: str, old: str, new: str) -> dict:
    """Change one line of a file and make the checksum fit, as one who writes such files by hand does."""
    path = folder / name
    lines = path.read_text().splitlines()
    assert old in lines[2]
    lines[2] = lines[2].replace(old, new, 1)
    path.write_text("\n".join(lines) + "\n")
    meta = json.loads((folder / "meta.json").read_text())
    meta["sha256"][name] = sha256(path)
    return meta


def test_a_formula_that_is_none_is_refused_with_file_and_line(tmp_path: Path) -> None:
    write_folder(SMALL, tmp_path / "a")
    meta = altered(tmp_path / "a", "train.prefix", " )", "")
    with pytest.raises(ValueError, match=r"train\.prefix, line 3: unbalanced: 1 of the parentheses are not closed"):
        read_split(tmp_path / "a", "train", meta)


def test_an_infix_form_of_another_formula_is_refused(tmp_path: Path) -> None:
    write_folder(SMALL, tmp_path / "a")
    line = (tmp_path / "a" / "train.prefix").read_text().splitlines()[2]
    operator = parse_prefix(line.split()).operator
    meta = altered(tmp_path / "a", "train.infix", f" {operator} ", f" {'+' if operator == '*' else '*'} ")
    with pytest.raises(ValueError, match=r"train\.infix, line 3: not the infix form of line 3 of train\.prefix"):
        read_split(tmp_path / "a", "train", meta)
    path = tmp_path / "a" / "test.infix"
    path.write_text(path.read_text() + "1 + 1\n")
    meta["sha256"]["test.infix"] = sha256(path)
    with pytest.raises(ValueError, match="21 lines, but test.prefix has 20"):
        read_split(tmp_path / "a", "test", meta)


def test_altered_and_missing_files(tmp_path: Path) -> None:
    meta = write_folder(SMALL, tmp_path / "a")
    with pytest.raises(ValueError, match="no split 'dev'"):
        read_split(tmp_path / "a", "dev", meta)
    (tmp_path / "a" / "train.infix").write_text("1 + 1\n")
    with pytest.raises(ValueError, match="train.infix: SHA-256"):
        read_split(tmp_path / "a", "train", meta)
    (tmp_path / "a" / "valid.prefix").unlink()
    with pytest.raises(ValueError, match="valid.prefix is missing"):
        read_split(tmp_path / "a", "valid", meta)
    with pytest.raises(ValueError, match="seqstruct prepare tree_transduction"):
        read_meta(tmp_path / "none")
    (tmp_path / "a" / "meta.json").write_text("{}")
    with pytest.raises(ValueError, match="truncated or altered"):
        read_meta(tmp_path / "a")


@pytest.mark.parametrize(
    "request_, message",
    [
        (FormulasRequest(train=0), "train is at least 1"),
        (FormulasRequest(depths=(4, 2)), "depths are from 1 to 50"),
        (FormulasRequest(branching=Branching(1, 0.2)), "2 or more expressions"),
        (FormulasRequest(branching=Branching(4, 1.5)), "nesting is a probability"),
        (FormulasRequest(train=10**9), "symbols together, expected 50,000,000 or fewer"),
        (FormulasRequest(test_depths=(2, 50), branching=Branching(4, 1.0)), "symbols together"),
        (FormulasRequest(depths=(2, 9), branching=Branching(10**6, 0.2)), "ask for fewer of them, less depth"),
        (FormulasRequest(train=2000, depths=(1, 1), branching=Branching(2, 0.0)), "depth 1 in a row were there"),
    ],
)
def test_requests_that_cannot_be_met(request_: FormulasRequest, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        write_folder(request_, tmp_path / "a")
    assert not list(tmp_path.iterdir())


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["tree-transduction", "--out", tmp_path / "a", "--train", 6, "--valid", 2, "--test", 2]
    words += ["--test-depths", "2:3"]
    assert prepare(*words, "--nesting", "0") == 0
    printed = capsys.readouterr().out
    assert "6 training, 2 validation and 2 test formulas of each depth" in printed
    assert "test, depth 3: " in printed and "test, depth 4" not in printed
    lines = (tmp_path / "a" / "train.prefix").read_text().splitlines()
    assert len(lines) == 18 and prefix(parse_prefix(lines[0].split())) == lines[0].split()
    assert prepare(*words) == 1 and "not empty" in capsys.readouterr().err
    for bad in ("4", "a:b"):
        with pytest.raises(SystemExit):
            prepare(*words, "--depths", bad)
