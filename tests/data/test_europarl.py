"""Europarl and the news test sets: what is read, what passes, what is drawn, and what is written."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from seqstruct.data import europarl, shards

SCRIPT = Path(__file__).resolve().parents[2] / "data-prep" / "europarl.sh"


def test_normalisation_and_limits():
    assert europarl.normalize("  \ufb01ne\u00a0 \uff21 \n") == "fine A"
    assert europarl.fits(("a" * 150, "b")) and not europarl.fits(("a" * 151, "b")) and not europarl.fits(("a", ""))
    assert europarl.balanced(("a" * 8, "b" * 2)) and not europarl.balanced(("a" * 2, "b" * 9))
    assert europarl.fits((europarl.normalize("\ufb01" * 75), "x")), "characters count after normalisation"


def test_the_draw_keeps_order_and_depends_on_the_seed():
    pairs = [(f"satz {i}", f"sentence {i}") for i in range(60)]
    bad = [("", "x"), ("ab", "x" * 9), ("y" * 151, "y" * 151)]
    mixed = [pair for i, good in enumerate(pairs) for pair in (good, bad[i % 3])]
    assert europarl.draw(mixed, 100, 1) == pairs
    drawn = europarl.draw(mixed, 13, 1)
    assert len(set(drawn)) == 13 and drawn == sorted(drawn, key=pairs.index)
    assert drawn == europarl.draw(mixed, 13, 1) and drawn != europarl.draw(mixed, 13, 2)
    counts = [sum(pair in europarl.draw(pairs[:6], 2, seed) for seed in range(600)) for pair in pairs[:6]]
    assert all(150 < count < 250 for count in counts), "each of six is one of the two drawn in a third of the draws"


def write_raw(folder, pairs=60):
    folder.mkdir()
    for language, word in (("de", "Satz"), ("en", "sentence")):
        lines = [f"{word} {i % 9} {word} {i % 7}." for i in range(pairs)] + ["", "x" * 200]
        (folder / f"europarl-v7.de-en.{language}").write_text("".join(f"{line}\n" for line in lines))
        (folder / f"newstest2017.{language}").write_text(f"{word} 5.\n{'y' * 151}\n{word} 6.\n")
        (folder / "dev").mkdir(exist_ok=True)
        kind = {"de": "src", "en": "ref"}[language]
        (folder / "dev" / f"newstest2016-deen-{kind}.{language}.sgm").write_text(
            f'<doc docid="1">\n<seg id="1">{word} &amp; 1.</seg>\n<seg id="2">{word} 2.</seg>\n</doc>\n')


def test_the_script_makes_shards_and_references(tmp_path):
    write_raw(tmp_path / "raw")
    done = run("--from", tmp_path / "raw", "--out", tmp_path / "out", "--pairs", "50", "--vocabulary", "40",
               "--min-frequency", "5")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "raw" / "valid.en").read_text() == "sentence & 1.\nsentence 2.\n"
    assert (tmp_path / "out" / "raw" / "test.de").read_text() == "Satz 5.\nSatz 6.\n"
    assert len((tmp_path / "out" / "text" / "train.de").read_text().splitlines()) == 50
    assert shards.data_path(tmp_path / "out" / "bin") == str(tmp_path / "out" / "bin" / "0")
    names = {path.name for path in (tmp_path / "out" / "bin" / "0").iterdir()}
    assert {"dict.de.txt", "dict.en.txt", "train.de-en.de.bin", "valid.de-en.en.idx", "test.de-en.en.bin"} <= names
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "raw"]


def run(*arguments):
    return subprocess.run(["bash", SCRIPT, *arguments], capture_output=True, text=True,
                          env={**os.environ, "PYTHON": sys.executable})


@pytest.mark.parametrize(("arguments", "message"), [
    (["--from", "{tmp}"], "europarl-v7.de-en.de: no such file"), (["--from", "absent"], "absent is not a folder"),
    (["--from", "{raw}", "--vocabulary", "4000"], "cannot make 4000 pieces"), (["--form"], "unknown option --form"),
    (["--from", "{raw}", "--pairs", "0"], "expected 1 or more"), (["--pairs"], "--pairs needs a value"),
])
def test_the_script_refuses_in_one_sentence_and_leaves_nothing(tmp_path, arguments, message):
    write_raw(tmp_path / "raw")
    done = run("--out", tmp_path / "out", *[word.format(raw=tmp_path / "raw", tmp=tmp_path) for word in arguments])
    assert done.returncode != 0 and message in done.stderr and len(done.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


def test_altered_downloads_are_refused(tmp_path):
    """A curl that gives files of a folder: the archive of Europarl is right, that of the news test sets is not."""
    write_raw(tmp_path / "raw")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "curl").write_text(f'#!/bin/sh\nfor url; do :; done\ncp {tmp_path}/"${{url##*/}}" "$8"\n')
    (tmp_path / "bin" / "curl").chmod(0o755)
    with tarfile.open(tmp_path / "de-en.tgz", "w:gz") as archive:
        for language in europarl.LANGUAGES:
            archive.add(tmp_path / "raw" / f"europarl-v7.de-en.{language}", f"europarl-v7.de-en.{language}")
    (tmp_path / "test.tgz").write_bytes(b"no archive")
    environment = {**os.environ, "PYTHON": sys.executable, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    for damaged, message in (("test.tgz", "wmt16.tgz is truncated"), ("de-en.tgz", "de-en.tgz is truncated")):
        (tmp_path / damaged).write_bytes(b"no archive")
        done = subprocess.run(["bash", SCRIPT, "--out", tmp_path / "out"], capture_output=True, text=True,
                              env=environment)
        assert done.returncode == 1 and message in done.stderr, done.stderr
        assert not (tmp_path / "out").exists()


def test_what_is_not_aligned_is_refused(tmp_path):
    write_raw(tmp_path / "raw")
    with open(tmp_path / "raw" / "europarl-v7.de-en.de", "a") as stream:
        stream.write("mehr\n")
    with pytest.raises(ValueError, match=r"europarl-v7.de-en.en: ends after line 62, the other side goes on"):
        list(europarl.read_corpus(tmp_path / "raw"))
    (tmp_path / "raw" / "newstest2017.en").write_text("one\n")
    (tmp_path / "raw" / "europarl-v7.de-en.de").write_text("Satz\n")
    (tmp_path / "raw" / "europarl-v7.de-en.en").write_text("sentence\n")
    with pytest.raises(ValueError, match="newstest2017: 3 German and 1 English"):
        europarl.write_raw(tmp_path / "raw", tmp_path / "out", 5, 1)
    with pytest.raises(ValueError, match=r"newstest2018.de: no such file, nor is newstest2018-deen-src.de.sgm"):
        europarl.read_news(tmp_path / "raw", "newstest2018", "de")
