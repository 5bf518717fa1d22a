"""The recipes of question answering and inference: their options, rows and pictures."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest
import torch

from seqstruct.data.babi.folder import write_folder
from seqstruct.data.babi.stories import TASKS, read_questions
from seqstruct.data.nli.read import Pair, Pairs
from seqstruct.harness.launch import load_recipe
from seqstruct.harness.logs import LogEntry
from seqstruct.harness.progress import Progress
from seqstruct.harness.recipe import Cell
from seqstruct.harness.run import Run
from seqstruct.models.memory_network import MemoryNetworkConfig, MemoryNetworkModel
from seqstruct.tasks.babi_qa import BabiQAConfig, BabiQATask
from tests.data.babi.stories_text import STORY

FOLDER = Path(__file__).resolve().parents[2] / "recipes" / "structured_attention"
answering = load_recipe(FOLDER / "question_answering.py")
inference = load_recipe(FOLDER / "inference.py")
module = sys.modules[type(answering).__module__]


def option(options, name):
    return options[options.index(name) + 1]


def test_rows_are_all_tasks_by_three_models_and_the_published_ones_are_among_them():
    assert len(answering.rows) == len(set(answering.rows)) == 60
    published = json.loads((FOLDER / "paper.json").read_text(encoding="utf-8"))["tables"]
    rows = {entry["row"] for entry in published["4"]["rows"] if not entry["row"].startswith("average")}
    assert rows <= set(answering.rows) and len(rows) == 36
    assert set(inference.rows) <= {entry["row"] for entry in published["5"]["rows"]}
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


def test_inference_options():
    options = sys.modules[type(inference).__module__].train_options
    settings = sys.modules[type(inference).__module__].SETTINGS
    found = options("Structured attention", settings["paper"])
    assert option(found, "--intra-attention") == "dependency(hidden_size=100)"
    names = ("--optimizer", "--lr", "--initial-accumulator", "--clip-norm", "--batch-size")
    assert [option(found, name) for name in names] == ["adagrad", "0.05", "0.1", "5", "32"]
    assert option(options("No attention", settings["paper"]), "--intra-attention") == "none"


def test_hard_parents_are_those_of_a_parser(tmp_path, monkeypatch):
    """Of our own, trained on trees that are tagged as the sentences are; at scale paper, given ones."""
    recipe = sys.modules[type(inference).__module__]
    commands = []
    monkeypatch.setattr(Run, "command", lambda run, words: commands.append([str(word) for word in words]))
    monkeypatch.setattr(recipe, "run_command", lambda words, *_, **__: commands.append([str(word) for word in words]))
    monkeypatch.setattr(recipe.Inference, "source", lambda self, run: tmp_path)
    monkeypatch.setattr(
        recipe.Inference, "treebank", lambda self, run, split="train", corpus="partut": f"{corpus}-{split}"
    )
    pair = Pair(("A", "dog", "."), ("Dogs",), "entailment")
    monkeypatch.setattr(recipe, "read_corpus", lambda *_: {"test": Pairs([pair, pair], 0)})
    with Progress() as progress:
        run = Run(inference, Cell(recipe.HARD, 1, "small"), tmp_path / "runs", progress=progress)
        inference.prepare(run)
        prepare, train, parse, script = commands
        assert prepare[3:6] == ["prepare", "parsing", "--trees"]
        assert prepare[6:9] == ["train=partut-train", "train=ewt-dev", "valid=partut-dev"]
        assert option(prepare, "--tagger") == option(parse, "--tagger") == str(tmp_path / "brown.zip")
        assert option(train, "--task") == "joint_parsing" and option(train, "--max-epoch") == "12"
        assert [Path(path).name for path in parse[4:6]] == ["test.premise.txt", "test.hypothesis.txt"]
        assert Path(parse[5]).parent == Path(option(parse, "--checkpoint")).parents[1]
        assert option(script, "--heads") == str(run.root / "data" / "parses-rte-small" / "heads")
        texts = run.root / "data" / "parses-rte-small" / "test.premise.txt"
        assert texts.read_text() == "A dog .\n" * 2
        with pytest.raises(ValueError, match="needs parses: --from names a folder of SNLI with heads/"):
            cell = Cell(recipe.HARD, 1, "paper")
            inference.prepare(Run(inference, cell, tmp_path, source=tmp_path, progress=progress))
    assert option(recipe.train_options(recipe.HARD, recipe.SETTINGS["small"]), "--intra-attention") == "hard_parents"


@pytest.fixture
def figure():
    spec = importlib.util.spec_from_file_location("fact_sequences", FOLDER / "fact_sequences.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_figure_5(figure, tmp_path):
    for split in ("train", "test"):
        (tmp_path / f"qa19_{TASKS[19]}_{split}.txt").write_text(STORY * 4, encoding="utf-8")
    data = tmp_path / "data"
    write_folder(tmp_path, 19, data)
    task = BabiQATask.setup_task(BabiQAConfig(data=str(data), seeds=2, first_seed=5))
    cfg = MemoryNetworkConfig(inference="binary_crf", steps=3, embed_dim=4, initialization_deviation=0.8)
    chosen = figure.choose(MemoryNetworkModel.build_model(cfg, task), task, "test", 2, 6)
    assert chosen.node.shape == (3, 3) and chosen.edge.shape == (2, 3, 3)
    torch.testing.assert_close(chosen.edge.sum((1, 2)), torch.ones(2, dtype=torch.float64))
    torch.testing.assert_close(chosen.edge[0].sum(1), chosen.node[0])
    probabilities = [p for _, p in chosen.sequences]
    assert probabilities == sorted(probabilities, reverse=True) and 0 < sum(probabilities) < 1
    first = chosen.sequences[0][0]
    assert all(a != b for a, b in zip(first, first[1:], strict=False)) and set(first) <= {1, 2, 3}
    drawn = figure.draw(read_questions(data / "test.txt")[1], chosen)
    assert "facts 3 → 2" in drawn.axes[0].get_title()
    for question, seed, message in ((99, 5, "expected a question of"), (1, 4, "expected a seed of 5 .. 6")):
        with pytest.raises(ValueError, match=message):
            figure.choose(MemoryNetworkModel.build_model(cfg, task), task, "test", question, seed)
    with pytest.raises(ValueError, match="memn2n has no marginals"):
        figure.choose(MemoryNetworkModel.build_model(MemoryNetworkConfig(), task), task, "test", 1, 5)
