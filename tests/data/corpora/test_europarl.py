"""Europarl and the news test sets: what is read, what passes, what is drawn, and what is written."""

from __future__ import annotations

import pytest

from seqstruct.data import shards
from seqstruct.data.corpora import europarl
from seqstruct.data.downloads import collect
from tests.data.scripts import pack_tar, refused, run


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
    done = run("europarl", "--from", tmp_path / "raw", "--out", tmp_path / "out", "--pairs", "50", "--vocabulary", "40",
               "--min-frequency", "5")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "raw" / "valid.en").read_text() == "sentence & 1.\nsentence 2.\n"
    assert (tmp_path / "out" / "raw" / "test.de").read_text() == "Satz 5.\nSatz 6.\n"
    assert len((tmp_path / "out" / "text" / "train.de").read_text().splitlines()) == 50
    assert shards.data_path(tmp_path / "out" / "bin") == str(tmp_path / "out" / "bin" / "0")
    names = {path.name for path in (tmp_path / "out" / "bin" / "0").iterdir()}
    assert {"dict.de.txt", "dict.en.txt", "train.de-en.de.bin", "valid.de-en.en.idx", "test.de-en.en.bin"} <= names
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "raw"]


@pytest.mark.parametrize(("arguments", "message"), [
    (["--from", "{tmp}/raw/dev"], "missing, as files or in archives: europarl-v7.de-en.de, europarl-v7.de-en.en,"),
    (["--from", "{raw}", "--vocabulary", "4000"], "cannot make 4000 pieces"),
    (["--from", "{raw}", "--pairs", "0"], "expected 1 or more"),
])
def test_the_script_refuses_in_one_sentence_and_leaves_nothing(tmp_path, arguments, message):
    write_raw(tmp_path / "raw")
    message_found = refused(
        "europarl", "--out", tmp_path / "out", *[word.format(raw=tmp_path / "raw", tmp=tmp_path) for word in arguments])
    assert message in message_found
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


def test_altered_downloads_are_refused(tmp_path):
    """Europarl has been downloaded before, a test set not wholly."""
    write_raw(tmp_path / "raw")
    kept = tmp_path / "out.downloads"
    pack_tar(kept / "de-en.tgz", {f"europarl-v7.de-en.{of}": "x\n" for of in europarl.LANGUAGES})
    (kept / "wmt16.tgz").write_bytes(b"no archive")
    assert "wmt16.tgz: MD5" in refused("europarl", "--out", tmp_path / "out")
    assert (kept / "SHA256SUMS").read_text().endswith("  de-en.tgz\n")
    (kept / "de-en.tgz").write_bytes(b"no archive")
    assert "de-en.tgz: SHA-256" in refused("europarl", "--out", tmp_path / "out")
    (kept / "wmt16.tgz").rename(kept / "wmt16.tgz.part")
    (kept / "SHA256SUMS").unlink()
    assert "wmt16/translation-task/test.tgz could not be downloaded" in refused("europarl", "--out", tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.downloads", "raw"]


def test_archives_serve_too(tmp_path):
    write_raw(tmp_path / "raw")
    members = {path.name: path.read_bytes() for path in (tmp_path / "raw").rglob("*") if path.is_file()}
    pack_tar(tmp_path / "packed" / "all.tgz", members)
    for source, name in (("raw", "a"), ("packed", "b")):
        files = collect(tmp_path / source, europarl.WANTED, tmp_path / name)
        europarl.write_raw(files, tmp_path / name / "text", 13, 1)
    for path in (tmp_path / "a" / "text").iterdir():
        assert path.read_text() == (tmp_path / "b" / "text" / path.name).read_text()


def test_what_is_not_aligned_is_refused(tmp_path):
    write_raw(tmp_path / "raw")
    files = collect(tmp_path / "raw", europarl.WANTED, tmp_path / "scratch")
    with open(tmp_path / "raw" / "europarl-v7.de-en.de", "a") as stream:
        stream.write("mehr\n")
    with pytest.raises(ValueError, match="line 63 has no counterpart: .*europarl-v7.de-en.en ends after line 62"):
        europarl.write_raw(files, tmp_path / "out", 5, 1)
    (tmp_path / "raw" / "newstest2017.en").write_text("one\n")
    (tmp_path / "raw" / "europarl-v7.de-en.de").write_text("Satz\n")
    (tmp_path / "raw" / "europarl-v7.de-en.en").write_text("sentence\n")
    with pytest.raises(ValueError, match="newstest2017.de has 3 sentences, .*newstest2017.en has 1 sentences"):
        europarl.write_raw(files, tmp_path / "out", 5, 1)
    sgm = next((tmp_path / "raw").rglob("newstest2016*.sgm"))
    sgm.write_text("<doc></doc>")
    with pytest.raises(ValueError, match=f"{sgm.name}: expected <seg> elements, found none"):
        europarl.write_raw(files, tmp_path / "out", 5, 1)
