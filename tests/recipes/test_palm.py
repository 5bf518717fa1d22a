"""The recipes of PaLM: their rows, settings and data."""

from __future__ import annotations

import pytest

from seqstruct.harness.script import Cell
from tests.recipes.composed import commands, composed, option, script

FAMILY = "peng_thesis/palm"
ROWS = ("AWD-LSTM", "PRPN", "ON-LSTM", "PaLM-U", "PaLM-RB", "PaLM-S", "PaLM-U last layer")


def trained(table, row, scale, **options):
    words = commands(script(f"peng_thesis/table-{table}"), row, scale, **options)
    train = next(found for found in words if found[0] == "fairseq-hydra-train")
    groups = [word for word in train if word.split("=")[0] in ("row", "spans", "scale")]
    return composed(FAMILY, *groups, name=option(train, "--config-name"))


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("scale", ["smoke", "small", "paper"])
def test_where_attention_is_and_who_is_supervised(row, scale):
    config = trained("3.1", row, scale)
    model = config["model"]
    assert config["task"]["_name"] == "span_language_modeling"
    assert config["criterion"].get("span_supervision", 0.0) == (0.01 if row == "PaLM-S" else 0.0)
    assert model.get("right_branching", False) == (row == "PaLM-RB")
    if row.startswith("PaLM"):
        layers = model["decoder_layers"]
        assert model["attention_layer"] == (layers if row.endswith("last layer") else layers - 1)
        assert scale == "paper" or model["span_size"] == model["hidden_size"] // 4


def test_published_settings():
    config = trained("3.1", "PaLM-S", "paper")
    assert (config["model"]["max_span"], config["lr_scheduler"]["switch_epoch"]) == (20, 40)
    assert (config["optimization"]["lr"], config["optimizer"]["first"]) == ([0.001], "adam")
    for table, row, epochs in (("3.1", "ON-LSTM", 1000), ("3.1", "AWD-LSTM", 500), ("3.2", "AWD-LSTM", 750)):
        config = trained(table, row, "paper")
        schedule = config["lr_scheduler"]
        assert (config["optimizer"]["first"], config["optimization"]["lr"]) == ("sgd", [30.0]), "not as PaLM"
        assert (schedule["switch_epoch"], schedule["nonmonotone"], schedule["averaged_lr"]) == (0, 5, 30.0)
        assert config["optimization"]["max_epoch"] == epochs
        assert trained(table, row, "small")["lr_scheduler"]["switch_epoch"] == 60
    prpn = trained("3.1", "PRPN", "paper")
    assert prpn["criterion"]["activation_penalty"] == 0 and "random_segments" not in prpn["task"]
    assert (prpn["task"]["tokens_per_sample"], prpn["dataset"]["batch_size"]) == (35, 64)
    assert (prpn["optimizer"]["_name"], prpn["optimizer"]["adam_betas"]) == ("adam", "(0.0, 0.999)")
    found = prpn["optimization"]
    assert (found["lr"], found["clip_norm"], found["max_epoch"]) == ([0.003], 1.0, 100)
    assert (prpn["lr_scheduler"]["lr_shrink"], prpn["lr_scheduler"]["lr_patience"]) == (0.5, 2)


def test_wikitext2_has_the_published_setting(tmp_path):
    config = trained("3.2", "PaLM-S", "paper")
    model = config["model"]
    assert (model["max_span"], model["hidden_size"], config["dataset"]["batch_size"]) == (10, 1150, 80)
    assert (model["input_dropout"], model["hidden_dropout"], model["weight_dropout"]) == (0.65, 0.2, 0.5)
    assert config["task"]["_name"] == "stream_language_modeling" and config["optimization"]["max_epoch"] == 750
    (tmp_path / "train.mrg").touch()
    assert trained("3.2", "PaLM-S", "paper", source=tmp_path)["task"]["_name"] == "span_language_modeling"


def test_untrained_models_have_25_seeds():
    branching = script("peng_thesis/table-3.4")
    cells = branching.cells("paper")
    assert [cell.seed for cell in cells if cell.row == "Random"] == list(range(1, 26)) and len(cells) == 29
    assert branching.cells("smoke") == [Cell("Random", 1, "smoke"), Cell("Right branching", 1, "smoke")]


def test_trees_are_scored_where_they_belong():
    *_, record = commands(script("peng_thesis/table-3.1"), "PaLM-U", "small")
    for asked in ("3.3-stand-in:unlabeled_f1[%]=40.json:f1", "3.4-stand-in:left_splits[%]=40.json:left_splits",
                  "3.3-stand-in:left_score_unlabeled_f1[%]=left.json:f1"):
        assert asked in record
    *_, record = commands(script("peng_thesis/table-3.4"), "Gold", "paper")
    assert [word for word in record if "[%]" in word] == [
        "left_splits[%]=40.json:left_splits", "right_splits[%]=40.json:right_splits"]
    *_, parse, _ = commands(script("peng_thesis/table-3.4"), "Random", "small", seed=7)
    assert option(parse, "--seed") == "7" and "row=palm_u" in parse
