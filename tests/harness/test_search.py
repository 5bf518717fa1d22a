"""Settings tried on the validation set: what is trained, what is kept, and what is no result."""

from __future__ import annotations

import pytest

from seqstruct.harness import search
from seqstruct.harness.logs import LogEntry
from seqstruct.harness.progress import Progress
from seqstruct.harness.recipe import Cell
from seqstruct.harness.run import Run
from tests.harness.fake_recipe import recipe


@pytest.fixture
def trained(monkeypatch):
    """The options of each training; each setting's accuracies by epoch are those that its --values says."""
    found = []

    def fake(trainings, folder, threads):
        found.extend(trainings)
        values = [options[options.index("--values") + 1].split(",") for options in trainings]
        return [
            [LogEntry("train", {"loss": 1.0}), *(LogEntry("valid", {"valid_accuracy": float(v)}) for v in of_one)]
            for of_one in values
        ]

    monkeypatch.setattr(search, "run_trainings", fake)
    return found


def run_of(seed, folder, progress):
    return Run(recipe, Cell("plain", seed, "small"), folder, progress=progress)


def test_the_best_epoch_of_each_setting_is_found_once_for_all_seeds(trained, tmp_path):
    settings = {"low": ["--values", "1,3,2"], "high": ["--values", "nan,2.5"]}
    with Progress() as progress:
        for seed in (1, 2):
            found = search.try_settings(
                run_of(seed, tmp_path, progress), "data", settings, epochs=3, metric="accuracy"
            )
            assert found == {"low": 3.0, "high": 2.5}
    assert len(trained) == 2
    with Progress() as progress:
        run = run_of(1, tmp_path / "loss", progress)
        least = search.try_settings(run, "data", settings, epochs=3, metric="accuracy", best=min)
    assert least == {"low": 1.0, "high": 2.5}
    for options in trained:
        given = dict(zip(options, options[1:], strict=False))
        assert options[0] == "data" and "--no-save" in options and "--cpu" in options
        assert (given["--seed"], given["--max-epoch"], given["--update-epoch-batch-itr"]) == ("1", "3", "True")


@pytest.mark.parametrize("values, metric", [("nan,inf", "accuracy"), ("1,2", "f1")])
def test_a_setting_without_a_number_is_refused(trained, tmp_path, values, metric):
    with Progress() as progress, pytest.raises(ValueError, match=f"plain, low: expected finite values of {metric}"):
        search.try_settings(
            run_of(1, tmp_path, progress), "data", {"low": ["--values", values]}, epochs=2, metric=metric
        )
    assert not list(tmp_path.rglob("search.json"))
