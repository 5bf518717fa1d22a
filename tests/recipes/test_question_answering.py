"""The recipe of question answering: its rows, settings, and what is chosen on validation."""

from __future__ import annotations

import pytest

from seqstruct.search.settings import points, read_settings
from tests.recipes.composed import ROOT, commands, composed, option, published_rows, script

FAMILY = "structured_attention/question_answering"
recipe = script("structured_attention/table-4")


def test_rows_are_all_tasks_by_three_models_and_the_published_ones_are_among_them():
    rows = recipe.rows("paper")
    assert len(rows) == len(set(rows)) == 60 and len(recipe.baselines("paper")) == 24
    published = published_rows("structured_attention", "4")
    assert published <= set(rows) and len(published) == 36


@pytest.mark.parametrize(("row", "steps", "inference"), [
    ("task 3 MemN2N", 3, "memn2n"), ("task 19 Binary CRF", 2, "binary_crf"), ("task 20 Unary CRF", 1, "unary_crf"),
])
def test_settings_are_those_of_the_appendix(row, steps, inference):
    _, search, train, validate, _, record = commands(recipe, row, "paper", seed=2)
    config = composed(FAMILY, *[word for word in train if word.split("=")[0] in ("row", "facts", "scale")])
    assert (config["model"]["steps"], config["model"]["inference"]) == (steps, inference)
    rates = config["optimization"]["lr"]
    rates += rates[-1:] * (100 - len(rates))  # the last one stays
    assert [rates[e] for e in (0, 24, 25, 50, 75, 99)] == [0.01, 0.01, 0.005, 0.0025, 0.00125, 0.00125]
    assert (config["task"]["memory"], config["task"]["renormalize"], config["task"]["seeds"]) == (25, 40, 20)
    assert "+task.first_seed=21" in train and option(validate, "--first-seed") == "21"
    assert option(validate, "--seeds") == "20" and any(word.endswith("/chosen)") for word in train)
    assert record[0] == "seeds.json" and record[1].endswith("measurements.json")
    assert not any(word.startswith("dataset.valid_subset") for word in search), "a choice sees no test figure"


def test_what_is_tried_is_the_text_s_and_the_code_s():
    def tried(row, scale="paper"):
        path = ROOT / "configs" / FAMILY / "search.yaml"
        settings = read_settings(path, [f"row={row}", f"scale={scale}"])
        return settings, points(settings, 1)

    code = {"model.no_temporal_encoding": True, "model.initialization_deviation": 0.316}
    linear, facts = ({"model.query_update": update} for update in ("linear", "facts"))
    assert tried("memn2n")[1] == [{}, code]
    unary = [linear, facts, {**code, **linear}, {**code, **facts}]
    assert tried("unary_crf")[1] == unary
    assert tried("binary_crf")[1] == [{**one, "model.end_potentials": ends} for one in unary for ends in (False, True)]
    settings, _ = tried("unary_crf", "smoke")
    assert settings["overrides"][:2] == ["task.seeds=2", "++task.first_seed=100001"] and settings["at"] == "last"


def test_tasks_whose_facts_vary_in_number_have_accuracies_alone():
    *_, seeds, record = commands(recipe, "task 7 MemN2N", "small")
    assert "--answers-alone" in seeds
    *_, record = commands(recipe, "task 8 random answer", "paper")
    assert not any("fact" in word for word in record)
