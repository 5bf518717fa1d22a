"""The tree of a test sentence, by a model that answers with heads."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import torch

from seqstruct.scoring import learned_tree


@pytest.fixture
def data(tmp_path, monkeypatch):
    pairs = [(["A"], ["So", "short"]), (["A"], ["One", "two", "three", "four", "five", "six"])]
    lines = [json.dumps({"premise": p, "hypothesis": h, "label": "entailment"}) for p, h in pairs]
    (tmp_path / "test.jsonl").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "nli.json").write_text(json.dumps({"labels": ["entailment"], "lowercase": False}))
    words = sorted({word for pair in pairs for side in pair for word in side})
    task = SimpleNamespace(vocabulary={word: number for number, word in enumerate(words, 1)})
    model = SimpleNamespace(tree=lambda tokens: torch.arange(tokens.size(1))[None])
    monkeypatch.setattr(learned_tree, "load_model", lambda *_, **__: (model, task))
    return tmp_path


def test_a_line_for_each_word_with_its_head(data, capsys):
    out = data / "tree.txt"
    assert learned_tree.main([str(data), "model.pt", "--out", str(out)]) == 0
    lines = out.read_text().splitlines()
    assert lines[0] == "1\tOne\t0\tROOT" and lines[-1] == "6\tsix\t5\tfive" and len(lines) == 6
    assert capsys.readouterr().out == out.read_text()
    assert learned_tree.learned_tree(data, "model.pt", shortest=2).startswith("1\tSo\t0\tROOT")


def test_what_is_missing_is_said(data, capsys):
    (data / "nli.json").unlink()
    assert learned_tree.main([str(data), "model.pt", "--out", str(data / "tree.txt")]) == 1
    assert "nli.json" in capsys.readouterr().err and not (data / "tree.txt").exists()
