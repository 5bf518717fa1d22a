"""The recipes of question formation and tense reinflection: rows, sizes of models and settings."""

from __future__ import annotations

from statistics import mean

import pytest
from fairseq.data import Dictionary
from scipy.stats import ttest_ind

from seqstruct.data.transformations.grammar import TRANSFORMATIONS
from seqstruct.harness.configs import read_config
from seqstruct.models.language_models.stack_lstm_lm import StackLSTMLanguageModel, StackLSTMLanguageModelConfig
from seqstruct.models.transformer.lm import StructuredTransformerLanguageModel
from tests.models.building import language_model_config, task_of
from tests.recipes.composed import ROOT, commands, option, script, trainings
from tests.recipes.test_findings import lines, prose

NAME = "generalisation/question-formation"
MODELS = ["Tf", "Tf+Sup", "Tf+Nd", "LSTM", "LSTM+Nd"]


def size(row, scale):
    (found,) = trainings(NAME, row, scale)[-1:]
    model, dictionary = found["model"], Dictionary()
    for word in TRANSFORMATIONS["question-formation"].words:
        dictionary.add_symbol(word)
    if model.pop("_name") == "stack_lstm_lm":
        built = StackLSTMLanguageModel.build_model(StackLSTMLanguageModelConfig(**model), task_of(dictionary))
    else:
        built = StructuredTransformerLanguageModel.build_model(language_model_config(**model), task_of(dictionary))
    return sum(p.numel() for p in built.parameters())


@pytest.mark.parametrize("row", MODELS)
def test_models_have_the_published_size(row):
    assert size(row, "paper") == pytest.approx(200_000, rel=0.05)
    if row.startswith("LSTM"):
        assert size(row, "small") == size(row, "paper")
    else:  # Transformers of size 32, and one of 48
        assert size(row, "small") < (100_000 if row == "Tf+Sup" else 60_000)


def test_rows_have_the_published_number_of_seeds():
    recipe = script(NAME)
    assert len(recipe.seeds("Tf", "small")) == len(recipe.seeds("Tf", "paper")) == 5


def test_commands_of_the_published_setting():
    prepared, searched, trained, scored, _ = commands(script(NAME), "tense Tf+Nd", "paper", 3)
    assert prepared[:3] == ("seqstruct", "prepare", "tense-reinflection")
    assert [option(prepared, f"--{split}") for split in ("train", "test", "gen")] == ["100000", "10000", "10000"]
    assert "configs/generalisation/search.yaml" in searched and "common.seed=3" in trained
    assert any("/chosen)" in word for word in trained) and "--cpu" not in scored
    (_, found) = trainings(NAME, "Tf+Nd", "paper")
    assert (found["optimization"]["max_epoch"], found["checkpoint"]["patience"]) == (1000, 3)
    assert found["lr_scheduler"] == {"_name": "reduce_lr_on_plateau", "lr_shrink": 0.5, "lr_patience": 2}
    assert read_config(ROOT, searched) is not None


def test_a_baseline_is_of_its_own_data():
    prepared, measured, _ = commands(script(NAME), "tense linear rule", "small")
    assert "tense-reinflection" in prepared and measured[:3] == ("seqstruct", "baseline", "linear rule")


def test_tenses_are_told_as_recorded():
    item = " ".join(prose("generalisation").partition("\nTense reinflection, scale small:")[2].split())
    found = {(line.row, line.metric): [*line.values.values()]
             for line in lines("generalisation", "tense-reinflection")}
    rows, most = [f"tense {model}" for model in MODELS], found["tense majority", "gen_main_verb"][0]
    verbs, nouns, right = ({row: found[row, metric] for row in rows}
                           for metric in ("gen_main_verb", "gen_recent_noun", "test_full_sentence"))
    assert all(len(values) == 5 for values in verbs.values())
    for row, told in zip(rows, ("in {} to {} %, with a sup", "stack in {} to {} % (p", "stack in {} to {} % (p",
                                "have {} to {} %", "stack {} to {} %"), strict=True):
        assert told.format(*(f"{f(verbs[row]):.0f}" for f in (min, max))) in item, row
    assert all(mean(verbs[f"tense Tf{stack}"]) < mean(verbs["tense Tf"]) for stack in ("+Sup", "+Nd"))
    apart = ttest_ind(verbs["tense LSTM+Nd"], verbs["tense LSTM"], equal_var=False).pvalue
    assert apart > 0.1 and f"(p {apart:.2f}, uncorrected)" in item
    means = [mean(values) for values in nouns.values()]
    assert f"before it in {min(means):.0f} to {max(means):.0f} %" in item
    assert sum(value > most for values in verbs.values() for value in values) == 1 and f"({most:.0f} %)" in item
    told = [f"{f(sum((right[row] for row in some), [])):.0f}" for some in (rows[:3], rows[3:]) for f in (min, max)]
    assert "Transformers have {} to {} % of the test sentences, LSTMs {} to {} %".format(*told) in item
