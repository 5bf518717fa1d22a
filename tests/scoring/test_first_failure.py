"""The share before the first failure, on cases by hand."""

from __future__ import annotations

import pytest

from seqstruct.data.tree_transduction.folder import FormulasRequest, read_meta, read_split, write_folder
from seqstruct.harness import measurements
from seqstruct.scoring.first_failure import main, share_before_failure


@pytest.mark.parametrize(
    "hypothesis, expected",
    [("1 + 2", 1.0), ("1 + 3", 0.5), ("2 + 2", 0.0), ("", 0.0), ("1 +", 0.5), ("1 + 2 + 2", 0.75), ("1 * 2", 0.25)],
)
def test_by_hand(hypothesis: str, expected: float) -> None:
    assert share_before_failure(hypothesis.split(), ["1", "+", "2"]) == expected


def test_an_empty_reference() -> None:
    assert share_before_failure([], []) == 1.0 and share_before_failure(["1"], []) == 0.0


def test_shares_of_decoded_formulas_by_depth(tmp_path, capsys):
    data, out = tmp_path / "data", tmp_path / "shares.json"
    write_folder(FormulasRequest(train=1, valid=2, test=1), data)
    command = [str(data), "--results", str(tmp_path), "--out", str(out)]
    assert main(command) == 1
    assert "generate-valid.txt" in capsys.readouterr().err and not out.exists()
    for split, wrong in (("valid", False), ("test", True)):
        infix = read_split(data, split, read_meta(data)).infix
        lines = (f"H-{i}\t0.0\t{'x' if wrong and i == 0 else ' '.join(form)}\n" for i, form in enumerate(infix))
        (tmp_path / f"generate-{split}.txt").write_text("".join(lines))
    assert main(command) == 0
    found = {m.metric: m for m in measurements.read(tmp_path, ["shares.json"])}
    assert found["validation_length_to_failure"].value == 100
    assert [found[f"length_to_failure_depth_{depth}"].value for depth in range(2, 7)] == [0, 100, 100, 100, 100]
    assert found["length_to_failure"].value == 80 and len(found["length_to_failure"].points) == 5
