"""Which target a score prefers: counted by hand, by a column, at random, with ties."""

from __future__ import annotations

import json

import pytest

from seqstruct.scoring.phrase_choice import agreement, main

LINES = [  # p(t | s) is the third score, lex(t | s) the fourth, a model's the fifth
    "a ||| x ||| 1 1 0.75 0.1 0.9 ||| 0-0", "a ||| y ||| 1 1 0.25 0.2 0.1 ||| 0-0",
    "no phrase pair", "a b ||| z ||| 1 one 1 1 1",
    "b ||| x ||| 1 1 0.5 0.3 0.2", "b ||| y ||| 1 1 0.5 0.3 0.3",  # seen equally often: it does not count
    "c ||| x ||| 1 1 0.4 0.3 0.2", "c ||| y ||| 1 1 0.4 0.1 0.1", "c ||| z ||| 1 1 0.2 0.3 0.3",
    "d ||| x ||| 1 1 1 1 1",
    "e ||| x ||| 1 1 0.9 0.9 0.1", "e ||| y ||| 1 1 0.1 0.1",  # one was not scored: it does not count
]


@pytest.mark.parametrize("by, share", [
    ("last", (1 + 0) / 2), ("lexical", (0 + 1 / 2) / 2), ("random", (1 / 2 + 2 / 3) / 2),
])
def test_the_share_counted_by_hand(by, share, tmp_path, capsys):
    (tmp_path / "phrase-table").write_text("\n".join(LINES) + "\n")
    for table in (tmp_path, tmp_path / "phrase-table"):
        assert main([str(table), "--by", by, "--out", str(tmp_path / "choice.json")]) == 0
        found = {one["metric"]: one["value"] for one in json.loads((tmp_path / "choice.json").read_text())}
        assert found["most_frequent_chosen"] == pytest.approx(100 * share, abs=1e-9) and found["source_phrases"] == 2
    assert "of 2 source phrases" in capsys.readouterr().out


def test_refusals(tmp_path, capsys):
    with pytest.raises(ValueError, match="seen unequally often"):
        agreement([("a", [1, 1, 0.5, 1]), ("a", [1, 1, 0.5, 0.5])], None, 4)
    (tmp_path / "short").write_text("a ||| x ||| 1 0.5\na ||| y ||| 1 0.5\n")
    for table, said in ((tmp_path / "short", "and four scores; found none"), (tmp_path, "phrase-table.gz in it"),
                        (tmp_path / "none", "No such file")):
        assert main([str(table), "--out", str(tmp_path / "choice.json")]) == 1
        assert said in capsys.readouterr().err
    assert not (tmp_path / "choice.json").exists()
