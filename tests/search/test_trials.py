"""A search, run: what is trained, what is kept, and what is no result."""

from __future__ import annotations

import json

import pytest

from seqstruct.bridge.logs import LogEntry
from seqstruct.search.trials import search
from tests.data.scripts import prepared

SETTINGS = {
    "metric": "accuracy", "direction": "max", "at": "best", "tie": "loss", "epochs": 2, "up_to": 16,
    "grid": {"lr": [0.1, 0.2]}, "then": {"bias": [0.0, 2.0]}, "overrides": ["seeds=2"],
    "measurements": [{"metric": "reached", "unit": "%", "axis": "draw"}],
}


@pytest.fixture
def trained():
    """Words of the trainings that a function of learning rate and epochs stands in for."""
    calls = []

    def of(accuracy):
        def train(words):
            assert words[0] == "seeds=2"
            given = dict(word.lstrip("+").split("=") for word in words)
            lr, epochs = float(given["lr"]), int(given["optimization.max_epoch"])
            calls.append((lr, epochs, given.get("bias")))
            value = accuracy(lr, epochs) + float(given.get("bias", 0))
            return [LogEntry("valid", {"valid_accuracy": value, "valid_loss": 100 - value})]

        return train

    of.calls = calls
    return of


def test_settings_at_chance_are_trained_on_up_to_the_limit(trained, tmp_path):
    search(SETTINGS, tmp_path, 1, 60.0, trained(lambda lr, epochs: 90.0 if lr == 0.2 or epochs >= 8 else 52.0 + lr))
    assert trained.calls[:4] == [(0.1, 2, None), (0.2, 2, None), (0.1, 4, None), (0.1, 8, None)]
    assert trained.calls[4:] == [(0.1, 8, "0.0"), (0.1, 8, "2.0")], "the best with every other value, all else as it is"
    assert (tmp_path / "chosen").read_text() == "++lr=0.1 ++bias=2.0 ++optimization.max_epoch=8\n"
    (measured,) = json.loads((tmp_path / "measurements.json").read_text())
    assert measured["value"] == 92.0 and [x for x, _ in measured["points"]] == [1, 2, 3, 4]
    assert json.loads((tmp_path / "settings.json").read_text())["chance"] == 60.0


def test_a_search_whose_settings_stay_at_chance_is_refused(trained, tmp_path):
    with pytest.raises(ValueError, match="none of 2 settings differs from chance"):
        search(SETTINGS, tmp_path, 1, 60.0, trained(lambda lr, epochs: 52.0 + lr))
    assert [epochs for _, epochs, _ in trained.calls] == [2, 2, 4, 4, 8, 8, 16, 16], "no other value is tried"
    assert not (tmp_path / "chosen").exists()


def test_an_interrupted_search_goes_on(trained, tmp_path):
    def interrupted(words):
        if "++lr=0.2" in words:
            raise KeyboardInterrupt
        return trained(lambda lr, epochs: 80.0)(words)

    with pytest.raises(KeyboardInterrupt):
        search(SETTINGS, tmp_path, 1, None, interrupted)
    search(SETTINGS, tmp_path, 1, None, trained(lambda lr, epochs: 70.0))
    assert [lr for lr, _, _ in trained.calls] == [0.1, 0.2, 0.1, 0.1]
    assert (tmp_path / "chosen").read_text() == "++lr=0.1\n"


@pytest.mark.parametrize("other, words", [
    ({"metric": "loss", "direction": "min", "tie": None}, ()), ({"overrides": ["seeds=2", "a=1"]}, ()), ({}, ("b",)),
])
def test_what_another_search_reached_is_not_taken_over(trained, tmp_path, other, words):
    search(SETTINGS, tmp_path, 1, None, trained(lambda lr, epochs: 70.0))
    before, calls = (tmp_path / "settings.json").read_text(), list(trained.calls)
    with pytest.raises(ValueError, match="settings.json is of other trainings, of .* or another folder for these"):
        search({**SETTINGS, **other}, tmp_path, 1, None, trained(lambda lr, epochs: 70.0), words)
    assert (tmp_path / "settings.json").read_text() == before and trained.calls == calls


def test_a_search_without_a_note_of_what_it_was_told_goes_on(trained, tmp_path):
    search(SETTINGS, tmp_path, 1, None, trained(lambda lr, epochs: 70.0))
    kept, calls = json.loads((tmp_path / "settings.json").read_text()), list(trained.calls)
    del kept["of"]
    (tmp_path / "settings.json").write_text(json.dumps(kept))
    search(SETTINGS, tmp_path, 1, None, trained(lambda lr, epochs: 70.0))
    assert trained.calls == calls


def test_chance_is_of_what_is_to_be_greatest(trained, tmp_path):
    with pytest.raises(ValueError, match="chance is of an accuracy: expected the direction max, got min of accuracy"):
        search({**SETTINGS, "direction": "min"}, tmp_path / "out", 1, 60.0, trained(lambda lr, epochs: 70.0))
    assert trained.calls == [] and not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", ["{}", "[]", '{"tried'])
def test_damaged_settings_are_kept_and_named(trained, tmp_path, content):
    path = tmp_path / "settings.json"
    path.write_text(content)
    with pytest.raises(ValueError, match="settings.json: (truncated or altered|expected)"):
        search(SETTINGS, tmp_path, 1, None, trained(lambda lr, epochs: 70.0))
    assert path.read_text() == content and trained.calls == []


def test_a_setting_without_a_number_is_named(tmp_path):
    with pytest.raises(ValueError, match="lr=0.1: expected finite values of valid_accuracy, found none"):
        search(SETTINGS, tmp_path, 1, None, lambda words: [])


def test_a_setting_whose_training_breaks_is_named(tmp_path):
    """Gradients that are not finite, as fairseq tells of them."""

    def broken(words):
        raise FloatingPointError("gradients are Nan/Inf")

    with pytest.raises(ValueError, match="lr=0.1: gradients are Nan/Inf"):
        search(SETTINGS, tmp_path, 1, None, broken)


@pytest.mark.training
def test_the_command_tries_what_the_file_says_in_one_process(tmp_path, capfd, monkeypatch):
    """Two trainings of one setting give the same numbers: each is as if it were alone; seqstruct/ need not be here."""
    from seqstruct.cli import main

    for split in ("train", "dev", "test"):
        (tmp_path / f"stsa.binary.{split}").write_text("1 good film\n0 bad film\n1 fine\n0 dull\n" * 5)
    prepared("sst", "--from", tmp_path, "--unchecked", "--out", tmp_path / "data")
    (tmp_path / "train.yaml").write_text(
        "common: {user_dir: seqstruct, cpu: true, seed: 7}\ntask: {_name: text_classification, data: '???'}\n"
        "model: {_name: rnn_classifier, cell: B, hidden_size: 3, embed_dim: 4, vertical_dropout: 0.2}\n"
        "criterion: {_name: classification_cross_entropy}\noptimizer: {_name: adam}\nlr_scheduler: {_name: fixed}\n"
        "dataset: {batch_size: 4, num_workers: 0}\ncheckpoint: {save_dir: '???', patience: 1}\n"
    )
    (tmp_path / "search.yaml").write_text(
        "metric: loss\ndirection: min\nepochs: 3\ngrid: {optimization.lr: [[0.01], [0.01], [0.0]]}\n"
    )
    monkeypatch.chdir(tmp_path)
    words = ["search", "--config-dir", str(tmp_path), "--config-name", "train", f"task.data={tmp_path / 'data'}"]
    words += ["--settings", str(tmp_path / "search.yaml"), "--out", str(tmp_path / "out")]
    assert main(words) == 0
    tried = json.loads((tmp_path / "out" / "settings.json").read_text())["tried"]
    assert [one["setting"]["optimization.lr"] for one in tried] == [[0.01], [0.0]], "what is known is not tried again"
    assert (tmp_path / "out" / "chosen").read_text() == "++optimization.lr=[0.01]\n"
    (tmp_path / "again.yaml").write_text((tmp_path / "search.yaml").read_text().replace("[[0.01], ", "[[0.0], "))
    words[words.index("--settings") + 1 :] = [str(tmp_path / "again.yaml"), "--out", str(tmp_path / "other")]
    assert main(words) == 0
    again = json.loads((tmp_path / "other" / "settings.json").read_text())["tried"]
    assert [one["value"] for one in again] == [tried[1]["value"], tried[0]["value"]]
    assert main([*words[:-1], str(tmp_path / "cut"), "--max-minutes", "0.000001"]) == 0
    cut = json.loads((tmp_path / "cut" / "settings.json").read_text())["tried"]
    assert cut[0] == again[0] and cut[1]["value"] != again[1]["value"], "it ends after the first update"
    assert main([*words[:-1], str(tmp_path / "third"), "--max-minutes", "0"]) == 1
    assert main([*words[:-1], str(tmp_path / "third"), "--labels", str(tmp_path)]) == 1
    assert main([word.replace(f"={tmp_path / 'data'}", "=nowhere") for word in words[:-1]] + ["fourth"]) == 1
    assert not any((tmp_path / name).exists() for name in ("third", "fourth"))
