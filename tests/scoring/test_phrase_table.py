from __future__ import annotations

import gzip
import json
import math

import pytest

from seqstruct.cli import main
from seqstruct.scoring.forced import load_scorer
from seqstruct.scoring.phrase_table import Report, parse, score_blocks, score_table

pytestmark = pytest.mark.training  # all score by a trained model

GOOD = [
    "ein haus ||| haus ein ||| 0.5 0.25 1e-3 0.1 ||| 0-1 1-0 ||| 3 4 2",
    "ein ||| ein ||| 1 1 1 1 |||  ||| 1 1 1 ||| sparse=1",
    "am see und tag am see ||| see am tag ||| 0.1 0.2 0.3 0.4",
    "am huhn ||| huhn ||| 0.1 0.2 0.3 0.4 ||| 0-0",
]
BAD = [
    (b"ein haus", "expected source ||| target ||| scores, got 1 fields"),
    (b"ein |||  ||| 1 1 1 1", "the target is empty"),
    (b"ein ||| haus ||| 1 one 1 1", "expected numbers as scores, got 'one'"),
    (b"ein ||| haus ||| 1 1", "expected 4 scores, as in the lines before, got 2"),
    (b"ein ||| h\xffus ||| 1 1 1 1", "not UTF-8"),
    (b"", "expected source"),
    ((b"ein " * 30) + b"||| ein ||| 1 1 1 1", "more than the limit of 20"),
]


@pytest.fixture(scope="module")
def scorer(models):
    return load_scorer([models["rnn"]], cpu=True)


def score_lines(*arguments, **options):
    return b"".join(score_blocks(*arguments, **options)).splitlines(keepends=True)


@pytest.mark.parametrize("window", [1, 2, 100])
def test_a_column_is_added_and_nothing_else_changes(window, scorer):
    lines = [line.encode() + b"\n" for line in GOOD]
    report = Report()
    found = [line.decode() for line in score_lines(lines, scorer, print, report, window=window)]
    assert (report.lines, report.scored, report.malformed, report.too_long, report.unknown) == (4, 4, 0, 0, 2)
    for before, after in zip(GOOD, found, strict=True):
        fields, new = before.split("|||"), after.rstrip("\n").split("|||")
        assert new[:2] + new[3:] == fields[:2] + fields[3:]
        *same, score = new[2].split()
        assert same == fields[2].split()
        expected = scorer.log_probabilities([scorer.encode(*fields[:2])])[0]
        assert float(score) == pytest.approx(expected, rel=1e-5)
    (line, *_) = score_lines(lines, scorer, print, Report(), scale="probability")
    assert math.log(float(line.split(b"|||")[2].split()[-1])) == pytest.approx(
        scorer.log_probabilities([scorer.encode("ein haus", "haus ein")])[0], rel=1e-4
    )


@pytest.mark.parametrize("keep", [False, True])
def test_bad_lines_are_counted_and_named_and_the_rest_goes_through(keep, scorer):
    lines = [GOOD[0].encode() + b"\n"]
    for bad, _ in BAD:
        lines += [bad + b"\n", GOOD[2].encode() + b"\n"]
    said, report = [], Report()
    found = list(score_lines(lines, scorer, said.append, report, keep=keep, window=3))
    assert (report.lines, report.scored, report.malformed, report.too_long) == (15, 8, 6, 1)
    assert [text.split(":")[0] for text in said] == [f"line {2 * i + 2}" for i in range(7)]
    for text, (_, message) in zip(said, BAD, strict=True):
        assert message in text
    if keep:
        assert found[1::2] == [bad + b"\n" for bad, _ in BAD]
    else:
        assert [line.split()[0] for line in found] == [b"ein"] + [b"am"] * 7


def test_only_the_first_bad_lines_are_told(scorer):
    said, report = [], Report()
    assert list(score_lines([b"x\n"] * 50, scorer, said.append, report)) == []
    assert report.malformed == 50
    assert len(said) == 10
    assert said[-1].endswith("further ones are counted only")


def test_parse_keeps_spaces_and_any_number_of_fields():
    assert "|||".join(parse(b" a  b ||| c |||  1 2|||x", 2)) == " a  b ||| c |||  1 2|||x"


def test_packed_tables_and_interruptions(tmp_path, scorer):
    table, out = tmp_path / "table.gz", tmp_path / "new.gz"
    text = "".join(line + "\n" for line in GOOD * 30).encode()
    table.write_bytes(gzip.compress(text))
    report = score_table(table, out, scorer, print, lambda *_: None, {}, window=7)
    assert report.scored == 120
    lines = gzip.decompress(out.read_bytes()).splitlines()
    assert [line.split(b"|||")[0] for line in lines] == [line.split(b"|||")[0] for line in text.splitlines()]
    whole = out.read_bytes()
    table.write_bytes(gzip.compress(text)[:-20])
    with pytest.raises(ValueError, match=r"table.gz: the compressed file is truncated or altered after line \d+"):
        score_table(table, out, scorer, print, lambda *_: None, {}, window=7)
    assert out.read_bytes() == whole
    assert {path.name for path in tmp_path.iterdir()} == {"table.gz", "new.gz"}


@pytest.mark.parametrize("name", ["new", "new.gz"])
def test_an_interrupted_run_goes_on(name, tmp_path, scorer):
    table, out, whole = tmp_path / "table", tmp_path / name, tmp_path / "whole"
    table.write_text("".join(line + "\n" for line in [*GOOD, "malformed"] * 20))
    expected = score_table(table, whole, scorer, print, lambda *_: None, {}, window=7)

    class Interrupted(Exception):
        pass

    class Counting:
        def __init__(self, most):
            self.most, self.seen = most, 0

        def encode(self, *pair):
            return scorer.encode(*pair)

        def log_probabilities(self, pairs):
            if self.seen == self.most:
                raise Interrupted
            self.seen += 1
            return scorer.log_probabilities(pairs)

    for most in (3, 2):
        with pytest.raises(Interrupted):
            score_table(table, out, Counting(most), print, lambda *_: None, {}, window=7)
        assert not out.exists()
    with open(out.with_name(name + ".part"), "ab") as stream:
        stream.write(b"cut off in the middle of a wri")
    last, said = Counting(100), []
    assert score_table(table, out, last, said.append, lambda *_: None, {}, window=7) == expected
    assert last.seen == 12 - 5
    assert said[0].startswith("line 4") and "going on where an earlier run was interrupted" in said[0]
    found = out.read_bytes()
    assert (gzip.decompress(found) if name.endswith(".gz") else found) == whole.read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"table", "whole", name}
    with pytest.raises(Interrupted):
        score_table(table, out, Counting(3), print, lambda *_: None, {}, window=7)
    anew = Counting(100)
    score_table(table, out, anew, print, lambda *_: None, {"models": "others"}, window=7)
    assert anew.seen == 12


def test_the_command(tmp_path, models, capsys):
    table, out = tmp_path / "table", tmp_path / "out" / "new"
    table.write_bytes("\n".join(GOOD).encode() + b"\nx\n")
    checkpoints = [str(models["rnn"]), str(models["transformer"])]
    assert main(["score-phrases", str(table), "--checkpoint", *checkpoints, "--out", str(out), "--cpu"]) == 0
    shown = capsys.readouterr()
    assert "5 lines: 4 scored, 1 malformed and 0 too long for the model, left out; 2 words unknown" in shown.out
    assert f"{table}: line 5: expected source" in shown.err
    expected = load_scorer(checkpoints, cpu=True)
    score = float(out.read_text().splitlines()[0].split("|||")[2].split()[-1])
    assert score == pytest.approx(expected.log_probabilities([expected.encode("ein haus", "haus ein")])[0], rel=1e-5)
    table.rename(tmp_path / "phrase-table")
    again = ["score-phrases", str(tmp_path), "--checkpoint", *checkpoints, "--out", str(tmp_path / "two"), "--cpu"]
    assert main([*again, "--record", str(tmp_path / "found.json")]) == 0
    (found,) = json.loads((tmp_path / "found.json").read_text())
    assert (found["metric"], found["value"]) == ("phrase_pairs_scored", 4)
    assert (tmp_path / "two").read_bytes() == out.read_bytes()
    (tmp_path / "phrase-table").unlink()
    assert main(again) == 1
    assert "expected phrase-table or phrase-table.gz in it" in capsys.readouterr().err


@pytest.mark.parametrize(("arguments", "message"), [
    (["absent", "--out", "x"], "absent: No such file"),
    (["table", "--out", "table"], "expected another file than the table that is read"),
    (["bad", "--out", "x"], "bad: none of 2 lines could be scored"),
    (["table", "--out", "x", "--window", "0"], "--window: expected 1 or more"),
    (["table", "--out", "x", "--subword-model", "table"], "neither codes of subword-nmt nor a SentencePiece model"),
])
def test_errors_are_one_sentence_and_leave_nothing(tmp_path, models, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table").write_text(GOOD[0] + "\n")
    (tmp_path / "bad").write_text("a\nb\n")
    assert main(["score-phrases", *arguments, "--checkpoint", str(models["rnn"]), "--cpu"]) == 1
    assert message in capsys.readouterr().err.splitlines()[-1]
    assert {path.name for path in tmp_path.iterdir()} == {"table", "bad"}
