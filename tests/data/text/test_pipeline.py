import json
import random
import shutil

import pytest

from seqstruct.data.made_up.translation import made_up_pairs
from seqstruct.data.registry import find
from seqstruct.data.text import parallel
from seqstruct.data.text.aligned import read_lines
from seqstruct.data.text.parallel import SubwordOptions
from seqstruct.data.text.pipeline import TextPipeline, find_description, read_pipeline
from tests.data.scripts import prepared

LANGUAGES = ("de", "en")


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    """Prefixes of made-up pairs, some with spaces and escapes that preparation changes."""
    folder, generator = tmp_path_factory.mktemp("raw"), random.Random(5)
    prefixes = {}
    for split, count in {"train": 60, "valid": 7, "test": 5}.items():
        prefixes[split] = folder / split
        pairs = [*made_up_pairs(count, generator), ("Das  ist \u00bbgut\u00ab, nicht?", "That 's fine, isn&apos;t it?")]
        for side, language in enumerate(LANGUAGES):
            (folder / f"{split}.{language}").write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    return prefixes


@pytest.mark.parametrize(
    "options",
    [
        {"subwords": "bpe", "vocabulary": 90},
        {"subwords": "bpe", "vocabulary": (70, 60), "truecase": True, "escapes": "undo"},
        {"subwords": "words", "vocabulary": 20, "lowercase": True},
        {"subwords": "mixed", "vocabulary": 20, "truecase": True},
        {"subwords": "sentencepiece", "vocabulary": 60},
        {"subwords": "sentencepiece-bpe", "vocabulary": 75, "min_frequency": 2},
        {"subwords": "characters"},
        {"subwords": ("words", "sentencepiece"), "vocabulary": (20, 45)},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_a_sentence_is_cut_as_its_corpus_is_and_comes_back(raw, tmp_path, options):
    options = SubwordOptions(LANGUAGES, **options)
    parallel.prepare(raw, options, tmp_path / "out")
    shutil.copytree(tmp_path / "out", tmp_path / "out" / "bin" / "elsewhere")
    for side, language in enumerate(LANGUAGES):
        pipeline = read_pipeline(tmp_path / "out" / "bin", language)
        sentences = list(read_lines(tmp_path / "out" / "raw" / f"test.{language}"))
        tokens = [line.split() for line in read_lines(tmp_path / "out" / "text" / f"test.{language}")]
        assert [pipeline.encode(sentence) for sentence in sentences] == tokens
        if options.kinds[side] != "words":
            back = [pipeline.decode(line) for line in tokens]
            assert [pipeline.encode(sentence) for sentence in back] == tokens
            assert back[:5] == sentences[:5]
        again = tmp_path / "again" / language
        again.mkdir(parents=True)
        for path in pipeline.files:
            shutil.copy(path, again)
        assert read_pipeline(again, language).encode(sentences[-1]) == tokens[-1]
        assert pipeline.encode("") == pipeline.encode(" \t ") == []


def test_romanian_letters_are_those_of_training(tmp_path):
    find("wmt16").write_made_up(tmp_path / "from")
    prepared("wmt16", "--from", tmp_path / "from", "--unchecked", "--vocabulary", 60, "--out", tmp_path / "out")
    pipeline = read_pipeline(tmp_path / "out" / "bin", "ro")
    assert pipeline.encode("Şi ţara") == pipeline.encode("Și țara")
    assert pipeline.decode(pipeline.encode("Şi ţara")) == "Și țara"
    assert read_pipeline(tmp_path / "out" / "bin", "en").encode("Ş") == ["Ş"]


def test_words_and_characters_of_pairs(tmp_path):
    find("multi30k-words").write_made_up(tmp_path / "from")
    prepared("multi30k-words", "--from", tmp_path / "from", "--unchecked", "--out", tmp_path / "out", "--source-units",
             "characters", "--lowercase")
    for language in LANGUAGES:
        pipeline = read_pipeline(tmp_path / "out" / "bin", language)
        sentences = list(read_lines(tmp_path / "out" / "raw" / f"valid.{language}"))
        tokens = [line.split() for line in read_lines(tmp_path / "out" / "text" / f"valid.{language}")]
        assert [pipeline.encode(sentence) for sentence in sentences] == tokens
        assert [pipeline.decode(line) for line in tokens] == [sentence.lower() for sentence in sentences]


def test_text_of_a_language_model(tmp_path):
    lines = [f"The cat saw {number} lions , {word} ." for number in (1, 23) for word in "slowly Quickly never".split()]
    (tmp_path / "train").write_text("".join(f"{line}\n" for line in lines * 4))
    prepared("language-model", "--train", tmp_path / "train", "--lowercase", "--subwords", "bpe", "--vocabulary", 40,
             "--out", tmp_path / "out")
    pipeline = read_pipeline(tmp_path / "out")
    cut = {tuple(line.split()) for line in read_lines(tmp_path / "out" / "text" / "train.txt")}
    assert {tuple(pipeline.encode(line)) for line in lines} == cut
    assert pipeline.decode(pipeline.encode(lines[0])) == "the cat saw N lions , slowly ."


def test_text_of_a_masked_language_model(tmp_path):
    prepared("masked-lm", "--made-up", "--vocabulary", 60, "--lines", 120, "--out", tmp_path / "out")
    for part in ("mlm", "sst", "rte"):
        pipeline = read_pipeline(tmp_path / "out" / part)
        assert pipeline.decode(pipeline.encode("The Film of 1,000")) == "the film of N"


def test_unknown_words_in_classes(tmp_path):
    find("ptb-sentences").write_made_up(tmp_path / "from")
    prepared("ptb-sentences", "--from", tmp_path / "from", "--unchecked", "--out", tmp_path / "out")
    pipeline = read_pipeline(tmp_path / "out" / "bin" / "0")
    tokens = pipeline.encode("Zyxwvutsing 1234-5678 the")
    types = {line.split()[0] for line in read_lines(tmp_path / "out" / "bin" / "0" / "dict.txt")}
    assert tokens[:2] != ["Zyxwvutsing", "1234-5678"] and all(token.startswith("UNK") for token in tokens[:2])
    for line in read_lines(tmp_path / "out" / "text" / "test.txt"):
        known = [word for word in line.split() if word in types and not word.startswith("UNK")]
        assert [word for word in pipeline.encode(line) if not word.startswith("UNK")] == known


def test_labelled_text(tmp_path):
    rows = [f"{label}\tIt's a {label} film, No. {n}." for n in range(9) for label in ("good", "bad")]
    (tmp_path / "train").write_text("".join(f"{row}\n" for row in rows))
    prepared("text-classification", "--train", tmp_path / "train", "--language", "en", "--lowercase", "--out",
             tmp_path / "out")
    pipeline = read_pipeline(tmp_path / "out")
    texts = {tuple(line.split()[1:]) for line in read_lines(tmp_path / "out" / "train.txt")}
    assert texts <= {tuple(pipeline.encode(row.split("\t")[1])) for row in rows}
    prepared("text-classification", "--train", tmp_path / "train", "--out", tmp_path / "apart")
    assert read_pipeline(tmp_path / "apart").encode("It's  a film.") == ["It's", "a", "film."]


def test_bytes(tmp_path):
    find("imdb").write_made_up(tmp_path / "from")
    prepared("imdb", "--from", tmp_path / "from", "--unchecked", "--out", tmp_path / "out", "--max-length", 7)
    pipeline = read_pipeline(tmp_path / "out")
    assert pipeline.encode("\u00e9 bien, oui") == ["<0xC3>", "<0xA9>", "<0x20>", "b", "i", "e", "n"]
    assert pipeline.decode(pipeline.encode("\u00e9 bien")) == "\u00e9 bien"[:6]


def test_what_is_wrong_is_said(raw, tmp_path):
    parallel.prepare(raw, SubwordOptions(LANGUAGES, "bpe", 90, truecase=True), tmp_path / "out")
    with pytest.raises(ValueError, match="expected a language of de, en, got 'fr'"):
        read_pipeline(tmp_path / "out", "fr")
    with pytest.raises(ValueError, match="expected a sentence as a string, got list"):
        read_pipeline(tmp_path / "out", "de").encode(["Ein", "Hund"])
    (tmp_path / "out" / "truecase.de").unlink()
    with pytest.raises(ValueError, match="truecase.de is missing"):
        read_pipeline(tmp_path / "out", "de")
    (tmp_path / "out" / "codes.bpe").unlink()
    with pytest.raises(ValueError, match="codes.bpe is missing"):
        read_pipeline(tmp_path / "out", "en")
    (tmp_path / "out" / "corpus.json").write_text(json.dumps({"options": {"languages": ["de", "en"]}}))
    with pytest.raises(ValueError, match="corpus.json is truncated or altered"):
        read_pipeline(tmp_path / "out", "en")
    (tmp_path / "out" / "corpus.json").write_bytes(b"{\xff" + b" " * 1000)
    with pytest.raises(ValueError, match="corpus.json: truncated or altered: .{,80}$"):
        read_pipeline(tmp_path / "out", "en")
    (tmp_path / "empty" / "bin").mkdir(parents=True)
    with pytest.raises(ValueError, match="looked for corpus.json, .*empty/bin, .*empty$"):
        find_description([tmp_path / "empty" / "bin"])
    assert TextPipeline().encode(" a  b\n") == ["a", "b"]
