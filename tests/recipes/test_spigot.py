"""The recipes of SPIGOT's tables: their rows, how methods differ, what is tried, and what is compared."""

from __future__ import annotations

import pytest

from seqstruct.search.settings import points, read_settings
from tests.recipes.composed import ROOT, commands, composed, option, published, script

FAMILY, FORMULAS = "peng_thesis/joint_parsing", "structured_attention/tree_transduction"


def test_what_the_stand_in_quotes_is_what_table_2_1_says():
    values = {(entry.row, entry.metric): entry.value for entry in published("peng_thesis", "2.1")}
    quoted = {(entry.row, entry.metric): entry.statement for entry in published("peng_thesis", "2.1-stand-in")}

    def place(row, other, score, formalism):
        own, theirs = (values[f"{formalism} {name}", f"in_domain_{score}"] for name in (row, other))
        return "ahead" if own > theirs else "behind" if own < theirs else "equal"

    for score in ("labeled_f1", "unlabeled_f1"):
        first, second = (place("SPIGOT", "STE", score, formalism) for formalism in ("DM", "PSD"))
        said = quoted["SPIGOT", f"test_{score}"]
        assert said.removesuffix(" in domain") == f"{first} of STE on DM, {second} on PSD"
        for row, known in (("SA", {"behind", "equal"}), ("STE", {"ahead"})):
            assert {place(row, "PIPELINE", score, formalism) for formalism in ("DM", "PSD")} <= known
    assert values["DM NEURBOPARSER", "in_domain_unlabeled_f1"] is None
    assert quoted["PIPELINE", "test_unlabeled_f1"] == "not given" != quoted["PIPELINE", "test_labeled_f1"]


@pytest.mark.parametrize("row, intermediate, gradient, loss", [
    ("spigot", "tree", "spigot", "hinge"), ("ste", "tree", "ste", "hinge"), ("sa", "tree", "marginal", "likelihood"),
    ("pipeline", "tree", "pipeline", "hinge"), ("no_syntax", "none", None, None),
])
def test_each_method_is_a_row(row, intermediate, gradient, loss):
    config = composed(FAMILY, f"row={row}")
    model = config["model"]
    assert (model["intermediate"], model.get("gradient")) == (intermediate, gradient)
    assert config["criterion"].get("tree_loss") == loss
    rates = config["optimization"]["lr"]
    assert len(rates) == config["optimization"]["max_epoch"] == 30, "halved every five epochs"
    assert rates == [float(f"{0.001 * 0.5 ** (epoch // 5):g}") for epoch in range(30)]
    assert model["prune_below"] == 0.001 and "prune_below" not in composed(FAMILY, "scale=small")["model"]


def test_freda3_shares_its_encoder_over_three_formalisms():
    config = composed(FAMILY, "row=freda3")
    assert config["model"]["shared_encoder"] and config["task"]["corpora"] == "dm,psd,pas"
    assert composed(FAMILY, "row=neurboparser_psd")["task"]["corpora"] == "psd"


def test_all_rows_try_the_same_rates_and_those_with_an_eta_the_same_etas():
    def tried(row, scale):
        return points(read_settings(ROOT / "configs" / FAMILY / "search.yaml", [f"row={row}", f"scale={scale}"]), 1)

    for row in ("no_syntax", "pipeline", "sa"):
        assert [point["optimization.lr"] for point in tried(row, "small")] == [[0.004], [0.008]]
    assert tried("ste", "small") == tried("spigot", "small") and len(tried("ste", "small")) == 8
    assert tried("ste", "small")[:4] == [
        {"optimization.lr": [0.004], "model.step_size": eta} for eta in (0.03, 0.1, 0.3, 1.0)]
    assert len(tried("spigot", "smoke")) == 2 and len(tried("sa", "smoke")) == 1


@pytest.mark.parametrize("table, row", [("2.1", "DM SPIGOT"), ("2.1-stand-in", "STE")])
def test_trees_are_held_against_the_pipeline_s_of_the_same_seed(table, row):
    words = commands(script(f"peng_thesis/table-{table}"), row, "paper", seed=3)
    trainings = [found for found in words if found[0] == "fairseq-hydra-train"]
    assert [word for found in trainings for word in found if word.startswith("row=")][1] == "row=pipeline"
    assert all("common.seed=3" in found for found in trainings)
    (compared,) = (found for found in words if "seqstruct.harness.changed_trees" in found)
    saved = next(word for word in trainings[1] if word.startswith("checkpoint.save_dir="))
    assert option(compared, "--before") == f"{saved.partition('=')[2]}/checkpoint_best.pt"
    assert any(word.endswith(":changes.json") for word in words[-1])
    assert not [found for found in words if found[1] == "search"], "scale paper has the published settings"


def test_both_learn_after_the_parser_alone():
    words = commands(script("peng_thesis/table-2.2"), "SPIGOT", "small", seed=2)
    alone, both = (found for found in words if found[0] == "fairseq-hydra-train")
    assert option(alone, "--config-name") == "parser" and "common.seed=2" in alone
    saved = next(word for word in alone if word.startswith("checkpoint.save_dir=")).partition("=")[2]
    assert f"+task.pretrained_parser={saved}/checkpoint_best.pt" in both
    config = composed("peng_thesis/graph_sentiment", "row=spigot", "scale=small")
    assert config["task"]["share_of_others"] == 0.2 and config["model"]["step_size"] == 5 / 32
    assert composed("peng_thesis/graph_sentiment", "row=bilstm")["task"]["corpora"] == "classes"
    parser = composed("peng_thesis/graph_sentiment", "scale=parser_small", name="parser")
    assert (parser["dataset"]["batch_size"], parser["optimization"]["max_epoch"]) == (8, 20)
    assert parser["model"]["lemma_dim"] == 0 and parser["model"]["tag_dim"] == 32, "tags are those of a tagger"
    assert "--tagged" in words[0]


@pytest.mark.parametrize("name, words", [("train", ("row=spigot",)), ("train", ("row=bilstm",)), ("parser", ())])
def test_sentiment_over_graphs_has_the_published_settings(name, words):
    config = composed("peng_thesis/graph_sentiment", *words, name=name)
    model, rates = config["model"], config["optimization"]["lr"]
    assert (model["word_dim"], model["prune_below"], config["optimizer"]["weight_decay"]) == (300, 0.001, 1e-6)
    assert 0.2 <= model["classifier_embedding_dropout"] <= 0.5, "table C.1"
    assert (config["dataset"]["batch_size"], config["optimization"]["clip_norm"]) == (32, 5)
    assert rates == [float(f"{0.001 * 0.5 ** (epoch // 5):g}") for epoch in range(30)]


@pytest.mark.parametrize("row, scale, eta", [
    ("SPIGOT", "paper", 5 / 32), ("STE", "paper", 1), ("SPIGOT", "small", 5 / 32), ("STE", "small", 5 / 32),
])
def test_the_straight_through_gradient_of_table_2_2_is_the_identity(row, scale, eta):
    *_, both = (found for found in commands(script("peng_thesis/table-2.2"), row, scale) if found[0].endswith("train"))
    groups = [word for word in both if word.split("=")[0] in ("row", "scale")]
    model = composed("peng_thesis/graph_sentiment", *groups)["model"]
    assert (model["gradient"], model["step_size"]) == (row.lower(), eta)


def test_latent_trees_of_formulas_try_the_same_etas():
    def tried(row):
        path = ROOT / "configs" / FORMULAS / "search.yaml"
        settings = read_settings(path, [f"row=latent_{row}", "scale=latent_small"])
        assert (settings["metric"], settings["direction"], settings["epochs"]) == ("loss", "min", 5)
        return [point["model.encoder_self_attention"] for point in points(settings, 1)]

    assert [plan.replace("spigot", "ste") for plan in tried("spigot")] == tried("ste")
    assert [plan.rpartition("step_size=")[2] for plan in tried("ste")] == ["0.03)", "0.1)", "0.3)", "1)"]
    recipe = script("peng_thesis/latent-trees")
    for row in ("pipeline", "spigot"):
        words = commands(recipe, f"transduction {row}", "small")
        assert any("search" in found for found in words) == (row == "spigot")
    plan = composed(FORMULAS, "row=latent_marginal", "scale=latent_paper")["model"]["encoder_self_attention"]
    assert plan == "dependency(hidden_size=50, root_token=True, gradient='marginal', step_size=1)"
    sentiment = composed("peng_thesis/latent_trees", "row=ste")["model"]
    assert (sentiment["gradient"], sentiment["intermediate"], sentiment["step_size"]) == ("ste", "tree", 5 / 32)
