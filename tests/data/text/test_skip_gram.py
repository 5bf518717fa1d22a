"""`seqstruct prepare word-vectors`: the same text has the same vectors, like words are alike, what is refused."""

from __future__ import annotations

import gzip
import json
import random
import sys
import zipfile

import numpy as np
import pytest

from seqstruct.cli import main
from seqstruct.data.files import sha256
from seqstruct.data.text.skip_gram import LONGEST, sentences
from seqstruct.data.text.word_vectors import read_vectors

try:
    import gensim
except ImportError:
    gensim = None

needed = pytest.mark.skipif(gensim is None, reason="gensim is not installed (extra `vectors`)")
KINDS = (("cat", "dog", "cow"), ("one", "two", "ten"))


@pytest.fixture
def text(tmp_path):
    """Sentences whose words are of one kind alone."""
    draw = random.Random(1)
    lines = [" ".join(draw.choices(draw.choice(KINDS), k=6)) for _ in range(3000)]
    path = tmp_path / "text"
    path.write_text("".join(f"{line}\n" for line in [*lines, "rare"]))
    return path


def prepare(out, *words):
    return main(["prepare", "word-vectors", *map(str, words), "--out", str(out)])


@needed
def test_words_of_a_kind_are_alike_and_the_same_text_has_the_same_vectors(text, tmp_path, capsys):
    for name, seed in (("first", 1), ("again", 1), ("other", 2)):
        assert prepare(tmp_path / name, text, "--size", 7, "--epochs", 20, "--seed", seed) == 0
    first, again, other = ((tmp_path / name / "vectors.txt").read_text() for name in ("first", "again", "other"))
    assert first == again != other
    found = read_vectors(tmp_path / "first" / "vectors.txt")
    assert found.keys() == {word for kind in KINDS for word in kind}, "what stands once has no vector"
    unit = {word: vector / np.linalg.norm(vector) for word, vector in found.items()}
    for kind, others in (KINDS, KINDS[::-1]):
        inside = min(unit[a] @ unit[b] for a in kind for b in kind)
        assert inside > max(unit[a] @ unit[b] for a in kind for b in others) + 0.3
    assert "18001 words of text: vectors of 6 words" in capsys.readouterr().out
    about = json.loads((tmp_path / "first" / "vectors.json").read_text())
    assert (about["size"], about["words"], about["texts"]) == (7, 6, [["text", sha256(text)]])


def test_texts_are_files_plain_or_packed(tmp_path):
    lines, expected = "a b\n\n c \n", [["a", "b"], ["c"]]
    (tmp_path / "plain").write_text(lines)
    (tmp_path / "packed.gz").write_bytes(gzip.compress(lines.encode()))
    with zipfile.ZipFile(tmp_path / "several.zip", "w") as archive:
        archive.writestr("README", "no text")
        archive.writestr("one/first.txt", "\ufeffa b\n\n")
        archive.writestr("two/second.txt", " c ")
    for name in ("plain", "packed.gz", "several.zip"):
        assert list(sentences(tmp_path / name)) == expected
    (tmp_path / "broken.zip").write_bytes((tmp_path / "several.zip").read_bytes()[:90])
    with pytest.raises(ValueError, match="broken.zip: truncated or altered"):
        list(sentences(tmp_path / "broken.zip"))


def test_no_word_of_a_text_in_one_line_is_lost(tmp_path):
    (tmp_path / "line").write_text("a b c " * LONGEST)
    found = list(sentences(tmp_path / "line"))
    assert list(map(len, found)) == [LONGEST] * 3 and sum(found, []) == ["a", "b", "c"] * LONGEST


def test_refusals(text, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    if gensim is not None:
        assert prepare(out, text, "--min-count", 9999) == 1
        assert "no word stands 9999 times in the text" in capsys.readouterr().err
        assert prepare(out, tmp_path / "none") == 1
        assert "none: no such file" in capsys.readouterr().err
    assert prepare(out, text, "--size", 0) == 1
    assert "size is at least 1, not 0" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    assert prepare(out, text) == 1
    assert "word-vectors needs gensim: pip install 'seqstruct[vectors]'" in capsys.readouterr().err
    assert not out.exists()
