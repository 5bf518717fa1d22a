"""The recipes of Structured Attention Networks: rows of the tables, published settings, what cells start from."""

from __future__ import annotations

import pytest

from seqstruct.attention import Shape, Site
from seqstruct.harness.script import Cell, Script
from seqstruct.models.rnn_translation.model import parse_attention
from tests.recipes.composed import ROOT, published, trainings

FOLDER = ROOT / "recipes" / "structured_attention"


def settings(recipe, row, scale="paper"):
    return trainings(f"structured_attention/{recipe}", row, scale)


def test_published_settings_of_tree_transduction():
    (found,) = settings("table-2", "Structured")
    assert found["model"]["encoder_self_attention"] == "dependency(hidden_size=50, root_token=True)"
    assert (found["dataset"]["batch_size"], found["optimization"]["max_epoch"]) == (20, 13)
    assert found["lr_scheduler"] == {"_name": "decay_from_plateau", "lr_shrink": 0.5, "decay_after_epoch": 9}
    plan = Script(FOLDER / "table-2.sh").plan(Cell("Simple", 1, "paper"))
    assert plan.steps[0].words[3:9] == ("--train", "5000", "--valid", "200", "--test", "200")
    assert len(Script(FOLDER / "table-2.sh").cells("paper", ["Simple"])) == 3
    (again,) = settings("figure-3", "Structured")
    assert {**again, "checkpoint": found["checkpoint"]} == found


def test_published_settings_of_translation():
    (found,) = settings("table-3", "words, structured")
    assert found["model"] == {
        "_name": "rnn_translation", "cell": "lstm", "encoder_layers": 2, "decoder_layers": 2, "embed_dim": 500,
        "hidden_size": 500, "dropout": 0.3, "initialization_bound": 0.1, "cross_attention": "segmentation"}
    assert (found["optimizer"]["_name"], found["optimization"]["lr"], found["dataset"]["batch_size"]) == (
        "sgd", [1.0], 128)
    assert found["criterion"]["label_smoothing"] == 0 and found["optimization"]["max_epoch"] == 30
    plans = {row: settings("table-3", row)[-1]["model"]["cross_attention"] for row in (
        "characters, sigmoid", "words, unary l2", "words, simple")}
    assert list(plans.values()) == [
        "segmentation(pairwise=False, normalize=False)", "segmentation(normalize=False, score_l2=0.0001)", "luong"]
    (characters,), (words,) = (settings("table-3", f"{units}, simple", "small") for units in ("characters", "words"))
    assert [s["lr_scheduler"]["total_num_update"] for s in (characters, words)] == [4540, 4540]
    assert [s["optimization"]["max_epoch"] for s in (characters, words)] == [26, 10]


@pytest.mark.parametrize("scale, table, metrics", [
    ("paper", "3", ["tokenized_bleu", "bleu", "chrf"]), ("small", "3-stand-in", ["bleu", "chrf"])])
def test_translation_is_scored_as_published_at_scale_paper(scale, table, metrics):
    """By BLEU of tokens (appendix A.3); the stand-in's records have SacreBLEU."""
    entries = published("structured_attention", table)
    assert {entry.metric for entry in entries if entry.unit == "BLEU"} == {f"test_{metrics[0]}"}
    for row, command in (("words, structured", "score"), ("copy", "baseline")):
        plan = Script(FOLDER / "table-3.sh").plan(Cell(row, 1, scale))
        (words,) = [step.words for step in plan.steps if step.words[:2] == ("seqstruct", command)]
        given = list(words[words.index("--metrics") + 1 :][:3]) if "--metrics" in words else ["bleu", "chrf"]
        assert given == metrics, row


def test_all_rows_score_by_the_same_bilinear_map():
    """Appendix A.3; so that a row differs from another by its weights alone."""
    for row in Script(FOLDER / "table-3.sh").rows("paper"):
        plan = settings("table-3", row)[-1]["model"]["cross_attention"]
        attention = parse_attention(plan).build(Shape.of(Site.CROSS, 6))
        assert [n for n, _ in attention.named_parameters() if n != "pairwise"] == ["score.key_proj.weight"], row


def test_from_sigmoid_starts_from_a_sigmoid_model_of_its_seed():
    first, second = settings("table-3", "words, from sigmoid", "small")
    assert first["model"]["cross_attention"] == "segmentation(pairwise=False, normalize=False)"
    assert second["model"]["cross_attention"] == "segmentation(normalize=False)"
    assert second["checkpoint"]["finetune_from_model"] == f"{first['checkpoint']['save_dir']}/checkpoint_best.pt"
    plans = [Script(FOLDER / "table-3.sh").plan(Cell("words, from sigmoid", seed, "small")) for seed in (1, 2)]
    assert len({step.target for plan in plans for step in plan.steps if step.kind == "shared"}) == 2


def test_published_settings_of_inference():
    (found,) = settings("table-5", "Structured attention")
    assert found["model"]["intra_attention"] == "dependency(hidden_size=100)"
    assert (found["optimizer"]["_name"], found["task"]["initial_accumulator"]) == ("adagrad", 0.1)
    assert (found["optimization"]["lr"], found["optimization"]["clip_norm"], found["dataset"]["batch_size"]) == (
        [0.05], 5.0, 32)
    (none,) = settings("table-5", "No attention")
    assert none["model"]["intra_attention"] == "none"


def test_hard_parents_are_those_of_a_parser(tmp_path, monkeypatch):
    """Of our own, trained on trees that are tagged as the sentences are; at scale paper, given ones."""
    for name in ("nltk", "ud-partut", "ud-ewt"):
        (tmp_path / "data" / name).mkdir(parents=True)
    monkeypatch.setenv("SEQSTRUCT_REFERENCE", str(tmp_path))
    parser, model = settings("table-5", "No attention + hard parent", "small")
    assert parser["task"]["_name"] == "joint_parsing" and parser["optimization"]["max_epoch"] == 12
    assert model["model"]["intra_attention"] == "hard_parents"
    plan = Script(FOLDER / "table-5.sh").plan(Cell("No attention + hard parent", 1, "small"), runs=tmp_path / "runs")
    lines = {" ".join(step.words[:3]): step.words for step in plan.steps}
    trees, parse = lines["seqstruct prepare parsing"], next(w for w in lines.values() if "parse-dependencies" in w)
    assert [word.rpartition("/")[2] for word in trees[4:7]] == [
        "en_partut-ud-train.conllu", "en_ewt-ud-dev.conllu", "en_partut-ud-dev.conllu"]
    taggers = {words[words.index("--tagger") + 1] for words in (trees, parse)}
    assert taggers == {str(tmp_path / "data" / "nltk" / "brown.zip")}
    pairs = [step for step in plan.steps if "--heads" in step.words]
    assert pairs[-1].words[pairs[-1].words.index("--heads") + 1] == parse[parse.index("--out") + 1]
    (tmp_path / "data" / "snli").mkdir()
    given = Script(FOLDER / "table-5.sh").plan(Cell("No attention + hard parent", 1, "paper")).steps[0].words
    assert given[given.index("--heads") + 1] == str(tmp_path / "data" / "snli" / "heads")
