"""One door to data: every corpus has the same options, made-up files where there are raw ones, and one-line errors."""

from __future__ import annotations

import subprocess
import sys

import pytest

from seqstruct.cli.prepare import build_parser
from seqstruct.data.files import locked
from seqstruct.data.registry import ENTRIES, GENERATED, OWN, find
from tests.data.scripts import prepare

RAW = [entry for entry in ENTRIES if entry.licence not in (GENERATED, OWN)]
ASKED = {"babi": ["--task", 16], "glue": ["--task", "qqp"]}  # nothing more is needed for a trial


def test_names_are_sorted_and_known():
    names = [entry.name for entry in ENTRIES]
    own = [entry.name for entry in ENTRIES if entry.licence == OWN]
    assert len(set(names)) == len(names) and names == [*sorted(set(names) - set(own)), *own]
    assert find("iwslt14_documents") is find("iwslt14-documents")
    with pytest.raises(ValueError, match="expected a corpus of aan, .*, got 'imbd'"):
        find("imbd")


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_each_has_the_same_options(entry):
    text = " ".join(build_parser(entry).format_help().split())
    assert "--out DIR" in text and entry.help in text and entry.licence in text
    for option in ("--from DIR", "--downloads DIR", "--unchecked", "--made-up"):
        assert (option in text) == (entry in RAW or (option == "--made-up" and entry.licence == GENERATED)), option
    assert bool(entry.made_up) == (entry in RAW)


def test_parsers_need_neither_torch_nor_fairseq():
    code = (
        "import sys; from seqstruct.cli.prepare import build_parser; from seqstruct.data.registry import ENTRIES\n"
        "for entry in ENTRIES: build_parser(entry)\n"
        "assert not {'torch', 'fairseq'} & set(sys.modules), 'heavy'"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("mark", [",", ":"])
def test_a_path_that_fairseq_would_part_is_refused(mark, tmp_path, capsys):
    out = tmp_path / f"a{mark}b" / "c"
    assert prepare("multi30k", "--made-up", "--out", out) == 1
    assert f"a path without comma and colon, at which fairseq parts lists, got {out}\n" in capsys.readouterr().err
    assert prepare("sst", "--made-up", "--out", out) == 0, "no list of fairseq's"


QUICK = ("sst", "snli", "babi", "sdp2015", "ud-english", "imdb", "imagenet64", "amazon", "subj", "cr", "aan",
         *(entry.name for entry in ENTRIES if entry.trial))


@pytest.mark.parametrize("name", QUICK)
def test_made_up_files_are_read_and_always_the_same(name, tmp_path, capsys):
    options = [name, *ASKED.get(name, []), "--made-up"]
    assert prepare(*options, "--out", tmp_path / "one") == 0, capsys.readouterr().err
    assert capsys.readouterr().out.splitlines()[-1] == f"{tmp_path / 'one'}: ready"
    assert [path.name for path in tmp_path.iterdir()] == ["one"]
    assert prepare(*options, "--downloads", tmp_path / "raw", "--out", tmp_path / "two") == 0
    assert list((tmp_path / "raw").iterdir())
    made = [sorted(path for path in (tmp_path / side).rglob("*") if path.is_file()) for side in ("one", "two")]
    for one, two in zip(*made, strict=True):
        assert one.read_bytes() == two.read_bytes(), one.name


@pytest.mark.slow
@pytest.mark.parametrize("entry", RAW, ids=lambda entry: entry.name)
def test_every_corpus_can_be_made_up(entry, tmp_path, capsys):
    options = ASKED.get(entry.name, [])
    assert prepare(entry.name, *options, "--made-up", "--out", tmp_path / "out") == 0, capsys.readouterr().err


@pytest.mark.parametrize(("arguments", "message"), [
    (["sst"], "seqstruct prepare sst: the following arguments are required: --out (see --help)"),
    (["babi", "--out", "{out}"], "the following arguments are required: --task"),
    (["sst", "--form", "x", "--out", "{out}"], "unrecognized arguments: --form x"),
    (["sst", "--from"], "argument --from: expected one argument"),
    (["sst", "--from", "x", "--made-up", "--out", "{out}"], "--made-up: not allowed with argument --from"),
    (["multi30k", "--src", "cs", "--out", "{out}"], "invalid choice: 'cs'"),
])
def test_wrong_options_are_one_sentence(arguments, message, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        prepare(*[word.format(out=tmp_path / "out") for word in arguments])
    found = capsys.readouterr().err
    assert ended.value.code == 2 and message in found and found.count("\n") == 1


@pytest.mark.parametrize(("arguments", "message"), [
    (["yelp", "--out", "x"], "expected a corpus of aan"), (["sst", "--unchecked"], "--unchecked needs --from DIR"),
    (["sst", "--from", "absent"], "absent is not a folder"),
    (["ptb-trees"], "nothing is downloaded, --from PATH is needed: the treebank is licensed by the Linguistic Data"),
    (["multi30k", "--pairs", -1], "pairs: expected 20 or more, or 0 for all, got -1"),
    (["multi30k", "--pairs", 19], "pairs: expected 20 or more, or 0 for all, got 19"),
    (["multi30k", "--whole-tests"], "whole-tests: all pairs are taken without --pairs"),
    (["multi30k", "--documents", -3], "documents: expected 0 or more, got -3"),
    (["aspec", "--workers", 0], "workers: expected 1 or more, got 0"),
    (["sdp2015"], "nothing is downloaded, --from DIR is needed: order LDC2016T10"),
])
def test_wrong_input_is_one_sentence_and_leaves_nothing(arguments, message, tmp_path, refused):
    assert message in refused("prepare", *arguments, "--out", tmp_path / "out") and not list(tmp_path.iterdir())


@pytest.mark.parametrize(("whole", "tests"), [((), 2), (("--whole-tests",), None)])
def test_first_pairs_of_multi30k(whole, tests, tmp_path):
    lines = {}
    for name, options in (("all", ()), ("first", ("--pairs", 40, *whole))):
        assert prepare("multi30k", "--made-up", "--vocabulary", 60, *options, "--out", tmp_path / name) == 0
        lines[name] = {split: (tmp_path / name / "raw" / f"{split}.de").read_text().splitlines()
                       for split in ("valid", "test")}
    assert lines["first"] == {split: found[:tests] for split, found in lines["all"].items()}
    assert len((tmp_path / "first" / "text" / "train.de").read_text().splitlines()) <= 40


def test_two_do_not_make_one_folder(tmp_path, refused):
    out, mark = tmp_path / "out", tmp_path / ".out.preparing"
    with locked(mark):
        assert f"{out}: another `seqstruct prepare` makes it" in refused("prepare", "sst", "--made-up", "--out", out)
    assert list(tmp_path.iterdir()) == [mark]  # as one that was killed leaves it
    assert prepare("sst", "--made-up", "--out", out) == 0
    assert list(tmp_path.iterdir()) == [out]


def test_stand_ins_by_parts(tmp_path, capsys):
    words = ["ud-english", "--made-up", "--parts", "graphs", "classes", "--tagged"]
    assert prepare(*words, "--out", tmp_path / "out") == 0
    printed = capsys.readouterr().out
    assert "graphs (graphs): train 81, valid 9, test 10" in printed, "a tenth by default"
    assert "classes (classes): train 80" in printed
    assert "DET" not in (tmp_path / "out" / "dict.tags.txt").read_text(), "tags of Brown"
    assert prepare(*words[:2], "--held-out", 10, "--parts", "graphs", "--out", tmp_path / "ten") == 0
    assert "train 80, valid 10" in capsys.readouterr().out
    assert prepare(*words[:2], "--held-out", 90, "--out", tmp_path / "no") == 1
    assert "--held-out: expected 1 to 89, got 90" in capsys.readouterr().err


def test_text_and_sentences_share_an_encoding(tmp_path, capsys):
    assert prepare("masked-lm", "--made-up", "--vocabulary", 60, "--lines", 120, "--out", tmp_path / "out") == 0
    assert "train: 120 lines of text, 200 sentences, 108 pairs" in capsys.readouterr().out
    dictionaries = [tmp_path / "out" / part / "dict.txt" for part in ("mlm", "sst/input0", "rte/input1")]
    assert len({path.read_bytes() for path in dictionaries}) == 1


def test_what_a_masked_language_model_lacks_leaves_nothing_where_it_is_asked_for(tmp_path, capsys, monkeypatch):
    find("masked-lm").write_made_up(tmp_path / "raw")
    (tmp_path / "raw" / "stsa.binary.train").unlink()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for _ in range(2):
        assert prepare("masked-lm", "--from", "../raw", "--unchecked", "--out", "out") == 1
        assert "raw: missing, as files or in archives: stsa.binary.train; " in capsys.readouterr().err
    assert list((tmp_path / "here").iterdir()) == []


def test_phrases_that_validate_do_not_train(tmp_path, capsys):
    assert prepare("phrases", "--made-up", "--every", 5, "--out", tmp_path / "out") == 0
    text = {split: (tmp_path / "out" / "text" / f"{split}.en").read_text().splitlines() for split in ("train", "valid")}
    assert len(text["train"]) == 4 * len(text["valid"]) == 32
    assert prepare("phrases", "--made-up", "--every", 50, "--out", tmp_path / "no") == 1
    assert "40 pairs to train on and 0 to validate" in capsys.readouterr().err


@pytest.mark.parametrize("name, option, least", [
    ("phrases", "every", 1), ("phrases", "vocabulary", 1), ("masked-lm", "lines", 1),
])
def test_numbers_below_the_least_are_refused(name, option, least, tmp_path, capsys):
    assert prepare(name, "--made-up", f"--{option}", least - 1, "--out", tmp_path / "out") == 1
    assert capsys.readouterr().err == f"seqstruct prepare: {option} is at least {least}, not {least - 1}\n"


def test_made_up_files_do_not_take_the_place_of_downloaded_ones(tmp_path, capsys):
    (tmp_path / "aclImdb_v1.tar.gz").write_bytes(b"84 MB")
    (tmp_path / "SHA256SUMS").write_text(f"{'0' * 64}  aclImdb_v1.tar.gz\n")
    assert prepare("imdb", "--made-up", "--downloads", tmp_path, "--out", tmp_path / "out") == 1
    assert f"--made-up: {tmp_path} has files that were downloaded; name another" in capsys.readouterr().err
    assert (tmp_path / "aclImdb_v1.tar.gz").read_bytes() == b"84 MB"


def test_a_taken_folder_is_refused_before_anything_is_downloaded(tmp_path, refused):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "x").touch()
    assert "exists and is not empty" in refused("prepare", "wmt14", "--out", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
