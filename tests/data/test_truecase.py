"""Truecasing: sentence beginnings take the form that stands elsewhere."""

from __future__ import annotations

from seqstruct.data.truecase import learn_truecase, load_truecase, starts


def test_where_sentences_begin():
    assert starts("\" The cat . ( A dog ) : it".split()) == [1, 5, 9]
    assert starts([]) == [] and starts(["."]) == [0]


def test_beginnings_take_the_most_frequent_form(tmp_path):
    text = ["The cat saw the Hague .", "IBM and the BBC saw Paris . Paris saw IBM", "« A The", "a a A"]
    learn_truecase(text, tmp_path / "model")
    truecase = load_truecase(tmp_path / "model")
    assert truecase("The HAGUE is The Hague . PARIS saw The Cat") == "the HAGUE is The Hague . Paris saw The Cat"
    assert truecase("Unseen words") == "Unseen words" and truecase("ibm . cat") == "IBM . cat"
    assert truecase("A \u00e9") == "a \u00e9"
    learn_truecase(text, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
