"""The recipes of Stack Attention: rows of the tables, parameters and settings as published."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fairseq.data import Dictionary

from seqstruct.harness.records import read_folder
from seqstruct.harness.script import THREADS, Cell, Script
from seqstruct.models.language_models.stack_lstm_lm import StackLSTMLanguageModel, StackLSTMLanguageModelConfig
from seqstruct.models.transformer.lm import StructuredTransformerLanguageModel
from seqstruct.models.transformer.translation import StructuredTransformerModel, StructuredTransformerModelConfig
from seqstruct.plots import demo
from tests.models.building import cfl_dictionary, language_model_config, task_of
from tests.recipes.composed import ROOT, published, trainings

FOLDER = ROOT / "recipes" / "stack_attention"


def settings(recipe, row, scale="paper"):
    (found,) = trainings(f"stack_attention/{recipe}", row, scale)
    return found


def dictionary_of_size(size):
    dictionary = Dictionary()
    for number in range(size - len(dictionary)):
        dictionary.add_symbol(f"w{number}")
    return dictionary


def parameters(model):
    return sum(p.numel() for p in model.parameters())


PARAMETERS = {
    table: {entry.row: entry.value for entry in published("stack_attention", table) if entry.metric == "parameters"}
    for table in ("2", "3", "5")
}


@pytest.mark.parametrize("row", list(PARAMETERS["5"]))
def test_parameters_of_table_5(row):
    model = settings("figure-2", row)["model"]
    task = task_of(cfl_dictionary(row.split()[0]))
    if model.pop("_name") == "stack_lstm_lm":
        built = StackLSTMLanguageModel.build_model(StackLSTMLanguageModelConfig(**model), task)
    else:
        built = StructuredTransformerLanguageModel.build_model(language_model_config(**model), task)
    assert parameters(built) == PARAMETERS["5"][row]


@pytest.mark.parametrize("row", ["Tf", "Tf+Sup", "Tf+Nd"])
def test_parameters_of_table_2(row):
    model = settings("table-2", row)["model"]
    assert model.pop("_name") == "structured_transformer_lm"
    task = task_of(dictionary_of_size(23_835))
    built = StructuredTransformerLanguageModel.build_model(language_model_config(**model), task)
    assert parameters(built) == PARAMETERS["2"][row]
    assert built.decoder.output_projection.weight is built.decoder.embed_tokens.weight


@pytest.mark.parametrize("row", list(PARAMETERS["3"]))
def test_parameters_of_table_3(row):
    """The sizes of all nine rows give a vocabulary of 6,156 entries: what the threshold of 50 uses leaves of 32,000."""
    model = settings("table-3", row)["model"]
    assert model.pop("_name") == "structured_transformer"
    built = StructuredTransformerModel.build_model(
        StructuredTransformerModelConfig(**model), task_of(dictionary_of_size(6_156)))
    assert parameters(built) == PARAMETERS["3"][row]


def test_published_settings():
    found = settings("figure-2", "hardest-cfl Tf+Nd")
    assert "nondeterministic_stack(states=3, symbols=3, size=5)" in found["model"]["decoder_self_attention"]
    assert (found["dataset"]["batch_size"], found["optimization"]["max_epoch"], found["checkpoint"]["patience"]) == (
        10, 200, 10)
    assert found["lr_scheduler"] == {"_name": "reduce_lr_on_plateau", "lr_shrink": 0.9, "lr_patience": 5}
    small = settings("figure-2", "hardest-cfl Tf+Nd", "small")
    assert small["optimization"] == {**found["optimization"], "max_epoch": 60}
    assert (small["model"], small["lr_scheduler"]) == (found["model"], found["lr_scheduler"])
    for name, row in (("table-2", "Tf"), ("table-3", "Tf d=240")):
        found = settings(name, row)
        assert found["lr_scheduler"] == {"_name": "reduce_lr_on_plateau", "lr_shrink": 0.5, "lr_patience": 2}
        assert (found["optimization"]["clip_norm"], found["checkpoint"]["patience"]) == (5.0, 4)
    assert found["dataset"]["max_tokens"] == 2048 and found["optimization"]["max_epoch"] == 200


def test_runs_draw_from_the_published_ranges():
    script = Script(FOLDER / "table-2.sh")
    for seed in script.seeds("Tf", "paper"):
        (words,) = [step.words for step in script.plan(Cell("Tf", seed, "paper")).steps if step.kind == "train"]
        given = dict(word.split("=", 1) for word in words if "=" in word)
        assert 1e-6 <= float(given["optimization.lr"].strip("[]")) <= 1e-4
        assert 128 <= int(given["dataset.max_tokens"]) <= 512
    drawn = [settings("figure-2", "dyck Tf", scale)["optimization"]["lr"] for scale in ("small", "paper")]
    assert drawn[0] == drawn[1] and 0.0005 <= drawn[0][0] <= 0.01
    assert [len(Script(FOLDER / f"{n}.sh").seeds(r, "paper")) for n, r in (
        ("table-2", "Tf"), ("table-3", "Tf d=160"), ("figure-2", "dyck Tf"))] == [20, 5, 10]


def test_the_speed_of_training_is_told_as_recorded():
    records = [r for r in read_folder(FOLDER / "records") if r.table == "6-stand-in"]
    gpu = {r.row: r.value("examples_per_second") for r in records if r.scale == "paper"}
    both = [{r.row: r.value("examples_per_second") for r in records if (r.scale, r.seed) == ("small", seed)}
            for seed in (1, 2)]
    assert len({(r.seed, r.machine["processor"]) for r in records if r.scale == "small"}) == 2
    trials = read_folder(FOLDER.parent / "published_sizes" / "records")
    gpu |= {r.row.partition("table-2, ")[2]: r.value("training_tokens_per_second") for r in trials
            if r.scale == "paper" and "stack_attention/table-2" in r.row}

    def ratio(speed, task, model="Tf+Nd", base="Tf"):
        return speed[f"{task}{model}"] / speed[f"{task}{base}"]

    text = " ".join((ROOT / "docs" / "reproduction" / "stack_attention.md").read_text("utf-8").split())
    marked, hardest = "marked-reversal ", "hardest-cfl "
    claim = text.partition("* *Speed of training*")[2].partition("## Results")[0]
    assert "**Holds in part**" in claim
    for task in ("", marked, hardest, "translation "):
        plain, stack, nondeterministic = (gpu[f"{task}{model}"] for model in ("Tf", "Tf+Sup", "Tf+Nd"))
        assert 1.01 * plain > stack > nondeterministic

    def on_both(*words):
        return "{:.2f} to {:.2f}".format(*sorted(ratio(speed, *words) for speed in both))

    told = f"{on_both('')} times as fast as Tf on one thread of a processor and {ratio(gpu, ''):.2f} times on an H200"
    assert told in claim
    assert f"Tf+Sup {on_both('', 'Tf+Sup')} and {ratio(gpu, '', 'Tf+Sup'):.2f} times" in claim
    places = [f"{on_both(task)} and {ratio(gpu, task):.2f}" for task in (marked, hardest)]
    told = "Tf+Nd has {} on marked reversal, {} on the hardest CFL, and {:.2f} in translation"
    assert told.format(*places, ratio(gpu, "translation ")) in claim
    lstm = [ratio(gpu, task, "LSTM+Nd", "LSTM") for task in (marked, hardest)]
    lstm += [on_both(task, "LSTM+Nd", "LSTM") for task in (marked, hardest)]
    assert "LSTM+Nd {:.2f} and {:.2f} times as fast as the LSTM, on a processor {} and {}.".format(*lstm) in claim
    ahead, second = ([speed[row] / gpu[row] for row in speed if " " in row] for speed in both)
    assert len(ahead) == 12 and f"by {min(ahead):.1f} to {max(ahead):.1f} times, and" in claim and min(ahead) > 1
    assert f"nine, of {min(second):.1f} to {max(second):.1f} times its speed" in claim
    assert sum(times > 1 for times in second) == 9
    told = "There Tf+Sup trains {:.2f} and {:.2f} times as fast as Tf on these languages"
    assert told.format(*(ratio(both[1], task, "Tf+Sup") for task in (marked, hardest))) in claim
    alike = {model: ratio(gpu, "", hardest + model, marked + model) for model in ("Tf", "Tf+Sup", "Tf+Nd", "LSTM",
                                                                                 "LSTM+Sup", "LSTM+Nd")}
    slowest = max(alike, key=alike.get)
    assert f"up to {alike[slowest]:.1f} times the examples a second ({slowest})" in claim
    kernels = {(r.scale, r.machine["kernels"]) for r in records}
    assert kernels == {("small", "compiled"), ("paper", "pytorch")}
    sizes = {r.row: r.value("gpu_memory") for r in records if r.scale == "paper"}
    tf, *stacks = (f"{sizes[f'translation Tf{stack}']:.0f}" for stack in ("", "+Sup", "+Nd"))
    assert f"in translation {tf} MB and with stacks {stacks[0]};" in claim and stacks[0] == stacks[1]
    of_treebank = {f"{r.value('gpu_memory'):.1f}" for r in trials
                   if "stack_attention/table-2" in r.row and "gpu_memory" in r.metrics}
    assert of_treebank == {"0.3"} and "0.3 GiB without a stack and with either" in claim


@pytest.mark.parametrize("name, row, told", [
    ("table-2", "Tf", "row Tf is table 2's"), ("table-3", "Tf d=160", "at scale small see recipes/multi30k"),
])
def test_scales_that_there_are_not(name, row, told):
    with pytest.raises(ValueError, match=told):
        Script(FOLDER / f"{name}.sh").plan(Cell(row, 1, "small"))


def test_the_demo_counts_the_choice_of_length():
    """With as many strings of each length, points weighted by their symbols add up to the overall difference."""
    points = [(6, 0.5), (8, 0.4), (10, 0.3)]
    record = demo.Record(
        paper="stack_attention", table="demo", row="dyck Tf", seed=1, scale="small",
        metrics={demo.METRIC: {"value": 0.0, "unit": "u", "axis": "string length", "points": points}},
        dataset="d", configuration_hash="0" * 16, data_checksums={}, parameters=1, seconds=1.0, peak_memory=1,
        versions={}, command="c",
    )
    moved = demo.with_choice_of_length(record).points(demo.METRIC)
    overall = sum(value * (length + 1) for length, value in points) - 3 * math.log(3)
    assert sum(value * (length + 1) for length, value in moved) == pytest.approx(overall)


def test_the_demo_s_words_are_those_of_its_cells():
    found = settings("demo", "dyck Tf+Sup", "small")
    assert found["optimization"] == {"clip_norm": 5.0, "max_epoch": demo.EPOCHS, "lr": [0.004]}
    assert found["lr_scheduler"] == {"_name": "polynomial_decay", "warmup_updates": 200, "total_num_update": 8 * 500}
    assert set(Script(FOLDER / "demo.sh").rows("small")) == set(demo.SHOWN)


def test_the_demo_says_which_of_its_cells_has_no_record(tmp_path, monkeypatch, capsys):
    """As after `recipes/stack_attention/demo.sh`, whose records are elsewhere."""
    monkeypatch.setattr(demo, "run_plans", lambda plans, jobs: None)
    monkeypatch.setattr(sys, "argv", ["demo", "--runs", str(tmp_path)])
    assert demo.main() == 1
    told = capsys.readouterr().err
    assert f"dyck Tf, seed 1: finished before, but {tmp_path / 'demo' / 'records'} has no record of it" in told


@pytest.mark.slow
def test_a_cut_training_goes_on_to_the_same_numbers(tmp_path):
    words = [str(FOLDER / "figure-2.sh"), "--scale", "smoke", "--row", "dyck Tf+Nd", "--seeds", "1", "--runs"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    threads = dict.fromkeys(THREADS, "1")  # as the recipe has, for sums in the same order

    def run(*command, **options):
        return subprocess.run(command, text=True, check=False, env={**os.environ, "PATH": path, **threads}, **options)

    whole = run(*words, str(tmp_path / "whole"), capture_output=True)
    assert whole.returncode == 0, whole.stderr
    # the same training, ended after its first epoch
    plan = Script(FOLDER / "figure-2.sh").plan(Cell("dyck Tf+Nd", 1, "smoke"), runs=tmp_path / "cut")
    prepare, train = plan.steps[:2]
    first = plan.line(prepare) + " && " + plan.line(train).replace(" 2>&1", " optimization.max_epoch=1 2>&1")
    done = run("bash", "-o", "pipefail", "-c", f"mkdir -p {plan.out} && {first}", cwd=ROOT)
    assert done.returncode == 0
    again = run(*words, str(tmp_path / "cut"), capture_output=True)
    assert again.returncode == 0, again.stderr
    found = [read_folder(tmp_path / name / "stack_attention" / "records") for name in ("whole", "cut")]
    assert [r.metrics for r in found[0]] == [r.metrics for r in found[1]] and len(found[0]) == 2
    (log,) = (tmp_path / "cut").rglob("train.log")
    assert log.read_text(encoding="utf-8").count("Start iterating over samples") >= 2
