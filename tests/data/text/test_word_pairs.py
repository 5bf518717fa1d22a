"""Parallel text as words and characters, and ASPEC's files."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from seqstruct.data.corpora import aspec
from seqstruct.data.text import word_pairs
from seqstruct.data.text.subwords import undo_sentencepiece
from seqstruct.data.text.word_pairs import WordPairOptions, characters, prepare, segmented
from tests.data.scripts import prepare as prepare_by_name
from tests.data.scripts import run

PAIRS = [("Ein Hund läuft.", "A dog runs."), ("Zwei Hunde laufen weit.", "Two dogs run far."), ("Ja.", "Yes.")]


def write_text(folder: Path) -> dict[str, Path]:
    folder.mkdir(exist_ok=True)
    for split in ("train", "valid", "test"):
        for side, language in enumerate(("de", "en")):
            (folder / f"{split}.{language}").write_text("".join(pair[side] + "\n" for pair in PAIRS * 4))
    return {split: folder / split for split in ("train", "valid", "test")}


def test_characters_there_and_back():
    assert characters("  Ja,  so ") == "J a , \u2581 s o"
    for line in ("Ja, so", "日本語 です", "a"):
        assert undo_sentencepiece(characters(line)) == line


def test_limits_hold_in_every_split_and_references_go_with_them(tmp_path):
    prefixes = write_text(tmp_path / "raw")
    options = WordPairOptions(("de", "en"), ("characters", "moses"), max_source=15, threshold=2)
    summary = prepare(prefixes, options, tmp_path / "out")
    assert summary["counts"] == {split: {"pairs": 8, "too_long": 4} for split in ("train", "valid", "test")}
    text = (tmp_path / "out" / "text" / "test.de").read_text().splitlines()
    assert text[:2] == [characters("Ein Hund läuft."), "J a ."]
    assert (tmp_path / "out" / "text" / "train.en").read_text().splitlines()[:2] == ["A dog runs .", "Yes ."]
    assert (tmp_path / "out" / "raw" / "test.en").read_text().splitlines() == ["A dog runs.", "Yes."] * 4
    assert json.loads((tmp_path / "out" / "corpus.json").read_text())["options"]["max_source"] == 15
    names = {path.name for path in (tmp_path / "out" / "bin").iterdir()}
    assert {"dict.de.txt", "dict.en.txt", "train.de-en.de.bin", "test.de-en.en.idx"} <= names
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "raw"]


def test_a_sample_is_drawn_once_and_for_all(tmp_path, monkeypatch):
    monkeypatch.setattr(word_pairs, "preprocess_pairs", lambda *_, **__: None)
    prefixes = write_text(tmp_path / "raw")
    drawn = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        prepare(prefixes, WordPairOptions(("de", "en"), sample=5, seed=seed), tmp_path / name)
        drawn.append((tmp_path / name / "text" / "train.de").read_text())
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(drawn[0].splitlines()) == 5


@pytest.fixture()
def segmenter(tmp_path, monkeypatch):
    """A stand-in for KyTea that cuts after each second character; its folder is the whole PATH."""

    def install(code: str) -> None:
        program = tmp_path / "programs" / "kytea"
        program.parent.mkdir()
        program.write_text(f"#!{sys.executable}\nimport sys\n{code}\n")
        program.chmod(program.stat().st_mode | stat.S_IEXEC)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")

    return install


def test_a_program_cuts_japanese(segmenter):
    segmenter("for line in sys.stdin:\n    s = line.strip()\n    print(s[:2], s[2:])")
    assert list(segmented(["日本 語", "犬が走る"], "kytea", "ja")) == ["日本 語", "犬が 走る"]


@pytest.mark.parametrize(("code", "message"), [
    ("sys.exit(3)", "kytea -notags failed with status 3"),
    ("print(sys.stdin.read().strip().replace(chr(10), ''))", "2 lines in, 1 lines out"),
])
def test_a_program_that_fails(segmenter, code, message):
    segmenter(code)
    with pytest.raises(ValueError, match=message):
        list(segmented(["日本", "語"], "kytea", "ja"))


@pytest.mark.parametrize(("changes", "message"), [
    ({"units": ("kytea", "moses")}, "kytea is not installed"),
    ({"max_target": 1}, "train: every pair is longer than the limits"),
    ({"sample": 99}, "train: 12 pairs are within the limits, expected 99 or more"),
])
def test_what_cannot_be_prepared_leaves_nothing(tmp_path, monkeypatch, changes, message):
    monkeypatch.setenv("PATH", "")
    prefixes = write_text(tmp_path / "raw")
    with pytest.raises(ValueError, match=message):
        prepare(prefixes, WordPairOptions(("de", "en"), **changes), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


def test_a_line_without_characters_is_named_in_the_file_that_was_given(tmp_path):
    prefixes = write_text(tmp_path / "raw")
    (tmp_path / "raw" / "test.en").write_text("A dog.\n\x01\n" * 6)
    with pytest.raises(ValueError, match=r"raw/test.en: line 2 is empty"):
        prepare(prefixes, WordPairOptions(("de", "en")), tmp_path / "out")


def test_options_out_of_range_and_missing_files(tmp_path, capsys):
    with pytest.raises(ValueError, match="units: expected some of .*, got 'syllables'"):
        WordPairOptions(("de", "en"), ("syllables", "moses"))
    with pytest.raises(ValueError, match="languages: expected two different ones, got de twice"):
        WordPairOptions(("de", "de"))
    with pytest.raises(ValueError, match="threshold: expected 1 or more, got 0"):
        WordPairOptions(("de", "en"), threshold=0)
    words = ["--src", "de", "--trg", "en", "--out", str(tmp_path / "out")]
    assert prepare_by_name("word-pairs", *words, "--train", "no/x", "--valid", "no/y", "--test", "no/z") == 1
    assert "no/x.de: no such file" in capsys.readouterr().err


def write_aspec(folder: Path, lines: int = 3) -> Path:
    for name in [name for names in aspec.FILES.values() for name in names]:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        head = "0.9 ||| D-1 ||| 1 ||| " if name.startswith("train") else "D-1 ||| 1 ||| "
        body = [f"{head}犬が走る{i}。 ||| The dog runs {i} .\n" for i in range(lines)]
        path.write_text("".join([*body, f"{head} ||| nothing .\n"]))
    return folder


def test_aspec_is_read(tmp_path):
    counts = aspec.extract(write_aspec(tmp_path / "ASPEC-JE"), tmp_path / "out")
    assert counts == {"train": 9, "valid": 3, "test": 3}
    assert (tmp_path / "out" / "train.ja").read_text().splitlines()[0] == "犬が走る0。"
    assert (tmp_path / "out" / "test.en").read_text().splitlines()[2] == "The dog runs 2 ."


def test_aspec_has_at_most_fifty_characters_of_japanese(tmp_path):
    """Kim et al. 2017, section 4.2: of characters and of words the same pairs, so that the draw is the same."""
    folder = write_aspec(tmp_path / "ASPEC-JE", 0)
    for split, head in (("dev", "D-1 ||| 1 ||| "), ("test", "D-1 ||| 1 ||| "), ("train", "0.9 ||| D-1 ||| 1 ||| ")):
        path = next((folder / split).glob("*.txt"))
        path.write_text("".join(f"{head}{'犬' * n} ||| {n} dogs .\n" for n in (49, 50, 51)))
    assert aspec.extract(folder, tmp_path / "out") == {"train": 2, "valid": 2, "test": 2}
    assert (tmp_path / "out" / "test.en").read_text() == "49 dogs .\n50 dogs .\n"


def test_aspec_that_is_not_whole(tmp_path, capsys):
    folder = write_aspec(tmp_path / "ASPEC-JE")
    (folder / "dev" / "dev.txt").write_text("")
    assert prepare_by_name("aspec", "--from", folder, "--unchecked", "--out", tmp_path / "out") == 1
    assert "ASPEC-JE: no pair of at most 50 letters of Japanese in dev/dev.txt" in capsys.readouterr().err
    (folder / "dev" / "dev.txt").write_text("D-1 ||| 1 ||| 犬 ||| dog\nD-2 ||| 犬 ||| dog\n")
    assert prepare_by_name("aspec", "--from", folder, "--out", tmp_path / "out") == 1
    assert "dev.txt: line 2: expected 4 fields between '|||', found 3" in capsys.readouterr().err
    (folder / "dev" / "dev.txt").write_text("D-1 ||| 1 ||| 犬 ||| dog\n")
    assert prepare_by_name("aspec", "--from", folder, "--out", tmp_path / "out") == 1
    assert "aspec: the train set has 12 lines, expected 3008500" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["ASPEC-JE"]
    (folder / "dev" / "dev.txt").unlink()
    with pytest.raises(ValueError, match=r"dev/dev.txt is missing \(1 of 5 files\)"):
        aspec.extract(folder, tmp_path / "out")


def test_the_script_prepares_characters(tmp_path):
    done = run("aspec", "--from", write_aspec(tmp_path / "ASPEC-JE", 4), "--out", tmp_path / "out", "--sample", "5",
               "--threshold", "1", "--unchecked")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "bin" / "dict.ja.txt").exists()
    assert len((tmp_path / "out" / "text" / "train.ja").read_text().splitlines()) == 5
    assert "train: 5 pairs, valid: 4 pairs, test: 4 pairs\n" in done.stdout, "what the folder holds"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ASPEC-JE", "out"]


@pytest.mark.parametrize(("arguments", "message"), [
    ([], "nothing is downloaded, --from DIR is needed: apply for the corpus"),
    (["--from", "{empty}"], "train/train-1.txt is missing"),
])
def test_the_corpus_that_is_not_there_is_one_sentence(tmp_path, refused, arguments, message):
    (tmp_path / "empty").mkdir()
    words = (word.format(empty=tmp_path / "empty") for word in arguments)
    assert message in refused("prepare", "aspec", "--out", tmp_path / "out", *words)
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]
