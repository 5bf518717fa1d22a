import io
import json

import pytest
from sacrebleu.metrics import BLEU

from seqstruct.cli import main

REFERENCE = ["Two dogs play in the snow.", "A man isn't walking home.", "The small bird sits in a tree."]
SUBWORDS = ["Two dog@@ s play in the snow .", "A man is@@ n 't walking .", "The bird sits in a tree ."]
TEXT = ["Two dogs play in the snow.", "A man isn't walking.", "The bird sits in a tree."]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, with references, hypotheses and decoder output."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ref.en").write_text("\n".join(REFERENCE) + "\n")
    (tmp_path / "hyp.bpe").write_text("\n".join(SUBWORDS) + "\n")
    (tmp_path / "other.bpe").write_text("\n".join(SUBWORDS[:1] + ["A m@@ an .", "A tree ."]) + "\n")
    output = "".join(f"S-{i}\tx\nH-{i}\t-0.5\t{SUBWORDS[i]}\nD-{i}\t-0.5\tx\n" for i in (2, 0, 1))
    (tmp_path / "generate.txt").write_text(output)
    return tmp_path


UNDO = ["--references", "ref.en", "--subwords", "bpe", "--detokenize", "en"]


def scored(capsys, *arguments):
    assert main(["score", *arguments, *UNDO, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_way_in_gives_sacrebleus_number(folder, capsys, monkeypatch):
    expected = BLEU().corpus_score(TEXT, [REFERENCE]).score
    plain = scored(capsys, "--hypotheses", "hyp.bpe")
    assert plain["sentences"] == 3
    assert plain["scores"][0]["value"] == expected
    assert scored(capsys, "--from-generate", "generate.txt") == plain
    monkeypatch.setattr("sys.stdin", io.StringIO((folder / "generate.txt").read_text()))
    assert scored(capsys, "--from-generate", "-") == plain
    assert [s["metric"] for s in scored(capsys, "--hypotheses", "hyp.bpe", "--metrics", "chrf")["scores"]] == ["chrf"]


def test_text_holds_scores_signature_and_comparison(folder, capsys):
    assert main(["score", "--hypotheses", "hyp.bpe", "--against", "other.bpe", "--resamples", "20", *UNDO]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith(f"bleu {BLEU().corpus_score(TEXT, [REFERENCE]).score:.2f}")
    assert "tok:13a" in shown[1]
    assert "difference +" in shown[4]
    assert "bs:20|seed:12345" in shown[5]
    assert len(shown) == 8
    compared = scored(capsys, "--hypotheses", "hyp.bpe", "--against", "other.bpe", "--resamples", "20")["against"]
    assert [c["metric"] for c in compared] == ["bleu", "chrf"]


@pytest.mark.parametrize(("name", "content", "arguments", "message"), [
    ("hyp.bpe", "one\n", ["--hypotheses", "hyp.bpe"], "hyp.bpe: 1 lines, but the references have 3"),
    ("other.bpe", "one\n", ["--hypotheses", "hyp.bpe", "--against", "other.bpe"],
     "other.bpe: 1 lines, but the references have 3"),
    ("generate.txt", "H-0\t-1\ta\n", ["--from-generate", "generate.txt"],
     "generate.txt: 2 of 3 sentences have no hypothesis (ids 1, 2)"),
    ("ref.en", "", ["--hypotheses", "empty"], "references: expected one line or more, got none"),
    ("empty", "", ["--hypotheses", "absent"], "absent"),
])
def test_bad_input_is_one_sentence(folder, capsys, name, content, arguments, message):
    (folder / "empty").write_text("")
    (folder / name).write_text(content)
    assert main(["score", *arguments, *UNDO]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.splitlines()) == 1
    assert message in shown.err


def test_references_of_unequal_length(folder, capsys):
    (folder / "second").write_text("one\n")
    assert main(["score", "--hypotheses", "hyp.bpe", "--references", "ref.en", "second"]) == 1
    assert "second: 1 lines, but ref.en has 3" in capsys.readouterr().err
