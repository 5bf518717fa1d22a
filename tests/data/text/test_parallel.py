import dataclasses
import gzip
import json
import re
from collections import Counter

import pytest

from seqstruct.data.text import parallel, subwords
from seqstruct.data.text.aligned import check_content, content_sha256, read_checksums
from seqstruct.data.text.parallel import SubwordOptions
from tests.data.scripts import prepare

NOUNS = [("Hund", "dog"), ("Mann", "man"), ("Ball", "ball"), ("Baum", "tree"), ("Vogel", "bird")]


def toy_pairs(count):
    for i in range(count):
        a, b = NOUNS[i % 5], NOUNS[(i // 5) % 5]
        yield f"Der {a[0]} sieht den {b[0]} nicht.", f"The {a[1]} doesn't see the {b[1]}."


@pytest.fixture
def corpus(tmp_path):
    """A folder with toy train, val and test files; train is compressed."""
    folder = tmp_path / "from"
    folder.mkdir()
    for name, count in (("train", 25), ("val", 7), ("test", 5)):
        for side, language in enumerate(("de", "en")):
            text = "".join(pair[side] + "\n" for pair in toy_pairs(count)).encode()
            if name == "train":
                (folder / f"{name}.{language}.gz").write_bytes(gzip.compress(text))
            else:
                (folder / f"{name}.{language}").write_bytes(text)
    return folder


def prefixes(folder):
    return {"train": folder / "train", "valid": folder / "val", "test": folder / "test"}


def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("kind", ["bpe", "sentencepiece", "sentencepiece-bpe", "mixed", "characters"])
def test_prepared_text_is_the_raw_text_in_subwords(corpus, tmp_path, kind):
    summary = parallel.prepare(prefixes(corpus), SubwordOptions(("de", "en"), kind, vocabulary=40), tmp_path / "out")
    assert {s: summary["counts"][s]["pairs"] for s in parallel.SPLITS} == {"train": 25, "valid": 7, "test": 5}
    assert json.loads((tmp_path / "out" / "corpus.json").read_text())["counts"] == summary["counts"]
    for side, language in enumerate(("de", "en")):
        raw = [pair[side] for pair in toy_pairs(5)]
        assert lines(tmp_path / "out" / "raw" / f"test.{language}") == raw
        cut = lines(tmp_path / "out" / "text" / f"test.{language}")
        assert all(c != r for c, r in zip(cut, raw, strict=True))
        if kind in ("bpe", "mixed"):
            undo = subwords.undo_bpe if kind == "bpe" else subwords.undo_mixed
            back = [subwords.moses_detokenizer(language)(undo(c)) for c in cut]
        else:
            back = [subwords.undo_sentencepiece(c) for c in cut]
        assert back == raw
    cut = [line for language in ("de", "en") for line in lines(tmp_path / "out" / "text" / f"test.{language}")]
    assert summary["counts"]["test"]["subwords"] == sum(len(line.split()) for line in cut)
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_each_side_may_have_its_own_kind(corpus, tmp_path):
    options = SubwordOptions(("de", "en"), ("words", "sentencepiece"), vocabulary=(6, 28))
    parallel.prepare(prefixes(corpus), options, tmp_path / "out")
    assert sorted(p.name for p in (tmp_path / "out").glob("*.*")) == [
        "corpus.json", "sentencepiece.en.model", "words.de.txt"]
    source, target = (lines(tmp_path / "out" / "text" / f"train.{language}") for language in ("de", "en"))
    assert len({word for line in source for word in line.split()}) == 7
    assert "<unk>" in source[0].split()
    assert subwords.undo_sentencepiece(target[0]) == next(toy_pairs(1))[1]
    with pytest.raises(ValueError, match="expected two sizes"):
        SubwordOptions(("de", "en"), ("words", "bpe"), vocabulary=50)
    with pytest.raises(ValueError, match="expected one or two of bpe, sentencepiece"):
        parallel.kinds("words,syllables")


def test_rare_pieces_are_cut_into_smaller_ones(corpus, tmp_path):
    used = {}
    for least in (1, 12):
        options = SubwordOptions(("de", "en"), "sentencepiece-bpe", vocabulary=60, min_frequency=least)
        out = tmp_path / str(least)
        parallel.prepare(prefixes(corpus), options, out)
        cut = [line for language in ("de", "en") for line in lines(out / "text" / f"train.{language}")]
        used[least] = Counter(piece for line in cut for piece in line.split())
        assert subwords.undo_sentencepiece(lines(out / "text" / "test.en")[0]) == next(toy_pairs(1))[1]
    rare = {piece for piece, count in used[1].items() if count < 12 and len(piece) > 1}
    assert rare and not rare & used[12].keys()
    with pytest.raises(ValueError, match="expected sentencepiece"):
        SubwordOptions(("de", "en"), min_frequency=2)


def test_the_same_input_gives_the_same_bytes(corpus, tmp_path):
    for name in ("a", "b"):
        parallel.prepare(prefixes(corpus), SubwordOptions(("de", "en"), vocabulary=50), tmp_path / name)
    files = sorted(p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*") if p.is_file())
    assert len(files) == 12
    for path in files:
        assert (tmp_path / "a" / path).read_bytes() == (tmp_path / "b" / path).read_bytes()


def test_lowercase_spares_the_raw_references(corpus, tmp_path):
    parallel.prepare(prefixes(corpus), SubwordOptions(("de", "en"), vocabulary=50, lowercase=True), tmp_path / "out")
    assert not any(line != line.lower() for line in lines(tmp_path / "out" / "text" / "train.de"))
    assert lines(tmp_path / "out" / "raw" / "test.en")[0].startswith("The ")


@pytest.mark.parametrize(("lengths", "passes"), [
    ((4, 4), True), ((10, 5), True), ((5, 10), True), ((11, 5), False), ((5, 11), False), ((12, 12), True),
    ((13, 12), False), ((12, 13), False),
])
def test_length_and_ratio(lengths, passes):
    assert parallel.within(lengths, SubwordOptions(("de", "en"), max_length=12, max_ratio=2.0)) is passes


def test_training_pairs_out_of_proportion_are_dropped(corpus, tmp_path):
    for language, line in (("de", "Nein."), ("en", "No " * 30)):
        with open(corpus / f"val.{language}", "rb") as stream:
            kept = stream.read()
        (corpus / f"train.{language}.gz").unlink()
        (corpus / f"train.{language}").write_bytes(kept + f"{line}\n".encode())
    summary = parallel.prepare(prefixes(corpus), SubwordOptions(("de", "en"), vocabulary=40), tmp_path / "out")
    assert summary["counts"]["train"]["pairs"] == 7
    assert summary["counts"]["train"]["dropped"] == 1
    assert len(lines(tmp_path / "out" / "text" / "train.en")) == 7


def test_a_limit_on_training_pairs_leaves_other_sentences_whole(corpus, tmp_path):
    for name in ("val", "test"):
        for language in ("de", "en"):
            with open(corpus / f"{name}.{language}", "a", encoding="utf-8") as stream:
                stream.write("Hund " * 250 + "\n")
    options = SubwordOptions(("de", "en"), "words", vocabulary=40, max_length=8)
    counts = parallel.prepare(prefixes(corpus), options, tmp_path / "out")["counts"]
    assert {split: (found["pairs"], found["dropped"]) for split, found in counts.items()} == {
        "train": (25, 0), "valid": (8, 0), "test": (6, 0)
    }
    with pytest.raises(ValueError, match="train: all 25 pairs exceed"):
        parallel.prepare(prefixes(corpus), dataclasses.replace(options, max_length=7), tmp_path / "short")


def break_missing(folder):
    (folder / "test.en").unlink()


def break_truncated(folder):
    path = folder / "train.de.gz"
    path.write_bytes(path.read_bytes()[:-12])


def break_not_gzip(folder):
    (folder / "train.de.gz").write_bytes(b"plain text\n")


def break_empty_line(folder):
    (folder / "val.en").write_text("".join(f"{'  ' if i == 2 else 'x y'}\n" for i in range(7)))


def break_many_empty_lines(folder):
    (folder / "test.de").write_text("\n" * 5)
    (folder / "val.en").write_text("x\n" + " \x07\n" * 6)


def break_escaped(folder):
    (folder / "val.en").write_text("He said : &quot; I &apos;m here &quot; .\n" * 7)


def break_short(folder):
    (folder / "val.en").write_text("x y\n" * 6)


def break_long(folder):
    (folder / "val.en").write_text("x y\n" * 9)


def break_encoding(folder):
    (folder / "test.de").write_bytes("Bäume\n".encode("latin-1") * 5)


def break_overlong(folder):
    (folder / "test.de").write_text("Hund\n" * 3 + "Hund " * 300 + "\nHund\n")


def break_empty(folder):
    for language in ("de", "en"):
        (folder / f"test.{language}").write_text("")


BREAKS = {
    break_missing: r"test\.en: no such file, nor test\.en\.gz",
    break_truncated: r"train\.de\.gz: the compressed file is truncated or altered after line \d+:",
    break_not_gzip: r"train\.de\.gz: the compressed file is truncated or altered after line 0: Not a gzipped file",
    break_empty_line: r"val\.en: 1 line empty \(3\); --drop-empty leaves out such pairs$",
    break_many_empty_lines: r"val\.en: 6 lines empty \(2, 3, 4, 5, 6 \.\.\.\), .*test\.de: 5 lines empty \(1, .*5\);",
    break_escaped: r"val\.en: 7 lines with escapes of Moses such as &apos; \(1, .*; --deescape undoes them$",
    break_short: r"val\.de: line 7 has no counterpart: .*val\.en ends after line 6",
    break_long: r"val\.en: line 8 has no counterpart: .*val\.de ends after line 7",
    break_encoding: r"test\.de: not UTF-8",
    break_overlong: r"test\.de: line 4 has \d+ subwords, expected at most 250",
    break_empty: r"test\.de: the file is empty",
}


@pytest.mark.parametrize("broken", BREAKS, ids=lambda f: f.__name__)
def test_bad_input_is_one_sentence_and_leaves_nothing(corpus, tmp_path, broken, capsys):
    broken(corpus)
    status = prepare("parallel", *command(corpus, f"--out={tmp_path / 'out'}"))
    message = capsys.readouterr().err.splitlines()[-1]
    assert status == 1
    with pytest.raises(ValueError, match=BREAKS[broken]):
        raise ValueError(message)
    assert [p.name for p in tmp_path.iterdir()] == ["from"]


def command(folder, *words):
    return [f"--{s}={p}" for s, p in prefixes(folder).items()] + ["--src=de", "--trg=en", "--vocabulary=50", *words]


def test_empty_pairs_are_left_out_and_counted(corpus, tmp_path, capsys):
    break_many_empty_lines(corpus)
    (corpus / "test.de").write_text("Der Hund.\n\n  \nDer Ball.\n\u00a0\n")
    assert prepare("parallel", *command(corpus, "--drop-empty", f"--out={tmp_path / 'out'}")) == 0
    assert json.loads((tmp_path / "out/corpus.json").read_text())["counts"]["test"]["empty"] == 3
    assert "test: 2 pairs, " in (printed := capsys.readouterr().out) and "3 with an empty side left out" in printed
    for folder, line in (("text", "D"), ("raw", "Der Hund.")):
        sides = [lines(tmp_path / "out" / folder / f"test.{language}") for language in ("de", "en")]
        assert [len(side) for side in sides] == [2, 2] and sides[0][0].startswith(line)
    assert lines(tmp_path / "out/raw/test.en") == [pair[1] for i, pair in enumerate(toy_pairs(5)) if i in (0, 3)]
    assert lines(tmp_path / "out/raw/valid.en") == ["x"]
    (corpus / "test.de").write_text("\n\x01\n" * 2 + "\n")
    assert prepare("parallel", *command(corpus, "--drop-empty", f"--out={tmp_path / 'none'}")) == 1
    assert "from/test.de: each of the 5 pairs has an empty side" in capsys.readouterr().err


def test_escapes_of_moses_are_undone(corpus, tmp_path):
    escaped = "the dog &apos;s ball &amp;apos; &#91; a &amp; b &#93;\n"
    (corpus / "test.en").write_text(escaped * 5)
    assert prepare("parallel", *command(corpus, "--deescape", f"--out={tmp_path / 'out'}")) == 0
    text = lines(tmp_path / "out/raw/test.en")[0]
    assert text == "the dog 's ball &apos; [ a & b ]"
    assert subwords.undo_bpe(lines(tmp_path / "out/text/test.en")[0]) == "the dog ' s ball & apos ; [ a & b ]"
    assert (tmp_path / "out/bin/test.de-en.en.bin").exists()
    summary = parallel.prepare(prefixes(corpus), SubwordOptions(("de", "en"), vocabulary=50), tmp_path / "kept")
    assert summary["options"]["escapes"] == "keep" and lines(tmp_path / "kept/raw/test.en")[0] + "\n" == escaped


def test_what_html_left_is_no_escape(corpus, tmp_path):
    (corpus / "test.en").write_text("a gas station named m&amp;h\n" * 5)
    assert prepare("parallel", *command(corpus, f"--out={tmp_path / 'out'}")) == 0


def test_checksums_are_of_the_unpacked_text(corpus, tmp_path, capsys):
    out = tmp_path / "out"
    sums = parallel.prepare(prefixes(corpus), SubwordOptions(("de", "en"), vocabulary=50), out)["sha256"]
    listing = tmp_path / "sums"
    listing.write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()))
    assert read_checksums(listing) == sums
    listing.write_text(f"{'a' * 64}  my texts/first part.de\n{'b' * 64} *second.de\n")  # as sha256sum writes them
    assert read_checksums(listing) == {"first part.de": "a" * 64, "second.de": "b" * 64}
    listing.write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()))
    (corpus / "train.de").write_bytes(gzip.decompress((corpus / "train.de.gz").read_bytes()))
    (corpus / "train.de.gz").unlink()
    checked = command(corpus, "--checksums", listing)
    assert prepare("parallel", *checked, "--out", tmp_path / "again") == 0
    (corpus / "val.de").write_text((corpus / "val.de").read_text().replace("Hund", "Kund", 1))
    assert prepare("parallel", *checked, "--out", tmp_path / "third") == 1
    assert re.search(r"val\.de: SHA-256 .*truncated or altered", capsys.readouterr().err)
    listing.write_text("abc  train.de\n")
    with pytest.raises(ValueError, match="line 1: expected a SHA-256"):
        read_checksums(listing)


@pytest.mark.parametrize("written", ["{}/text.de", "./{}/text.de", "FOLDER/{}/text.de"])
def test_checksums_of_files_of_one_name(tmp_path, written):
    """Each is looked up with as much of its folders as the list has."""
    paths, listing = [tmp_path / name / "text.de" for name in "ab"], tmp_path / "sums"
    for path in paths:
        path.parent.mkdir()
        path.write_text(f"{path.parent.name}\n")
    written = written.replace("FOLDER", str(tmp_path))
    listing.write_text("".join(f"{content_sha256(path)}  {written.format(path.parent.name)}\n" for path in paths))
    check_content(paths, read_checksums(listing))
    paths[0].write_text("b\n")
    with pytest.raises(ValueError, match=r"text\.de: SHA-256 .*truncated or altered"):
        check_content(paths, read_checksums(listing))


@pytest.mark.parametrize(("changed", "match"), [
    ({"languages": ("de", "de")}, "two different"), ({"subwords": "syllables"}, "bpe, sentencepiece"),
    ({"vocabulary": 0}, "vocabulary"), ({"max_length": 0}, "max_length"), ({"max_ratio": 0.5}, "max_ratio"),
])
def test_options_out_of_range(changed, match):
    with pytest.raises(ValueError, match=match):
        SubwordOptions(**{"languages": ("de", "en"), **changed})
