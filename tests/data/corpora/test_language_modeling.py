"""Language modeling corpora: what is read, cut down, counted, binarised and refused."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile

import pytest
from fairseq.data import Dictionary, data_utils

from seqstruct.data.corpora import language_modeling as corpora
from seqstruct.data.corpora.language_modeling import NUMBER, TextOptions, clean, read_lines
from seqstruct.data.text.subwords import undo_bpe
from tests.data import scripts
from tests.data.scripts import pack_damaged_zip, pack_zip, prepared, refused, run

PTB = {"train": " the cat <unk> N \n the dog \n", "valid": " the cat \n", "test": " a cat \n"}


def write_ptb(folder, texts=PTB):
    folder.mkdir(exist_ok=True)
    for split, text in texts.items():
        (folder / f"ptb.{split}.txt").write_text(text)
    return folder


def test_numbers():
    assert [w for w in "1961 3.5 $5.50 50% 1/2 '60 12th B-52 N -- . 't".split() if NUMBER.fullmatch(w)] == [
        "1961", "3.5", "$5.50", "50%", "1/2", "'60",
    ]


def test_folder_of_ptb(tmp_path):
    out = ["--out", tmp_path / "out", "--unchecked"]
    summary = prepared("ptb", "--from", write_ptb(tmp_path / "raw"), *out)
    assert summary["counts"]["train"] == {"lines": 2, "words": 6}
    assert (tmp_path / "out/text/train.txt").read_text() == "the cat <unk> N\nthe dog\n"
    assert json.loads((tmp_path / "out/corpus.json").read_text()) == summary
    dictionary = Dictionary.load(str(tmp_path / "out/bin/dict.txt"))
    assert sorted(dictionary.symbols[4:]) == ["N", "cat", "dog", "the"]
    found = data_utils.load_indexed_dataset(str(tmp_path / "out/bin/train"), dictionary)
    expected = [dictionary.index(w) for w in "the cat <unk> N </s>".split()]
    assert found[0].tolist() == expected and dictionary.unk() in expected
    (test,) = data_utils.load_indexed_dataset(str(tmp_path / "out/bin/test"), dictionary)
    assert test.tolist() == [dictionary.unk(), dictionary.index("cat"), dictionary.eos()]


def test_archives_are_read(tmp_path):
    with tarfile.open(tmp_path / "simple-examples.tgz", "w:gz") as archive:
        for split, text in PTB.items():
            entry = tarfile.TarInfo(f"./simple-examples/data/ptb.{split}.txt")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    assert list(read_lines("ptb", tmp_path, tmp_path / "a")["train"]) == ["the cat <unk> N", "the dog"]
    with zipfile.ZipFile(tmp_path / "wikitext-2-raw-v1.zip", "w") as archive:
        for split in corpora.SPLITS:
            archive.writestr(f"wikitext-2-raw/wiki.{split}.raw", " \n = Title = \n")
    assert [*read_lines("wikitext2", tmp_path, tmp_path / "b")["valid"]] == ["", "= Title ="]
    (tmp_path / "simple-examples.tgz").write_bytes((tmp_path / "simple-examples.tgz").read_bytes()[:60])
    with pytest.raises(ValueError, match="simple-examples.tgz: truncated or altered"):
        read_lines("ptb", tmp_path, tmp_path / "c")


def write_brown(folder):
    with zipfile.ZipFile(folder / "brown.zip", "w") as archive:
        for number in range(40):
            archive.writestr(f"brown/ca{number:02}", f"\n\n\tDocument/nn {number}/cd km\\/h/nn ./.\n\n")
        archive.writestr("brown/cats.txt", "ca00 news\n")


def test_brown_documents_are_dealt_out(tmp_path):
    write_brown(tmp_path)
    lines = read_lines("brown", tmp_path, tmp_path, checked=False)
    assert {split: len(of) for split, of in lines.items()} == {"train": 36, "valid": 2, "test": 2}
    assert lines["valid"] == ["Document 18 km\\/h .", "Document 38 km\\/h ."]
    assert lines["train"][:2] == ["Document 0 km\\/h .", "Document 20 km\\/h ."]
    with pytest.raises(ValueError, match="SHA-256"):
        read_lines("brown", tmp_path, tmp_path)
    pack_damaged_zip(tmp_path / "brown.zip", "brown/ca01")
    with pytest.raises(ValueError, match="brown.zip: truncated or altered"):
        read_lines("brown", tmp_path, tmp_path, checked=False)


def test_options(tmp_path):
    assert list(clean(["The B-52 of 1961", "", "A"], TextOptions(lowercase=True, skip_empty=True))) == [
        "the b-52 of N", "a",
    ]
    write_brown(tmp_path)
    words = ["brown", "--from", str(tmp_path), "--out", str(tmp_path / "out"), "--unchecked"]
    assert scripts.prepare(*words, "--vocabulary", "7", "--train-lines", "5") == 0
    summary = json.loads((tmp_path / "out/corpus.json").read_text())
    assert summary["counts"]["train"]["lines"] == 5 and summary["options"]["lowercase"] is True
    assert (tmp_path / "out/text/train.txt").read_text().startswith("document N km\\/h .\n")
    assert len(Dictionary.load(str(tmp_path / "out/bin/dict.txt"))) == 7
    with pytest.raises(ValueError, match="min_count: expected 1 or more, got 0"):
        TextOptions(min_count=0)


def test_subwords(tmp_path):
    words = ["--subwords", "bpe", "--vocabulary", 60]
    assert scripts.prepare("brown", "--made-up", *words, "--out", tmp_path / "out") == 0
    (first, *_) = scripts.read(tmp_path / "out/text/train.txt")
    assert "@@ " in first and undo_bpe(first).startswith("word0 word1 word2 ")
    assert (tmp_path / "out/codes.bpe").is_file()


def test_wrong_input(tmp_path, capsys):
    raw = write_ptb(tmp_path / "raw")
    words = ["ptb", "--from", raw, "--out", tmp_path / "out"]
    with pytest.raises(ValueError, match="train set has 2 lines and 6 words, expected 42068 and 887521"):
        prepared(*words)
    (raw / "ptb.valid.txt").write_bytes(b"the cat\nthe \xff\n")
    with pytest.raises(ValueError, match="ptb.valid.txt: not UTF-8 after line 0"):
        prepared(*words, "--unchecked")
    (raw / "ptb.valid.txt").write_text("\n")
    with pytest.raises(ValueError, match="no words in the valid set"):
        prepared(*words, "--unchecked")
    (raw / "ptb.valid.txt").unlink()
    assert scripts.prepare("ptb", "--from", raw, "--out", tmp_path / "out") == 1
    assert "ptb.valid.txt: no such file, nor is it in simple-examples.tgz beside it" in capsys.readouterr().err
    assert not (tmp_path / "out").exists() and not list(tmp_path.glob(".*"))


def test_wikitext103_by_its_script(tmp_path):
    """<unk> of the text is the dictionary's unknown word."""
    members = {f"wikitext-103/wiki.{s}.tokens": f" \n = Title = \n \n the {s} <unk> @-@ \n" for s in corpora.SPLITS}
    pack_zip(tmp_path / "raw" / "wikitext-103-v1.zip", members)
    words = ["--from", tmp_path / "raw", "--out", tmp_path / "out"]
    assert "wikitext-103-v1.zip: SHA-256" in refused("wikitext103", *words)
    done = run("wikitext103", *words, "--unchecked")
    assert done.returncode == 0, done.stderr
    dictionary = Dictionary.load(str(tmp_path / "out/bin/dict.txt"))
    assert sorted(dictionary.symbols[4:]) == ["=", "@-@", "Title", "the", "train"]
    data = data_utils.load_indexed_dataset(str(tmp_path / "out/bin/train"), dictionary)
    assert [len(row) for row in data] == [1, 4, 1, 5] and dictionary.unk() in data[3].tolist()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "raw"]
    for split, text in members.items():
        (tmp_path / "raw" / split.rpartition("/")[2]).write_text(text)
    (tmp_path / "raw" / "wikitext-103-v1.zip").unlink()
    with pytest.raises(ValueError, match="train set has 4 lines and 7 words, expected 1801350 and 101425671"):
        prepared("wikitext103", "--from", tmp_path / "raw", "--out", tmp_path / "again")


def test_downloads_resume_and_licences(tmp_path):
    out = tmp_path / "out"
    assert "nothing is downloaded, --from DIR is needed: the text is licensed" in refused("ptb", "--out", out)
    (tmp_path / "out.downloads").mkdir()
    (tmp_path / "out.downloads" / "wikitext-2-raw-v1.zip.part").write_bytes(b"half")
    message = refused("wikitext2", "--out", out)
    assert message.count("could not be downloaded") == 2 and "get wikitext-2-raw-v1.zip elsewhere" in message
    assert [path.name for path in tmp_path.rglob("*")] == ["out.downloads", "wikitext-2-raw-v1.zip.part"]


def test_real_files(reference):
    """The validation and test files of WikiText-2 are those whose counts are checked; Brown has its checksum."""
    for split in ("valid", "test"):
        text = (reference / "data/wikitext-2-raw" / f"wiki.{split}.raw").read_text("utf-8")
        assert (text.count("\n"), len(text.split())) == corpora.COUNTS["wikitext2"][split]
    lines = read_lines("brown", reference / "data/nltk", reference)
    assert {split: len(of) for split, of in lines.items()} == {"train": 51752, "valid": 2747, "test": 2841}
