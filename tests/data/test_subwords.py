import pytest

from seqstruct.data import subwords

GERMAN = ["Ein Mann läuft über die Straße.", "Zwei Hunde spielen im Schnee.", "Ein Hund läuft durch den Schnee."]
ENGLISH = ["A man isn't walking (today).", "Two dogs play in the snow.", 'He said: "no", she didn\'t & left | now.']


def test_spaces_of_every_kind_become_one():
    assert subwords.normalize_spaces(" a\u00a0b\u2028c\t d\r") == "a b c d"


@pytest.mark.parametrize(("language", "lines"), [("de", GERMAN), ("en", ENGLISH)])
def test_moses_there_and_back(language, lines):
    tokenize, detokenize = subwords.moses_tokenizer(language), subwords.moses_detokenizer(language)
    tokens = [tokenize(line) for line in lines]
    assert tokens != lines
    assert not any("&amp;" in t or "&apos;" in t for t in tokens)
    assert [detokenize(t) for t in tokens] == lines


def test_bpe_aims_at_its_vocabulary_and_is_undone(tmp_path):
    lines = [subwords.moses_tokenizer("de")(line) for line in GERMAN]
    characters = {(c, i + 1 == len(w)) for line in lines for w in line.split() for i, c in enumerate(w)}
    subwords.learn_bpe(lines, tmp_path / "codes", len(characters) + 7)
    assert len((tmp_path / "codes").read_text(encoding="utf-8").splitlines()) == 1 + 7
    apply = subwords.load_bpe(tmp_path / "codes")
    cut = [apply(line) for line in lines]
    assert any("@@" in line for line in cut)
    assert [subwords.undo_bpe(line) for line in cut] == lines


def test_bpe_learns_the_most_frequent_pair_first(tmp_path):
    subwords.learn_bpe(["low low low", "lot lot"], tmp_path / "codes", 7)
    assert (tmp_path / "codes").read_text(encoding="utf-8").splitlines()[1] == "l o"


def test_bpe_is_deterministic(tmp_path):
    for name in ("a", "b"):
        subwords.learn_bpe(GERMAN, tmp_path / name, 60)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize(("lines", "vocabulary", "match"), [
    (["ab ab", "abc"], 4, "more than the text's 4 characters, got 4"),
    (["a b", ""], 100, "nothing to learn from"),
    ([], 100, "nothing to learn from"),
])
def test_bpe_refuses(tmp_path, lines, vocabulary, match):
    with pytest.raises(ValueError, match=match):
        subwords.learn_bpe(lines, tmp_path / "codes", vocabulary)
    assert list(tmp_path.iterdir()) == []


def test_undo_bpe_drops_a_marker_left_at_the_end():
    assert subwords.undo_bpe("Sch@@ nee im Wa@@") == "Schnee im Wa"


def test_sentencepiece_there_and_back(tmp_path):
    lines = GERMAN + ENGLISH + ["½ … ﬁ stay as they are"]
    for name in ("a", "b"):
        subwords.learn_sentencepiece(lines, tmp_path / name, 65)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    apply = subwords.load_sentencepiece(tmp_path / "a")
    cut = [apply(line) for line in lines]
    assert all(line.startswith("\u2581") for line in cut)
    assert [subwords.undo_sentencepiece(line) for line in cut] == lines


def test_sentencepiece_refuses_an_impossible_vocabulary(tmp_path):
    with pytest.raises(ValueError, match="cannot make 9000 pieces"):
        subwords.learn_sentencepiece(GERMAN, tmp_path / "model", 9000)
    assert list(tmp_path.iterdir()) == []
