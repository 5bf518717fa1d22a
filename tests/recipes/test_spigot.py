"""The recipes of SPIGOT's tables: rows of paper.json, options, and what is said where corpora are missing."""

import json
import sys
from pathlib import Path

import pytest
import yaml

from seqstruct.data.parsing.folder import Corpus, read_meta, read_split
from seqstruct.data.parsing.sentence import TOP, AnnotatedSentence
from seqstruct.harness.launch import load_recipe
from seqstruct.harness.progress import Progress
from seqstruct.harness.recipe import Cell
from seqstruct.harness.run import Run

FOLDER = Path(__file__).resolve().parents[2] / "recipes" / "peng_thesis"
NAMES = ("syntax_then_graph", "syntax_then_graph_published", "graph_sentiment", "latent_trees")


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_those_of_the_tables(name):
    recipe = load_recipe(FOLDER / f"{name}.py")
    tables = json.loads((FOLDER / "paper.json").read_text())["tables"]
    rows = {entry["row"] for entry in tables[recipe.table]["rows"]}
    assert rows <= set(recipe.rows)
    assert set(recipe.smoke_rows) <= set(recipe.rows)
    for row in recipe.rows:
        for scale in ("smoke", "small", "paper"):
            cell = Cell(row, 1, scale)
            assert recipe.configuration_hash(cell) and recipe.dataset(cell) and recipe.estimate(cell).minutes > 0


def test_each_method_is_an_option():
    recipe = load_recipe(FOLDER / "syntax_then_graph.py")
    found = {row: recipe.settings(Cell(row, 1, "small"))["train_options"] for row in recipe.rows}
    assert found["SPIGOT"][-6:] == ["--intermediate", "tree", "--gradient", "spigot", "--tree-loss", "hinge"]
    assert found["SA"][-3:] == ["marginal", "--tree-loss", "likelihood"]
    assert found["no syntax"][-2:] == ["--intermediate", "none"]


def test_all_rows_try_the_same_rates_and_those_with_an_eta_the_same_etas(tmp_path, monkeypatch):
    recipe = load_recipe(FOLDER / "syntax_then_graph.py")
    module = sys.modules[type(recipe).__module__]
    setting = module.SETTINGS["small"]
    tried = {row: module.points(row, setting) for row in recipe.rows}
    assert all({point.rate for point in found} == set(setting.rates) for found in tried.values())
    assert tried["STE"] == tried["SPIGOT"] and {point.eta for point in tried["STE"]} == set(setting.etas)
    assert all(point.eta is None for row in ("no syntax", "PIPELINE", "SA") for point in tried[row])
    assert not module.points("SPIGOT", module.SETTINGS["paper"])

    values = {str(point): float(number) for number, point in enumerate(tried["STE"])}
    chosen = []
    monkeypatch.setattr(module, "try_settings", lambda run, data, settings, **_: values)
    monkeypatch.setattr(Run, "fairseq_train", lambda run, data, options, *, epochs: chosen.append(options))
    with Progress() as progress:
        run = Run(recipe, Cell("STE", 2, "small"), tmp_path, progress=progress)
        recipe.train(run, tmp_path)
        found = {m.metric: m for m in module.searched_measurements(recipe.search(run, tmp_path))}
    assert chosen[0][-4:] == tried["STE"][-1].options == ["--lr", "0.008", "--step-size", "1"]
    assert (found["chosen_learning_rate"].value, found["chosen_eta"].value) == (0.008, 1.0)
    assert found["search_f1_at_rate_0.004"].points == [(0.03, 0.0), (0.1, 1.0), (0.3, 2.0), (1.0, 3.0)]


def test_latent_trees_of_formulas_try_the_same_etas(tmp_path, monkeypatch):
    recipe = load_recipe(FOLDER / "latent_trees.py")
    module = sys.modules[type(recipe).__module__]
    tried = []

    def fake(run, data, settings, *, epochs, metric, best):
        tried.append(settings)
        return {name: float(name != "eta 0.3") for name in settings}

    chosen = []
    monkeypatch.setattr(module, "try_settings", fake)
    monkeypatch.setattr(Run, "fairseq_train", lambda run, data, options, *, epochs: chosen.append(options))
    with Progress() as progress:
        for gradient in module.GRADIENTS:
            cell = Cell(f"transduction {gradient}", 1, "small")
            recipe.train(Run(recipe, cell, tmp_path, progress=progress), tmp_path)
    assert [list(settings) for settings in tried] == [["eta 0.03", "eta 0.1", "eta 0.3", "eta 1"]] * 2
    plans = [options[options.index("--encoder-self-attention") + 1] for options in chosen]
    assert [plan.rpartition("step_size=")[2] for plan in plans] == ["1)", "0.3)", "0.3)", "1)"]


def test_graphs_and_classes_are_tagged_by_the_same_tagger(tmp_path, monkeypatch):
    recipe = load_recipe(FOLDER / "graph_sentiment.py")
    module = sys.modules[type(recipe).__module__]
    for setting in module.SETTINGS.values():
        for options in (setting.graph_options, setting.options):
            assert "--tag-dim" not in options or options[options.index("--tag-dim") + 1] != "0"
    bare = {split: [AnnotatedSentence(("a", "dog"), arcs=((0, 2, TOP),))] for split in ("train", "valid", "test")}
    monkeypatch.setattr(module, "stand_in_graphs", lambda run: Corpus("graphs", bare))
    monkeypatch.setattr(module, "sentences", lambda path: [AnnotatedSentence(("a", "film"), label="1")])
    monkeypatch.setattr(module, "read_brown", lambda path: [[("a", "at"), ("dog", "nn"), ("film", "nn")]])
    monkeypatch.setattr(Run, "raw_data", lambda run, name: tmp_path)
    with Progress() as progress:
        data = recipe.prepare(Run(recipe, Cell("SPIGOT", 1, "small"), tmp_path, progress=progress))
    meta = read_meta(data)
    for corpus in ("graphs", "classes"):
        for split in ("train", "valid", "test"):
            assert [s.tags for s in read_split(data, corpus, split, meta)] == [("at", "nn")]


@pytest.mark.parametrize("name, row", [("syntax_then_graph", "SPIGOT"), ("syntax_then_graph_published", "DM SPIGOT"),
                                       ("graph_sentiment", "SPIGOT"), ("latent_trees", "SST ste")])  # fmt: skip
def test_a_missing_corpus_is_named(name, row, tmp_path, monkeypatch):
    monkeypatch.delenv("SEQSTRUCT_REFERENCE", raising=False)
    recipe = load_recipe(FOLDER / f"{name}.py")
    with Progress() as progress, pytest.raises(ValueError, match="--from names a folder"):
        run = Run(recipe, Cell(row, 1, "small"), tmp_path, progress=progress)
        recipe.prepare(run)


def test_the_stand_ins_are_split_as_said(tmp_path, monkeypatch, reference):
    recipe = load_recipe(FOLDER / "syntax_then_graph.py")
    with Progress() as progress:
        data = recipe.prepare(Run(recipe, Cell("SPIGOT", 1, "small"), tmp_path, progress=progress))
    meta = json.loads((data / "corpora.json").read_text())["corpora"]
    counts = {name: {split: f["sentences"] for split, f in entry["files"].items()} for name, entry in meta.items()}
    assert counts["ewt"] == {"train": 1796, "valid": 200, "test": 2077}
    assert meta["ewt"]["left_out"] == {"too long": 5}
    assert counts["trees"]["train"] == 1714
    assert meta["trees"]["left_out"] == {"too long": 34, "not projective: drop": 33}


ROWS = {"no_syntax": "no syntax", "pipeline": "PIPELINE", "sa": "SA", "ste": "STE", "spigot": "SPIGOT"}


@pytest.mark.parametrize("name, row", ROWS.items())
def test_hydra_rows_describe_the_recipe_s_methods(name, row):
    folder = FOLDER.parents[1] / "configs" / "peng_thesis"
    assert set(ROWS) == {path.stem for path in (folder / "joint_parsing_row").glob("*.yaml")}
    base = yaml.safe_load((folder / "joint_parsing.yaml").read_text())
    chosen = yaml.safe_load((folder / "joint_parsing_row" / f"{name}.yaml").read_text())
    options = load_recipe(FOLDER / "syntax_then_graph.py").settings(Cell(row, 1, "paper"))
    words = [word for word in (*options["train_options"], *options["options"]) if not word.startswith("--maximize")]
    given = dict(zip(words[::2], words[1::2], strict=True))
    model, criterion = ({**base[part], **chosen.get(part, {})} for part in ("model", "criterion"))
    assert model["intermediate"] == given["--intermediate"]
    assert model.get("gradient") == given.get("--gradient")
    assert criterion["tree_loss"] == given.get("--tree-loss", "hinge")
    assert base["dataset"]["batch_size"] == int(given["--batch-size"])
    assert base["optimization"]["lr"] == [float(rate) for rate in given["--lr"].split(",")]
    assert len(base["optimization"]["lr"]) == options["epochs"]
    assert base["optimization"]["max_epoch"] == options["epochs"]
