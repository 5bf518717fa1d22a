"""The recipe of question answering: its options, rows and choices."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from seqstruct.harness.launch import load_recipe
from seqstruct.harness.logs import LogEntry
from seqstruct.harness.progress import Progress
from seqstruct.harness.recipe import Cell
from seqstruct.harness.run import Run

FOLDER = Path(__file__).resolve().parents[2] / "recipes" / "structured_attention"
answering = load_recipe(FOLDER / "question_answering.py")
module = sys.modules[type(answering).__module__]


def option(options, name):
    return options[options.index(name) + 1]


def test_rows_are_all_tasks_by_three_models_and_the_published_ones_are_among_them():
    assert len(answering.rows) == len(set(answering.rows)) == 60
    published = json.loads((FOLDER / "paper.json").read_text(encoding="utf-8"))["tables"]
    rows = {entry["row"] for entry in published["4"]["rows"] if not entry["row"].startswith("average")}
    assert rows <= set(answering.rows) and len(rows) == 36
    cells = [Cell(row, 1, scale) for row in answering.rows for scale in ("small", "paper")]
    hashes = {answering.configuration_hash(cell) for cell in cells}
    assert len(hashes) == 120


@pytest.mark.parametrize(("row", "steps", "arch"), [
    ("task 3 MemN2N", "3", "memn2n"),
    ("task 19 Binary CRF", "2", "memory_binary_crf"),
    ("task 20 Unary CRF", "1", "memory_unary_crf"),
])
def test_options_are_those_of_the_appendix(row, steps, arch):
    options = module.train_options(row, module.SETTINGS["paper"])
    assert (option(options, "--steps"), option(options, "--arch")) == (steps, arch)
    rates = [float(rate) for rate in option(options, "--lr").split(",")]
    assert len(rates) == 100
    assert [rates[e] for e in (0, 24, 25, 50, 75, 99)] == [0.01, 0.01, 0.005, 0.0025, 0.00125, 0.00125]
    assert option(options, "--memory") == "25" and option(options, "--renormalize") == "40"
    assert answering.seeds_of(Cell(row, 2, "paper")) == list(range(21, 41))


def test_settings_are_those_of_the_text_and_of_the_code():
    code = ["--no-temporal-encoding", "--initialization-deviation", "0.316"]
    linear, facts = ["--query-update", "linear"], ["--query-update", "facts"]
    assert module.variants("task 2 MemN2N") == [[], code]
    unary = [linear, facts, [*code, *linear], [*code, *facts]]
    assert module.variants("task 2 Unary CRF") == unary
    binary = [[*setting, *end] for setting in unary for end in ([], ["--end-potentials"])]
    assert module.variants("task 2 Binary CRF") == binary


def entries(accuracy, loss):
    return [LogEntry("valid", {"epoch": 100, "valid_accuracy": accuracy, "valid_loss": loss})]


def test_a_row_takes_the_setting_that_is_best_on_validation(tmp_path, monkeypatch):
    seen = []

    def fake(trainings, folder, threads):
        for options in trainings:
            option = dict(zip(options, options[1:], strict=False))
            assert "--valid-subset" not in option, "a choice sees no test figure"
            seen.append((option["--first-seed"], option["--seeds"], option["--max-epoch"], option["--query-update"]))
        return [[*entries(99, 0), *entries(*last)] for last in ((40, 1.5), (60, 1.0), (60, 0.9), (50, 0.1))]

    monkeypatch.setattr(module, "run_trainings", fake)
    with Progress() as progress:
        cells = [Cell("task 2 Unary CRF", seed, "smoke") for seed in (1, 2)]
        tried = [answering.search(Run(answering, cell, tmp_path, progress=progress), tmp_path) for cell in cells]
    assert tried[0] == tried[1] and len(seen) == 4, "once for all cells of a row"
    assert {words[:3] for words in seen} == {("100001", "2", "4")}
    assert [words[3] for words in seen] == ["linear", "facts"] * 2
    chosen = module.choose("task 2 Unary CRF", tried[0])
    assert chosen["accuracy"] == 60 and chosen["options"] == module.variants("task 2 Unary CRF")[2]


def test_settings_that_are_equally_good_are_refused():
    equal = [{"options": [name], "accuracy": 50.0, "loss": 0.5} for name in ("a", "b")]
    with pytest.raises(ValueError, match=r"task 2 MemN2N: two settings are best, .* 50 % .* 0.5 nats: \['a'\] and"):
        module.choose("task 2 MemN2N", equal)
    with pytest.raises(ValueError, match="found none"):
        module.last_validation([])
