"""What a search tries, and which of it is best."""

from __future__ import annotations

import math
import re

import pytest

from seqstruct.bridge.logs import LogEntry
from seqstruct.search.settings import chance, choose, measurements, order, outcome, override, points, read_settings

TEXT = """
metric: accuracy
tie: loss
epochs: 3
grid:
  encoding: [{}, {model.age: true, model.deviation: 0.3}]
  optimization.lr: [[0.1], [0.2]]
where:
  scale=smoke: {epochs: 1}
  scale=smoke row=crf: {grid: {model.update: [linear]}}
"""
DRAWS = """
metric: accuracy
epochs: 3
count: 40
draws:
  model.size: {integers: [3, 5]}
  model.dropout: {uniform: [0.0, 0.5]}
  optimization.lr: {log_uniform: [1.0e-4, 1.0e-2]}
  model.bias: 1.0
"""


def settings_of(tmp_path, text, *words):
    (tmp_path / "search.yaml").write_text(text)
    return read_settings(tmp_path / "search.yaml", words)


def validation(accuracy, loss):
    return LogEntry("valid", {"valid_accuracy": accuracy, "valid_loss": loss})


def test_a_grid_has_all_combinations_and_what_holds_where(tmp_path):
    plain = settings_of(tmp_path, TEXT, "row=crf")
    assert plain["epochs"] == 3 and len(points(plain, 1)) == 4
    assert points(plain, 1)[2] == {"model.age": True, "model.deviation": 0.3, "optimization.lr": [0.1]}
    crf = settings_of(tmp_path, TEXT, "row=crf", "scale=smoke")
    assert crf["epochs"] == 1 and points(crf, 1)[1] == {"optimization.lr": [0.2], "model.update": "linear"}


def test_a_list_takes_no_more_keys_elsewhere(tmp_path):
    with pytest.raises(ValueError, match="grid: expected keys and values, got \\[1\\]"):
        settings_of(tmp_path, "grid: [1]\nwhere: {scale=smoke: {grid: {model.update: [2]}}}", "scale=smoke")


def test_draws_are_within_their_ends_and_those_of_the_seed(tmp_path):
    settings = settings_of(tmp_path, DRAWS)
    found = points(settings, 2)
    assert found == points(settings, 2) != points(settings, 3) and len(found) == 40
    assert found[:7] == points({**settings, "count": 7}, 2), "more draws leave the first ones as they are"
    assert {point["model.size"] for point in found} == {3, 4, 5} and {point["model.bias"] for point in found} == {1.0}
    rates = sorted(point["optimization.lr"][0] for point in found)
    assert 1e-4 <= rates[0] < 3e-4 and 3e-3 < rates[-1] <= 1e-2 and rates[20] < 3e-3, "uniform in the logarithm"
    assert all(0 <= point["model.dropout"] <= 0.5 for point in found)


@pytest.mark.parametrize("old, new, told", [
    ("tie: loss", "ties: loss", "expected keys of at, count"),
    ("epochs: 3", "direction: up\nepochs: 3", "direction: expected max or min, got 'up'"),
    ("epochs: 3", "", "expected metric, a name, and epochs, a number"),
    ("grid:", "draws: {}\ngrid:", "expected grid or draws, one of them"),
    ("epochs: 3", "epochs: 0", "epochs, a number of 1 or more"), ("metric: accuracy", "metric: [", "while parsing"),
    ("[[0.1], [0.2]]", "[]", "grid: optimization.lr: expected a list of values, got []"),
    ("[[0.1], [0.2]]", "0.1", "grid: optimization.lr: expected a list of values, got 0.1"),
    ("tie: loss", "then: 3", "then: expected keys and values, got 3"),
    ("tie: loss", "overrides: a=b", "overrides: expected a list of words, got 'a=b'"),
    ("tie: loss", "measurements: [{unit: n, of: k}]", "measurements: expected metric in {'unit': 'n'"),
    ("tie: loss", "measurements: [{unit: n, metric: m}]", "measurements: expected axis in"),
    ("tie: loss", "then: {k: [linear]}\nmeasurements: [{unit: n, metric: m, of: k}]",
     "measurements: of: k: expected a number, a list of them or a text with one, got 'linear'"),
    ("tie: loss", "measurements: [{unit: n, metric: m, of: [k]}]", "measurements: of: expected a key, got ['k']"),
    ("tie: loss", "measurements: [{unit: n, metric: m, axis: x, for: k}]", "for: expected a key of grid or draws"),
    ("tie: loss", "then: {k: [1]}\nmeasurements: [{unit: n, metric: m, axis: x, for: k}]",
     "that all settings have, got k"),
    ("grid:", "measurements: [{unit: n, metric: m, axis: x, for: k}]\ngrid:\n  both: [{k: 1}, {other: 1}]\n ",
     "that all settings have, got k"),
    ("tie: loss", "tie: 3", "expected of tie a name, and of up_to a number"),
    ("tie: loss", "up_to: many", "expected of tie a name, and of up_to a number"),
    ("scale=smoke: {epochs: 1}", "row=crf: 7", "row=crf: expected keys and values, got 7"),
    (TEXT, "- 1", "settings: expected keys and values, got [1]"),
])
def test_files_that_are_wrong(tmp_path, old, new, told):
    with pytest.raises(ValueError, match=f"search.yaml: .*{re.escape(told)}"):
        settings_of(tmp_path, TEXT.replace(old, new, 1), "row=crf")


@pytest.mark.parametrize("asked", [
    "{normal: [3, 5]}", "{integers: [3]}", "{integers: [5, 3]}", "{integers: [0.5, 3]}", "{uniform: 3}", "{}",
    "{log_uniform: [0, 1]}", "{uniform: [1, 2], integers: [1, 2]}", "{uniform: [1e-3, 2]}",
    "{uniform: [0.0, 0.00001]}", "{uniform: [0, .inf]}", "{log_uniform: [1, .inf]}",
])
def test_a_draw_of_no_known_kind(tmp_path, asked):
    with pytest.raises(ValueError, match="model.size: expected integers, uniform or log_uniform"):
        points(settings_of(tmp_path, DRAWS.replace("{integers: [3, 5]}", asked)), 1)


@pytest.mark.parametrize("count", ["", "count: 0", "count: many"])
def test_draws_without_a_count(tmp_path, count):
    with pytest.raises(ValueError, match="search.yaml: count: expected how many draws, 1 or more"):
        settings_of(tmp_path, DRAWS.replace("count: 40", count))


@pytest.mark.parametrize("value, word", [
    ([0.004], "++k=[0.004]"), (1e-07, "++k=1e-07"), (True, "++k=true"), ("linear", "++k=linear"),
    ("dependency(size=5,root='x')", '++k="dependency(size=5,root=\'x\')"'),
])
def test_overrides_are_words_of_hydra(value, word):
    from hydra.core.override_parser.overrides_parser import OverridesParser

    assert override("k", value) == word
    assert OverridesParser.create().parse_override(word).value() == value


def test_an_override_with_a_space_is_refused():
    with pytest.raises(ValueError, match="expected values without a space"):
        override("k", "a b")


def test_the_epoch_that_counts():
    entries = [validation(70, 1), validation(80, 2), validation(80, 3), validation(75, 4), validation(math.nan, 5)]
    best = {"metric": "accuracy", "direction": "max", "at": "best", "tie": "loss"}
    assert outcome(entries, best) == {"value": 80, "tie": 3}, "the last of equal ones, as fairseq keeps it"
    assert outcome(entries, {**best, "at": "last"}) == {"value": 75, "tie": 4}
    assert outcome(entries, {"metric": "loss", "direction": "min", "at": "best"}) == {"value": 1}
    with pytest.raises(ValueError, match="expected finite values of valid_f1, found none"):
        outcome(entries, {**best, "metric": "f1"})
    with pytest.raises(ValueError, match="expected valid_f1 beside valid_accuracy, found none"):
        outcome(entries, {**best, "tie": "f1"})


def test_chance_is_the_most_frequent_label_and_three_standard_errors():
    assert chance([1] * 64 + [0] * 36) == pytest.approx(64 + 3 * 4.8)
    assert chance([0, 0, 0]) == 100


def test_equal_settings_go_by_the_tie_and_are_refused_if_equal_in_that_too():
    settings = {"metric": "accuracy", "direction": "max", "tie": "loss"}

    def found(value, tie, lr):
        return {"setting": {"lr": lr}, "epochs": 3, "value": value, "tie": tie}

    tried = [found(70, 0.5, 1.0), found(80, 0.6, 2.0), found(80, 0.4, 3.0), found(60, 0.1, 4.0)]
    assert choose(settings, tried, 55.0) is tried[2] is min(tried, key=order(settings))
    with pytest.raises(ValueError, match=r"two settings are best, .* 80 and a loss of 0.4: .*3.0.* and .*5.0"):
        choose(settings, [*tried, found(80, 0.4, 5.0)], None)
    for lost in (found(80, math.nan, 5.0), found(80, math.nan, 6.0)):
        assert choose(settings, [lost, *tried], None) is choose(settings, [*tried, lost], None) is tried[2]
    assert choose(settings, [*tried, found(80, 0.4, 3.0)], None) is tried[2], "one setting drawn twice is no other"
    with pytest.raises(ValueError, match="none of 4 settings differs from chance: .* 80 after 3 epochs, .* than 80.5"):
        choose(settings, tried, 80.5)
    least = {"metric": "loss", "direction": "min"}
    equal = [{"setting": {}, "epochs": 1, "value": 1.0}, {"setting": {"a": 1}, "epochs": 1, "value": 1.0}]
    assert choose(least, equal, None) is equal[0]


@pytest.mark.parametrize("value, number", [
    (3, 3), ([0.5, 1], 0.5), (["1e-3"], 1e-3), ("1e-3", 1e-3), ("plan(step=-0.5)", -0.5), ("top-2", 2), ("a1_b.5", 0.5),
    ("plan(size=5,step=2E+1)", 20), (True, 1),
])
def test_numbers_of_what_is_recorded(value, number):
    (one,) = measurements({"measurements": [{"metric": "m", "unit": "1", "of": "k"}]}, [], {"setting": {"k": value}})
    assert one.value == number


def test_what_is_recorded():
    asked = [
        {"metric": "chosen_eta", "unit": "eta", "of": "eta"},
        {"metric": "at_rate_{}", "unit": "%", "for": "lr", "along": "eta", "axis": "eta"},
        {"metric": "reached", "unit": "%", "axis": "draw"},
    ]
    settings = {"direction": "max", "measurements": asked}
    tried = [{"setting": {"lr": [lr], "eta": f"plan(step={eta})"}, "value": 100 * lr + eta}
             for lr in (0.1, 0.2) for eta in (0.5, 1.0)]
    chosen, low, high, reached = measurements(settings, tried, tried[-1])
    assert (chosen.metric, chosen.value, chosen.unit) == ("chosen_eta", 1.0, "eta")
    assert (low.metric, low.value, low.points) == ("at_rate_0.1", 11.0, [(0.5, 10.5), (1.0, 11.0)])
    assert (high.metric, high.value, high.axis) == ("at_rate_0.2", 21.0, "eta")
    assert (reached.value, [x for x, _ in reached.points]) == (21.0, [1, 2, 3, 4])
    for one in tried:
        del one["setting"]["eta"]
    assert [(m.metric, len(m.points)) for m in measurements(settings, tried, tried[-1])] == [
        ("at_rate_0.1", 0), ("at_rate_0.2", 0), ("reached", 4)]
    tried[0]["setting"]["eta"] = 0.5
    assert [m.points for m in measurements(settings, tried, tried[-1])[:2]] == [[(0.5, 10.5)], ()], "where it is tried"
