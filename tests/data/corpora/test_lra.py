"""Texts byte by byte from stand-ins of the archives, and the scripts of the arena's tasks."""

from __future__ import annotations

import pytest

from seqstruct.data.corpora.lra import read_pairs
from seqstruct.data.text.byte_symbols import SYMBOLS, spell, unspell
from seqstruct.data.text_classification.folder import read_meta, read_split
from tests.data import scripts
from tests.data.scripts import pack_tar, pack_zip, prepared, read, run


def test_bytes_and_back():
    assert len(set(SYMBOLS)) == 256 and not any(character.isspace() for symbol in SYMBOLS for character in symbol)
    content = bytes(range(256)) + "naïve ▁ <0x20>\n".encode()
    assert unspell(spell(content)) == content and spell(b"a b") == ["a", "<0x20>", "b"]
    with pytest.raises(ValueError, match="expected symbols of bytes, got 'ab'"):
        unspell(["a", "ab"])


def pack_imdb(folder, count=6):
    members = {"aclImdb/README": "", "aclImdb/train/urls_pos.txt": "x", "aclImdb/train/unsup/0_0.txt": "not this"}
    for part in ("train", "test"):
        for label in ("pos", "neg"):
            members |= {f"aclImdb/{part}/{label}/{i}_7.txt": f"{part} {label} {i} é" for i in range(count)}
    pack_tar(folder / "aclImdb_v1.tar.gz", members)


def texts(folder, split):
    meta = read_meta(folder)
    found, labels = read_split(folder, split, meta)
    return [(meta["labels"][label], unspell(words).decode(errors="replace")) for words, label in
            zip(found, labels, strict=True)]


def test_imdb_by_its_script(tmp_path):
    pack_imdb(tmp_path / "raw")
    done = run("imdb", "--from", tmp_path / "raw", "--out", tmp_path / "out", "--unchecked", "--max-length", 11)
    assert done.returncode == 0 and "train: 12 texts, valid: 12 texts, test: 12 texts" in done.stdout, done.stderr
    out = tmp_path / "out"
    assert sorted(texts(out, "train")) == [(of, f"train {of} {i}") for of in ("neg", "pos") for i in range(6)]
    assert texts(out, "valid") == texts(out, "test") and texts(out, "test")[0] == ("neg", "test neg 0 ")
    assert read_meta(out)["validation"] == "the test set" and read_meta(out)["pairs"] is False
    assert [line.split()[0] for line in read(out / "dict.txt")] == list(SYMBOLS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "raw"]


def test_reviews_held_out(tmp_path):
    pack_imdb(tmp_path / "raw")
    for i in range(3):
        words = ["--from", tmp_path / "raw", "--out", tmp_path / f"out{i}", "--unchecked"]
        meta = prepared("imdb", *words, "--valid", 4, "--seed", i % 2)
        assert meta["sentences"] == {"train": 8, "valid": 4, "test": 12}
    splits = [[texts(tmp_path / f"out{i}", split) for split in ("train", "valid")] for i in range(3)]
    assert splits[0] == splits[2] != splits[1]
    assert len({*splits[0][0], *splits[0][1]}) == 12


def test_movie_reviews(tmp_path):
    pack_zip(tmp_path / "raw" / "movie_reviews.zip", {
        f"movie_reviews/{label}/cv{i}.txt": f"{label} {i}\n" for label in ("pos", "neg") for i in range(20)})
    words = ["--corpus", "movie-reviews", "--from", tmp_path / "raw", "--out", tmp_path / "out", "--unchecked"]
    meta = prepared("imdb", *words)
    assert meta["sentences"] == {"train": 32, "valid": 4, "test": 4}
    everything = [text for split in ("train", "valid", "test") for text in texts(tmp_path / "out", split)]
    assert len(set(everything)) == 40 and all(content.startswith(label) for label, content in everything)


def test_real_reviews(reference, tmp_path):
    words = ["--corpus", "movie-reviews", "--from", reference / "data/nltk", "--out", tmp_path / "out"]
    meta = prepared("imdb", *words)
    assert meta["sentences"] == {"train": 1600, "valid": 200, "test": 200}
    found, _ = read_split(tmp_path / "out", "train", meta)
    assert max(map(len, found)) == 4000 and unspell(found[0])


def write_aan(folder):
    folder.mkdir(parents=True)
    for name, count in (("train", 5), ("eval", 3), ("test", 2)):
        rows = [f"{i % 2}.0\tP1\tP{i}\tfirst text {i}\tsecond\\n text {i}" for i in range(count)]
        (folder / f"new_aan_pairs.{name}.tsv").write_text("\n".join(rows) + "\n")


def test_aan_by_its_script(tmp_path):
    write_aan(tmp_path / "raw" / "tsv_data")
    done = run("aan", "--from", tmp_path / "raw", "--out", tmp_path / "out", "--max-length=11")
    assert done.returncode == 0 and "train: 5 pairs, valid: 3 pairs, test: 2 pairs" in done.stdout, done.stderr
    assert texts(tmp_path / "out", "test") == [("0", "first text "), ("1", "first text ")]
    second = [unspell(line.split()) for line in read(tmp_path / "out" / "test.second.txt")]
    assert second == [b"second\\n te", b"second\\n te"] and read_meta(tmp_path / "out")["pairs"] is True
    assert "test.second.txt" in read_meta(tmp_path / "out")["sha256"]


@pytest.mark.parametrize(("line", "message"), [
    (b"1\ta\tb\tc\n", "line 2: 4 fields, expected a label"), (b"2\ta\tb\tc\td\n", "line 2: label b'2', expected"),
])
def test_wrong_pairs(tmp_path, line, message):
    (tmp_path / "x.tsv").write_bytes(b"1\ta\tb\tc\td\n" + line)
    with pytest.raises(ValueError, match=message):
        list(read_pairs(tmp_path / "x.tsv"))
    (tmp_path / "x.tsv").write_bytes(b"")
    with pytest.raises(ValueError, match="the file is empty"):
        list(read_pairs(tmp_path / "x.tsv"))


def test_what_is_missing_or_wrong(tmp_path, capsys):
    out = tmp_path / "out"

    def refusal(*arguments):
        assert scripts.prepare(*arguments, "--out", out) == 1
        (line,) = capsys.readouterr().err.splitlines()
        return line

    assert "nothing is downloaded, --from DIR is needed: the files are part of lra_release.gz" in refusal("aan")
    raw = tmp_path / "raw"
    raw.mkdir()
    assert "new_aan_pairs.train.tsv, new_aan_pairs.eval.tsv, new_aan_pairs.test.tsv" in refusal("aan", "--from", raw)
    assert "aclImdb_v1.tar.gz: no such file; the archive is linked from" in refusal("imdb", "--from", raw)
    pack_imdb(raw)
    assert "aclImdb_v1.tar.gz: SHA-256" in refusal("imdb", "--from", raw)
    with pytest.raises(ValueError, match="imdb: the train set has 12 reviews, expected 25000"):
        (raw / "deep").mkdir()
        from seqstruct.data.corpora import lra
        lra.check_counts("imdb", {"train": 12, "test": 12}, lra.COUNTS["imdb"], "reviews")
    words = ("imdb", "--from", raw, "--unchecked")
    assert "valid: expected 0 to 10 reviews, got 11" in refusal(*words, "--valid", 11)
    assert "max_length: expected 1 or more, got 0" in refusal(*words, "--max-length", 0)
    (raw / "aclImdb_v1.tar.gz").write_bytes((raw / "aclImdb_v1.tar.gz").read_bytes()[:200])
    assert "aclImdb_v1.tar.gz: truncated or altered" in refusal(*words)
    write_aan(raw / "tsv")
    (raw / "tsv" / "new_aan_pairs.test.tsv").write_text("1\ta\tb\t\ttext\n")
    assert "test, sentence 1 is empty" in refusal("aan", "--from", raw)
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


def test_listops_by_its_script(tmp_path):
    words = ["--lengths", "5:30", "--train", "9", "--valid=3", "--test", "2", "--out", tmp_path / "out"]
    done = run("listops", *words)
    assert done.returncode == 0 and "9 train, 3 valid, 2 test formulas of 5 to 30 tokens" in done.stdout, done.stderr
