"""Weights of closing parentheses: by hand, of what place alone gives, and of a checkpoint's encoder."""

from __future__ import annotations

import pytest
import torch

from seqstruct.harness import measurements
from seqstruct.scoring.parentheses import (
    attended,
    even_weights,
    main,
    nearest_weights,
    pairs_of,
    weights_on_openings,
)
from tests.golden.checkpoints.make import FOLDER

FORM = "$ ( + ( * 1 2 ) 3 )".split()


def values(formulas):
    return [m.value for m in weights_on_openings(formulas)]


def test_pairs():
    assert pairs_of(FORM) == {7: 3, 9: 1}
    assert pairs_of(["$", "1"]) == {}


def test_by_hand():
    weights = torch.zeros(10, 10)
    weights[7, 3], weights[7, 1], weights[7, 0] = 0.5, 0.25, 0.25
    weights[9, 3] = 1.0
    weights[3, 1] = 1.0  # a row of no closing parenthesis
    weights[0, 1] = weights[1, 0] = weights[9, 8] = 0.5
    weights[2, 1], weights[2, 3] = 0.25, 0.75
    assert values([(FORM, weights)]) == pytest.approx([87.5, 25.0, 200 / 9])
    more = "$ ( + 1 2 )".split()
    assert values([(FORM, weights), (more, torch.zeros(6, 6))]) == pytest.approx([175 / 3, 50 / 3, 200 / 14])


def test_what_place_alone_gives():
    assert values([(FORM, even_weights(FORM))]) == pytest.approx([200 / 9, 100 / 9, 1700 / 81])
    assert even_weights(FORM).sum(1).tolist() == pytest.approx([1.0] * 10)
    assert values([(FORM, nearest_weights(FORM))]) == [100.0, 50.0, pytest.approx(200 / 9)]
    assert nearest_weights(FORM)[:2].sum() == 0


def test_of_a_checkpoint(tmp_path, capsys):
    data, out = FOLDER / "data" / "formulas", tmp_path / "weights.json"
    found = list(attended(FOLDER / "tree_transduction.pt", data))
    lines = (data / "test.prefix").read_text().splitlines()
    assert [" ".join(symbols) for symbols, _ in found] == lines
    for symbols, weights in found:
        assert weights.shape == (len(symbols), len(symbols))
        torch.testing.assert_close(weights[1:].sum(1), torch.ones(len(symbols) - 1, dtype=torch.float64))
    assert main([str(FOLDER / "tree_transduction.pt"), "--data", str(data), "--out", str(out)]) == 0
    assert [m.value for m in measurements.read(tmp_path, ["weights.json"])] == values(found)
    out.unlink()
    assert main([str(FOLDER / "palm.pt"), "--data", str(FOLDER / "data" / "text"), "--out", str(out)]) == 1
    assert capsys.readouterr().err.strip() and not out.exists()
