import gzip
import json

import pytest

from seqstruct.cli import main

TEXT = "Ein Mann läuft.\nEin alter Mann läuft schnell.\n"


@pytest.fixture
def files(tmp_path):
    """A folder with train.de.gz, test.de and train.en."""
    (tmp_path / "train.de.gz").write_bytes(gzip.compress(TEXT.encode()))
    (tmp_path / "test.de").write_text("Ein Mann.\n", encoding="utf-8")
    (tmp_path / "train.en").write_text("A man runs.\nAn old man runs fast.\n", encoding="utf-8")
    return tmp_path


def call(files, *more):
    return main(["statistics", "--train", str(files / "train.de.gz"), "--test", str(files / "test.de"),
                 "--language", "de", "--vocabulary", "40", "--joint-vocabulary", "50", *more])


def test_the_table_as_text_markdown_and_json(files, capsys):
    assert call(files, "--other", str(files / "train.en"), "--other-language", "en", "--tokenize") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["segmentation", "tokens", "types", "unknown"]
    assert lines[1].split() == ["none", "10", "6", "0"]
    assert len(lines) == 11
    assert call(files, "--segmentations", "none", "characters", "--format", "markdown") == 0
    assert capsys.readouterr().out.splitlines()[2:] == [
        "| none | 8 | 6 | 1 |", "| characters | 38 | 18 | 0 |"]
    assert call(files, "--segmentations", "BPE (joint)", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)[0]["missing"] == "the other language's text was not given"


@pytest.mark.parametrize(("change", "message"), [
    (["--segmentations", "syllables"], "expected one of none"),
    (["--other", "x", "--tokenize"], "expected --other-language"),
    (["--test", "nowhere"], "nowhere: No such file"),
    (["--test", "nowhere", "--record", "nowhere"], "--record: expected one segmentation, got 10"),  # before it reads
    (["--vocabulary", "0"], "vocabulary: expected 1 or more"),
    (["--vocabulary", "3"], "expected more than the text's"),
])
def test_bad_input_is_one_sentence(files, capsys, change, message):
    assert call(files, *change) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--language", "--other-language"])
def test_a_language_that_is_none(files, capsys, option):
    with pytest.raises(SystemExit):
        call(files, option, "german")
    assert f"{option}: expected the two letters of a language, such as de, got 'german'" in capsys.readouterr().err


def test_what_is_no_text(files, capsys):
    (files / "test.de").write_bytes("Bäume\n".encode("latin-1"))
    assert call(files) == 1
    assert "test.de: not UTF-8 after line 0" in capsys.readouterr().err
    (files / "test.de").write_text("\n\n")
    assert call(files) == 1
    assert "the file has no words" in capsys.readouterr().err


def test_one_line_is_recorded(files, capsys):
    assert call(files, "--segmentations", "none", "--record", str(files / "found.json")) == 0
    found = json.loads((files / "found.json").read_text())
    assert [(m["metric"], m["value"]) for m in found] == [("tokens", 8), ("types", 6), ("unknown", 1)]
    capsys.readouterr()
    for names, told in ((["none", "characters"], "expected one segmentation"), (["BPE (joint)"], "was not given")):
        assert call(files, "--segmentations", *names, "--record", str(files / "other.json")) == 1
        assert told in capsys.readouterr().err
    assert not (files / "other.json").exists()
