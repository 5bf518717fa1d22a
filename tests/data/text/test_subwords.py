import re
import zipfile

import pytest

from seqstruct.data.text import subwords
from seqstruct.data.text.aligned import read_lines

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


def test_bpe_says_where_the_text_has_no_more(tmp_path, capsys):
    subwords.learn_bpe(["low low low"], tmp_path / "codes", 50)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "subwords: 5 of 50: no other pair of symbols occurs twice\n")
    subwords.learn_bpe(["low low low"], tmp_path / "codes", 5)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("lines", "vocabulary", "match"), [
    (["ab ab", "abc"], 4, "more than the text's 4 characters, got 4"),
    (["a b", ""], 100, "nothing to learn from"),
    ([], 100, "nothing to learn from"),
    (["dog cat", "bird fish"], 60, "nothing to learn from: no pair of symbols occurs twice"),
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


def test_sentencepiece_leaves_long_lines_out_and_says_so(tmp_path, capsys):
    said = {4192: "", 4193: "subwords: not learned from 1 lines of more than 4,192 bytes\n"}
    for length, sentence in said.items():
        lines = ["q" * length, *["ab ba", "abba ab"] * 3]
        subwords.learn_sentencepiece(lines, tmp_path / str(length), 8, "bpe")
        assert capsys.readouterr().err == sentence
    assert subwords.load_sentencepiece(tmp_path / "4192")("qq") == "\u2581 qq"
    assert subwords.load_sentencepiece(tmp_path / "4193")("ab") == "\u2581ab"


def test_sentencepiece_refuses_an_impossible_vocabulary(tmp_path):
    with pytest.raises(ValueError, match="cannot make 9000 pieces"):
        subwords.learn_sentencepiece(GERMAN, tmp_path / "model", 9000)
    assert list(tmp_path.iterdir()) == []


MULTILINGUAL = [
    "Ein Mann läuft über die Straße.", "Deux chiens jouent dans la neige, n'est-ce pas ?", "彼は京都へ行きました。",
    "Он читает «книгу» — вслух…", "कुत्ता दौड़ता है", "الكلب يركض", "Một con chó đang chạy", "naïve café: e\u0301 é",
    "emoji 👩‍🚀 and 😀", "a<B>b <B>c <M> <E> <unk> @@ x@@ @@y", "½ ﬁ ｆｕｌｌ　width",
]


def appliers(lines, folder, pieces):
    """By kind, the function that cuts and the one that undoes it, learnt from these lines."""
    subwords.learn_bpe(lines, folder / "codes", 250)
    for algorithm in ("unigram", "bpe"):
        subwords.learn_sentencepiece(lines, folder / algorithm, pieces, algorithm)
    subwords.learn_words(lines, folder / "words", 20)
    return {
        "bpe": (subwords.load_bpe(folder / "codes"), subwords.undo_bpe),
        "sentencepiece": (subwords.load_sentencepiece(folder / "unigram"), subwords.undo_sentencepiece),
        "sentencepiece-bpe": (subwords.load_sentencepiece(folder / "bpe"), subwords.undo_sentencepiece),
        "mixed": (subwords.load_mixed(folder / "words"), subwords.undo_mixed),
        "characters": (subwords.cut_characters, subwords.undo_sentencepiece),
    }


def test_every_kind_is_lossless_on_many_languages(tmp_path):
    lines = [subwords.normalize_spaces(line) for line in MULTILINGUAL]
    found = appliers(lines, tmp_path, 119)
    assert set(found) == set(subwords.KINDS) - {"words"}
    unseen = ["Zwölf Boxkämpfer jagen", "犬 が 走る", "<M>x <E>", "x"]
    for cut, undo in found.values():
        for line in lines + unseen:
            line = line.replace("@@", "++") if undo is subwords.undo_bpe else line
            assert undo(cut(line)) == line


@pytest.mark.parametrize("name", ["multi30k", "brown"])
def test_every_kind_is_lossless_on_real_text(reference, tmp_path, name):
    if name == "multi30k":
        files = sorted((reference / "data" / "multi30k").glob("test_2016_flickr.*.gz"))
        lines = [line for path in files for line in read_lines(path)]
    else:
        with zipfile.ZipFile(reference / "data" / "nltk" / "brown.zip") as archive:
            text = archive.read("brown/ca01").decode() + archive.read("brown/cr09").decode()
        lines = [re.sub(r"/\S+", "", line) for line in text.splitlines() if line.strip()]
    lines = [subwords.normalize_spaces(line) for line in lines]
    for cut, undo in appliers(lines[::3], tmp_path, 300).values():
        assert [undo(cut(line)) for line in lines] == lines


def test_mixed_words_and_characters(tmp_path):
    subwords.learn_words(["b a b a c a <B>x <B>x <B>x <B>x"], tmp_path / "words", 3)
    assert (tmp_path / "words").read_text().splitlines() == ["<B>x", "a", "b"]
    cut = subwords.load_mixed(tmp_path / "words")
    assert cut("a Miki c <B>x") == "a <B>M <M>i <M>k <E>i <B>c <B>< <M>B <M>> <E>x"
    assert subwords.undo_mixed(cut("a Miki c <B>x")) == "a Miki c <B>x"
    assert subwords.load_words(tmp_path / "words")("a Miki b") == "a <unk> b"
    with pytest.raises(ValueError, match="nothing to learn from"):
        subwords.learn_words([""], tmp_path / "none", 3)


def test_what_a_model_may_write_is_undone_somehow():
    assert subwords.undo_mixed("<M>a <M>b <E>c <E>d e <M>f <B>g") == "abc d e f g"


def test_characters():
    assert subwords.cut_characters("Ein A") == "▁ E i n ▁ A"
    assert subwords.undo_sentencepiece("▁ E i n ▁ A") == "Ein A"


def test_beginnings_of_sentences_take_the_form_that_stands_elsewhere(tmp_path):
    text = ["The cat saw the Hague .", "IBM and the BBC saw Paris . Paris saw IBM", "a a A"]
    truecase = subwords.learn_truecase(text, tmp_path / "model")
    assert truecase("The HAGUE is The Hague . PARIS saw The Cat") == "the Hague is the Hague . Paris saw the cat"
    assert truecase("Unseen words") == "Unseen words" and truecase("ibm . cat") == "IBM . cat"
    assert truecase("( The x<y A") == "( The x<y A", "not taken apart"
    assert truecase("A \u00e9") == "a \u00e9" and truecase("") == ""
    subwords.learn_truecase(text, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    (tmp_path / "other").touch()
    assert (tmp_path / "model").stat().st_mode == (tmp_path / "other").stat().st_mode, "readable by others"
