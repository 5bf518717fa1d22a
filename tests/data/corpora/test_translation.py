"""Translation corpora from stand-ins of their archives: splits, cleaning, documents, and what is refused."""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path

import pytest
from fairseq.data import Dictionary, data_utils

from seqstruct.data.checked import check_counts
from seqstruct.data.corpora import iwslt, kftt, translation, wmt
from seqstruct.data.corpora.translation import chosen_options, write_raw
from seqstruct.data.downloads import collect
from seqstruct.data.text.subwords import undo_bpe
from tests.data.scripts import pack_tar, pack_zip, prepare, prepared, read, refused, run

CORPORA = {
    corpus.name: corpus for module in (wmt, iwslt, kftt) for variants in module.VARIANTS.values()
    for corpus in variants.corpora.values()
}
WORDS = {"en": "sentence", "de": "Satz", "fr": "phrase", "ro": "propoziţie", "es": "frase", "vi": "câu", "ja": "文章"}


def lines(language: str, count: int, start: int = 0, name: str = "") -> str:
    """Numbered sentences of a language."""
    return "".join(f"{WORDS[language]} {name}{i % 9} {i % 7} .\n" for i in range(start, start + count))


def segments(language: str, count: int, documents: int = 1, name: str = "") -> str:
    """The same as a test set of <seg> elements."""
    found, number = ['<?xml version="1.0" encoding="UTF-8"?>\n<mteval>'], 0
    for document in range(documents):
        found.append(f'<doc docid="{document}">\n<title>not this</title>')
        for _ in range(count):
            number += 1
            found.append(f'<seg id="{number}"> {WORDS[language]} {name} &amp; {number} ’s </seg>')
        found.append("</doc>")
    return "\n".join([*found, "</mteval>", ""])


def pack_wmt14(folder: Path, language: str) -> None:
    pair = f"{language}-en"
    sides = ("en", language)
    pack_tar(folder / "training-parallel-europarl-v7.tgz", {
        f"training/europarl-v7.{pair}.{s}": lines(s, 30) + {"en": "left\n\n"}.get(s, "\n\n") for s in sides})
    pack_tar(folder / "training-parallel-commoncrawl.tgz", {f"commoncrawl.{pair}.{s}": lines(s, 20) for s in sides})
    pack_tar(folder / "training-parallel-nc-v9.tgz",
             {f"training/news-commentary-v9.{pair}.{s}": lines(s, 10) for s in sides})
    if language == "fr":
        pack_tar(folder / "training-parallel-un.tgz", {f"un/undoc.2000.{pair}.{s}": lines(s, 5) for s in sides})
        pack_tar(folder / "training-giga-fren.tar", {
            f"giga-fren.release2.fixed.{s}.gz": gzip.compress(lines(s, 4).encode()) for s in sides})
    pack_zip(folder / "dev.zip", {
        **{f"dev/newstest2013.{side}": lines(side, 6) for side in sides},
        f"dev/newstest2014-{language}en-src.{language}.sgm": segments(language, 5),
        f"dev/newstest2014-{language}en-ref.en.sgm": segments("en", 5),
    })


def pack_wmt16(folder: Path) -> None:
    pack_tar(folder / "training-parallel-ep-v8.tgz", {f"ep/europarl-v8.ro-en.{s}": lines(s, 30) for s in ("en", "ro")})
    pack_zip(folder / "en-ro.txt.zip", {f"SETIMES.en-ro.{s}": lines(s, 20) for s in ("en", "ro")})
    for name in ("newsdev2016", "newstest2016"):
        (folder / f"{name}-roen-src.ro.sgm").write_text(segments("ro", 5))
        (folder / f"{name}-roen-ref.en.sgm").write_text(segments("en", 5))


def talk(language: str, number: int, count: int) -> str:
    return (f"<url>http://x/{number}</url>\n<keywords>a, b</keywords>\n<talkid>{number}</talkid>\n"
            f"<title>{WORDS[language]} title {number} !</title>\n<description>TED : about .</description>\n"
            + lines(language, count, number))


def pack_iwslt14(folder: Path, pair: str) -> None:
    sides = pair.split("-")
    members = {f"{pair}/train.tags.{pair}.{s}": "".join(talk(s, i, 9) for i in range(10)) for s in sides}
    for name in iwslt.EVALUATION[pair]:
        members |= {f"{pair}/IWSLT14.{name}.{pair}.{s}.xml": segments(s, 3, 2, name) for s in sides}
    pack_tar(folder / f"{pair}.tgz", members)


def pack_iwslt15(folder: Path) -> None:
    folder.mkdir(parents=True)
    for language in ("en", "vi"):
        (folder / f"train.{language}.gz").write_bytes(gzip.compress(lines(language, 40).encode()))
        (folder / f"tst2012.{language}").write_text(f"{WORDS[language]} isn &apos;t 1\n" + lines(language, 3))
        (folder / f"tst2013.{language}").write_text(lines(language, 5))


def pack_kftt(folder: Path) -> None:
    members = {}
    for split, count in (("train", 50), ("dev", 4), ("test", 5)):
        for language in ("ja", "en"):
            members[f"kftt-data-1.0/data/orig/kyoto-{split}.{language}"] = lines(language, count)
            members[f"kftt-data-1.0/data/tok/kyoto-{split}.{language}"] = lines(language, count + 1)
    pack_tar(folder / "kftt-data-1.0.tar.gz", members)


PACK = {
    "wmt14-en-de": lambda folder: pack_wmt14(folder, "de"), "wmt14-en-fr": lambda folder: pack_wmt14(folder, "fr"),
    "wmt16-en-ro": pack_wmt16, "iwslt14-de-en": lambda folder: pack_iwslt14(folder, "de-en"),
    "iwslt14-de-en-joint": lambda folder: pack_iwslt14(folder, "de-en"),
    "iwslt14-es-en": lambda folder: pack_iwslt14(folder, "es-en"), "iwslt15-en-vi": pack_iwslt15, "kftt": pack_kftt,
    "kftt-tokenised": pack_kftt,
}
SIZES = {  # pairs that the stand-ins come to
    "wmt14-en-de": (60, 6, 5), "wmt14-en-fr": (69, 6, 5), "wmt16-en-ro": (50, 5, 5), "iwslt14-de-en": (106, 4, 30),
    "iwslt14-de-en-joint": (106, 4, 30), "iwslt14-es-en": (90, 6, 18), "iwslt15-en-vi": (40, 4, 5), "kftt": (50, 4, 5),
    "kftt-tokenised": (51, 5, 6),
}


@pytest.mark.parametrize("name", CORPORA)
def test_splits_of_the_archives(tmp_path, name):
    PACK[name](tmp_path / "raw")
    corpus = CORPORA[name]
    files = collect(tmp_path / "raw", corpus.wanted, tmp_path / "unpacked")
    counts = write_raw(corpus.read(files), corpus.options.languages, tmp_path / "text")
    assert tuple(counts[split]["pairs"] for split in translation.SPLITS) == SIZES[name]
    for split in translation.SPLITS:
        sides = [read(tmp_path / "text" / f"{split}.{language}") for language in corpus.options.languages]
        assert len(sides[0]) == len(sides[1]) == counts[split]["pairs"]
        for pair in zip(*sides, strict=True):
            stripped = [line.replace(WORDS[side], "").split() for line, side in
                        zip(pair, corpus.options.languages, strict=True)]
            assert stripped[0] == stripped[1] or name == "wmt16-en-ro", "lines stay side by side"
    assert not any(split.get("documents") for split in counts.values()) or name == "iwslt14-es-en"


def test_what_is_empty_is_seen_before_moses_deletes_it():
    pairs = [("a\x01b\u00a0 c", "x"), ("\x01\x7f", "y"), None, (" \u2003", "z"), ("\x85d\x9f", " w\r")]
    assert list(translation.full(pairs)) == [("a b c", "x"), None, ("d", "w")]


def test_romanian_cedillas_become_commas(tmp_path):
    pack_wmt16(tmp_path)
    corpus = CORPORA["wmt16-en-ro"]
    files = collect(tmp_path, corpus.wanted, tmp_path / "unpacked")
    (_, romanian), *_ = corpus.read(files)["train"]
    assert romanian.startswith("propoziție") and "ţ" in files["SETIMES.en-ro.ro"].read_text()


def test_talks(tmp_path):
    pack_iwslt14(tmp_path / "raw", "de-en")
    files = collect(tmp_path / "raw", CORPORA["iwslt14-de-en"].wanted, tmp_path / "unpacked")
    talks = list(iwslt.read_talks(files["train.de"], files["train.en"], titles=True))
    assert talks.count(None) == 10 and talks[1:4] == [
        ("Satz title 0 !", "sentence title 0 !"), ("TED : about .", "TED : about ."),
        ("Satz 0 0 .", "sentence 0 0 ."),
    ]
    assert len(list(iwslt.read_talks(files["train.de"], files["train.en"], titles=False))) == 100
    everything = [pair for pair in talks if pair is not None]
    splits = {name: list(pairs) for name, pairs in iwslt.read_german(files).items()}
    assert splits["valid"] == everything[22::23]
    assert splits["train"] == [pair for i, pair in enumerate(everything, 1) if i % 23]
    assert splits["test"][0] == ("Satz TED.dev2010 & 1 's", "sentence TED.dev2010 & 1 's")
    with open(files["train.de"], "a") as stream:
        stream.write("<url>x</url>\n")
    with open(files["train.en"], "a") as stream:
        stream.write("more\n")
    with pytest.raises(ValueError, match="line 141: a talk begins here, or in .*but not in both"):
        list(iwslt.read_talks(files["train.de"], files["train.en"], titles=True))


def test_cleaning_counts_moses_tokens():
    pairs = [("a b c", "a, b"), ("a b see!", "a b"), ("a b c", "a b")] + [("a " * n, "b " * n) for n in (175, 176)]
    assert list(iwslt.clean(pairs, ("de", "en"))) == [pairs[0], pairs[2], pairs[3]]


def test_the_thesis_recipe_by_its_script(tmp_path):
    pack_iwslt14(tmp_path / "raw", "de-en")
    done = run("iwslt14", "--from", tmp_path / "raw", "--out", tmp_path / "out", "--unchecked", "--vocabulary", "45,40")
    assert done.returncode == 0, done.stderr
    assert "train: 106 pairs" in done.stdout and "0 pairs dropped" in done.stdout
    out = tmp_path / "out"
    names = ["bin", "codes.de.bpe", "codes.en.bpe", "corpus.json", "raw", "text"]
    assert sorted(path.name for path in out.iterdir()) == names
    assert json.loads((out / "corpus.json").read_text())["options"]["vocabulary"] == [45, 40]
    cut = read(out / "text" / "valid.en")
    back = [undo_bpe(line) for line in cut]
    assert back == [line.lower() for line in read(out / "raw" / "valid.en")]
    dictionaries = [Dictionary.load(str(out / "bin" / f"dict.{language}.txt")) for language in ("de", "en")]
    assert dictionaries[0].index("satz") != dictionaries[0].unk() and "satz" not in dictionaries[1].symbols
    data = data_utils.load_indexed_dataset(str(out / "bin" / "valid.de-en.en"), dictionaries[1])
    assert [dictionaries[1].string(row) for row in data] == cut
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "raw"]


def test_documents_by_their_script(tmp_path):
    pack_iwslt14(tmp_path / "raw", "es-en")
    done = run("iwslt14_documents", "--from", tmp_path / "raw", "--out", tmp_path / "out", "--unchecked",
               "--vocabulary=60")
    assert done.returncode == 0, done.stderr
    assert "train: 90 pairs in 10 documents" in done.stdout and "test: 18 pairs in 6 documents" in done.stdout
    out = tmp_path / "out"
    assert read(out / "text" / "train.docs") == ["9"] * 10 and read(out / "text" / "valid.docs") == ["3"] * 2
    assert len(read(out / "text" / "train.es")) == 90
    assert json.loads((out / "corpus.json").read_text())["counts"]["test"]["documents"] == 6
    assert {"truecase.es", "truecase.en", "codes.bpe"} <= {path.name for path in out.iterdir()}


def test_documents_stay_whole(tmp_path):
    pack_iwslt14(tmp_path / "raw", "es-en")
    wanted = CORPORA["iwslt14-es-en"].wanted
    for key, path in collect(tmp_path / "raw", wanted, tmp_path / "raw" / "unpacked").items():
        if key.startswith("train"):
            path.write_text(path.read_text() + ("1 " * 40 if key == "train.es" else "1") + "\n")
    words = ["--from", tmp_path / "raw", "--out", tmp_path / "out", "--unchecked", "--vocabulary", 60, "--max-ratio", 9]
    with pytest.raises(ValueError, match="train: 1 pairs exceed .*documents must stay whole"):
        prepared("iwslt14-documents", *words)
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


SCRIPT_OF = {"wmt14-en-de": ["wmt14"], "wmt14-en-fr": ["wmt14", "--pair", "en-fr"], "wmt16-en-ro": ["wmt16"],
             "iwslt14-de-en-joint": ["iwslt14", "--recipe=fairseq"], "iwslt15-en-vi": ["iwslt15"], "kftt": ["kftt"],
             "kftt-tokenised": ["kftt", "--text", "tokenised", "--subwords", "words,sentencepiece"]}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPT_OF)
def test_every_script_makes_a_folder_for_fairseq(tmp_path, name):
    PACK[name](tmp_path / "raw")
    script, *arguments = SCRIPT_OF[name]
    src = CORPORA[name].options.languages[1]
    done = run(script, *arguments, "--from", tmp_path / "raw", "--out", tmp_path / "out", "--unchecked", "--src", src,
               "--vocabulary", {"kftt": 23, "kftt-tokenised": "9,17"}.get(name, 60), "--max-ratio", 9)
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "out" / "corpus.json").read_text())
    assert summary["corpus"] == name and summary["options"]["languages"][0] == src
    assert tuple(summary["counts"][split]["pairs"] for split in translation.SPLITS) == SIZES[name]
    target = summary["options"]["languages"][1]
    assert (tmp_path / "out" / "bin" / f"test.{src}-{target}.{target}.bin").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "raw"]


def refusal(capsys, *arguments):
    assert prepare(*arguments) == 1
    return capsys.readouterr().err.splitlines()[-1]


def test_what_is_missing_is_named(tmp_path, capsys):
    pack_wmt14(tmp_path / "raw", "de")
    (tmp_path / "raw" / "training-parallel-nc-v9.tgz").unlink()
    arguments = ["wmt14", "--from", tmp_path / "raw", "--out", tmp_path / "out"]
    message = refusal(capsys, *arguments, "--unchecked")
    assert "missing, as files or in archives: news-commentary-v9.de-en.en, news-commentary-v9.de-en.de; " in message
    assert "statmt.org/wmt14" in message
    message = refusal(capsys, *arguments)
    assert "dev.zip: SHA-256" in message or "europarl-v7.tgz: SHA-256" in message
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


@pytest.mark.parametrize(("broken", "message"), [
    ("short", "tst2012.en: line 4 has no counterpart"), ("latin", "tst2013.vi: not UTF-8 after line 0"),
    ("long", "valid.en: line 2 has 1202 subwords, expected at most 1000"), ("empty", "no pairs in the test set"),
    ("cut", "train.en.gz: the compressed file is truncated"), ("counts", "the train set has 40 pairs, expected 133317"),
])
def test_wrong_text_leaves_nothing(tmp_path, capsys, broken, message):
    raw = tmp_path / "raw"
    pack_iwslt15(raw)
    if broken == "short":
        (raw / "tst2012.vi").write_text(lines("vi", 3))
    elif broken == "latin":
        (raw / "tst2013.vi").write_bytes("câu\n".encode("latin-1"))
    elif broken == "long":
        for side in ("en", "vi"):
            (raw / f"tst2012.{side}").write_text("1 2\n" + "1 2 " * 601 + "\n1 2\n3 4\n")
    elif broken == "empty":
        for side in ("en", "vi"):
            (raw / f"tst2013.{side}").write_text("\n \n")
    elif broken == "cut":
        (raw / "train.en.gz").write_bytes((raw / "train.en.gz").read_bytes()[:-9])
    unchecked = ["--unchecked"] if broken != "counts" else []
    if broken == "counts":
        for path in list(raw.iterdir()):
            (raw / "deep").mkdir(exist_ok=True)
            path.rename(raw / "deep" / path.name)
    found = refusal(capsys, "iwslt15", "--from", raw, "--out", tmp_path / "out", "--vocabulary", 60, *unchecked)
    assert message in found
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


def test_downloads_stay_and_the_manual_route_is_told(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "es-en.tgz.part").write_bytes(b"half")
    message = refused("iwslt14_documents", "--out", tmp_path / "out", "--downloads", tmp_path / "kept")
    assert "es-en.tgz could not be downloaded" in message and "texts/es/en/es-en.tgz" in message
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["es-en.tgz.part"]
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_options_and_counts(capsys, tmp_path):
    def options(name, *arguments):
        parser = argparse.ArgumentParser()
        translation.add_arguments(parser, iwslt.VARIANTS["iwslt15"])
        return chosen_options(parser.parse_args(arguments), CORPORA[name].options)

    assert options("iwslt14-de-en").vocabulary == (9000, 7000)
    assert options("iwslt14-de-en", "--src", "en").vocabulary == (7000, 9000)
    assert options("iwslt14-de-en", "--src", "en").languages == ("en", "de")
    assert options("iwslt14-de-en", "--vocabulary", "10000").vocabularies == (10000,)
    assert options("iwslt14-es-en").truecase and not options("iwslt14-es-en", "--subwords", "sentencepiece").truecase
    for kind, truecased in (("words", True), ("mixed", True), ("bpe,words", True), ("bpe,characters", False)):
        assert options("iwslt14-es-en", "--subwords", kind, "--vocabulary", "70,60").truecase == truecased
    assert options("wmt14-en-de").vocabulary == 32768
    with pytest.raises(ValueError, match="--src: expected one of en, de, got fr"):
        options("wmt14-en-de", "--src", "fr")
    with pytest.raises(SystemExit):
        options("wmt14-en-de", "--vocabulary", "1,2,3")
    assert "invalid vocabulary value: '1,2,3'" in capsys.readouterr().err
    corpus = CORPORA["iwslt14-de-en"]
    published = corpus.counts, "pairs", corpus.tolerance
    check_counts("x", {"train": 160000, "valid": 7300, "test": 6750}, *published)
    with pytest.raises(ValueError, match="x: the test set has 6650 pairs, expected 6750"):
        check_counts("x", {"train": 160239, "valid": 7283, "test": 6650}, *published)
