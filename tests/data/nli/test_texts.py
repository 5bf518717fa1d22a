"""Sentences of a prepared folder as text for a parser."""

from __future__ import annotations

import json

from seqstruct.data.nli import texts


def test_sentences_by_split_and_side(tmp_path, capsys):
    pairs = [{"premise": ["A", "dog", "."], "hypothesis": ["Dogs"], "label": "entailment"}] * 2
    command = [str(tmp_path), "--out", str(tmp_path / "out")]
    for split in ("train", "valid"):
        (tmp_path / f"{split}.jsonl").write_text("".join(f"{json.dumps(pair)}\n" for pair in pairs))
    assert texts.main(command) == 1
    assert "test.jsonl" in capsys.readouterr().err and not (tmp_path / "out").exists()
    (tmp_path / "test.jsonl").write_text(json.dumps(pairs[0]) + "\n")
    (tmp_path / "valid.jsonl").write_text(json.dumps(pairs[0]) + '\n{"words": ["A"]}\n')
    assert texts.main(command) == 1
    assert "valid.jsonl, line 2: truncated or altered: 'premise'" in capsys.readouterr().err
    (tmp_path / "valid.jsonl").write_text("")
    assert texts.main(command) == 0
    assert (tmp_path / "out" / "valid.hypothesis.txt").read_text() == ""
    assert sorted(path.name for path in (tmp_path / "out").iterdir())[:2] == ["test.hypothesis.txt", "test.premise.txt"]
    assert (tmp_path / "out" / "train.premise.txt").read_text() == "A dog .\n" * 2
