"""Test sets of <seg> elements."""

from __future__ import annotations

import gzip

import pytest

from seqstruct.data.text.segments import news_archive, read_aligned_segments, read_news, read_segments

TEXT = """<?xml version="1.0"?>
<refset><doc sysid="ref" docid="1"><title>no</title>
<p><seg id="1"> A &lt;b&gt; &#246;
 c</seg></p></doc>
<DOC docid="2"><hl><SEG id="1"></SEG></hl></DOC></refset>
"""


@pytest.mark.parametrize("name", ["x.sgm", "x.xml", "x.sgm.gz"])
def test_sentences_and_documents(tmp_path, name):
    content = TEXT.encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert list(read_segments(tmp_path / name)) == [None, "A <b> \u00f6\n c", None, ""]


def test_plain_text_and_nothing(tmp_path):
    (tmp_path / "x.de").write_text("a <seg> &amp;\n\nb\n")
    assert list(read_segments(tmp_path / "x.de")) == ["a <seg> &amp;", "", "b"]
    (tmp_path / "x.sgm").write_text("<doc></doc>")
    with pytest.raises(ValueError, match="x.sgm: expected <seg> elements, found none"):
        list(read_segments(tmp_path / "x.sgm"))
    (tmp_path / "x.sgm").write_bytes(b"<seg>a</seg>\n<seg>\xff</seg>")
    with pytest.raises(ValueError, match="x.sgm: not UTF-8 after line"):
        list(read_segments(tmp_path / "x.sgm"))


def test_sides(tmp_path):
    (tmp_path / "a.xml").write_text("<doc><seg>1</seg><seg>2</seg></doc><doc><seg>3</seg></doc>")
    (tmp_path / "b.xml").write_text("<doc><seg>x</seg><seg>y</seg></doc><doc><seg>z</seg></doc>")
    files = {"set.de": tmp_path / "a.xml", "set.en": tmp_path / "b.xml"}
    found = [None, ("1", "x"), ("2", "y"), None, ("3", "z")]
    assert list(read_aligned_segments(files, "set", ("de", "en"))) == found
    assert list(read_news(files, "set", ("en", "de"))) == [("x", "1"), ("y", "2"), ("z", "3")]
    (tmp_path / "b.xml").write_text("<doc><seg>x</seg></doc><doc><seg>y</seg><seg>z</seg></doc>")
    with pytest.raises(ValueError, match=r"a\.xml has 3 sentences, .*b\.xml has 3 .*, or documents at other places"):
        list(read_news(files, "set", ("de", "en")))


def test_archives_of_news_are_those_of_sacrebleu_with_what_corpora_want():
    """The members that sacreBLEU reads out of each archive are among the names that our corpora look for."""
    from sacrebleu.dataset import DATASETS

    from seqstruct.data.corpora import europarl
    from seqstruct.data.corpora.wmt import VARIANTS

    found = [corpus for variants in VARIANTS.values() for corpus in variants.corpora.values()]
    wmt = {corpus.name: corpus.wanted for corpus in found}
    for archive, pair, wanted in (
        ("wmt13", "de-en", wmt["wmt14-en-de"]), ("wmt14/full", "de-en", wmt["wmt14-en-de"]),
        ("wmt13", "fr-en", wmt["wmt14-en-fr"]), ("wmt14/full", "fr-en", wmt["wmt14-en-fr"]),
        ("wmt16/dev", "ro-en", wmt["wmt16-en-ro"]), ("wmt16", "ro-en", wmt["wmt16-en-ro"]),
        ("wmt16", "de-en", europarl.WANTED), ("wmt17", "de-en", europarl.WANTED),
    ):
        names = {name for choices in wanted.values() for name in choices}
        assert {member.rsplit("/", 1)[-1] for member in DATASETS[archive].langpairs[pair]} <= names, archive
        remote = news_archive(archive)
        assert remote.address in DATASETS[archive].data and len(remote.checksum) == 32 and remote.file.endswith(".tgz")
