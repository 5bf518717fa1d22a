"""The task through fairseq-generate: its options reach the scores."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.models.front_door import fairseq


@pytest.fixture(scope="module")
def trained(reversals: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path | str]:
    """Data, and a model by option."""
    data, folder = reversals / "bin", tmp_path_factory.mktemp("gnmt")
    fairseq(
        "train", data, "--arch", "rnn_gnmt", "--encoder-layers", 3, "--decoder-layers", 3, "--embed-dim", 8,
        "--hidden-size", 8, "--optimizer", "adam", "--lr", 0.03, "--criterion", "cross_entropy", "--batch-size", 10,
        "--max-epoch", 2, "--disable-validation", "--no-epoch-checkpoints", "--save-dir", folder,
    )
    return [data, "--path", folder / "checkpoint_last.pt"]


def hypotheses(trained: list[Path | str], *options: object) -> dict[int, list[tuple[str, float, list[float]]]]:
    """Text, score and scores of symbols of each sentence's hypotheses, in bits, best first."""
    printed = fairseq("generate", *trained, "--beam", 4, "--nbest", 4, "--max-len-b", 8, "--batch-size", 7, *options)
    found: dict[int, list[tuple[str, float, list[float]]]] = {}
    pattern = r"^H-(\d+)\t(\S+)\t(.*)\nD-.*\nP-\d+\t(.*)$"
    for identity, score, text, symbols in re.findall(pattern, printed, re.MULTILINE):
        found.setdefault(int(identity), []).append((text, float(score), [float(x) for x in symbols.split()]))
    return found


@pytest.mark.training
def test_length_normalisation_divides_the_log_probability(trained: list[Path | str]) -> None:
    task = ["--task", "translation_gnmt", "--coverage-beta", 0, "--length-alpha"]
    plain, zero, some = (hypotheses(trained, *o) for o in (["--unnormalized"], [*task, 0], [*task, 0.6]))
    for identity, found in zero.items():
        assert {h[0]: h[1] for h in found} == pytest.approx({h[0]: h[1] for h in plain[identity]}, abs=1e-4)
    assert len(some) == 60
    for identity, found in some.items():
        assert {h[0] for h in found} == {h[0] for h in plain[identity]}
        assert [h[1] for h in found] == sorted((h[1] for h in found), reverse=True)
        for _, score, symbols in found:
            assert score == pytest.approx(sum(symbols) / ((5 + len(symbols)) / 6) ** 0.6, abs=1e-3)


@pytest.mark.training
def test_coverage_and_pruning_take_away(trained: list[Path | str]) -> None:
    task = ["--task", "translation_gnmt", "--length-alpha", 0]
    without, covered = (hypotheses(trained, *task, "--coverage-beta", beta) for beta in (0, 0.5))
    lower = 0
    for identity, found in covered.items():
        before = {h[0]: h[1] for h in without[identity]}
        assert set(before) == {h[0] for h in found}
        assert all(score <= before[text] + 1e-4 for text, score, _ in found)
        lower += sum(score < before[text] - 0.01 for text, score, _ in found)
    assert lower > 20
    pruned = hypotheses(trained, *task, "--beam-pruning", 0.5)
    assert sum(map(len, pruned.values())) < sum(map(len, covered.values()))


@pytest.mark.training
@pytest.mark.parametrize("option", ["--length-alpha", "--coverage-beta", "--beam-pruning"])
def test_numbers_out_of_range(trained: list[Path | str], option: str) -> None:
    for number in ("-1", "nan", "inf"):
        with pytest.raises(ValueError, match="penalties and pruning: expected finite numbers, 0 or more"):
            hypotheses(trained, "--task", "translation_gnmt", option, number)
