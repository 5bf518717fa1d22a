"""The recipes of translation: rows of the tables, presets and settings as published, what is decoded and recorded."""

from __future__ import annotations

import argparse
import re

import pytest
from fairseq.models import ARCH_CONFIG_REGISTRY

import seqstruct.models  # noqa: F401
from seqstruct.attention import Site, parse_choices
from seqstruct.harness.paper import read_tables
from seqstruct.harness.script import Cell, Script
from tests.recipes.composed import ROOT, trainings

RECIPES = ROOT / "recipes"
SITES = {"encoder_self_attention": Site.ENCODER_SELF, "decoder_self_attention": Site.DECODER_SELF,
         "cross_attention": Site.CROSS}
PUBLISHED = ("sutskever", "luong", "convs2s", "transformer", "sentencepiece", "subword-regularization")


def model_of(recipe, row, scale="paper"):
    return trainings(recipe, row, scale)[0]["model"]


def plan_of(recipe, row, scale="paper"):
    return Script(RECIPES / f"{recipe}.sh").plan(Cell(row, 1, scale))


@pytest.mark.parametrize("name", ["multi30k", "bpe-statistics", "cho", *PUBLISHED])
def test_a_baseline_is_recorded_from_its_own_file(name):
    script = Script(RECIPES / "nmt_lectures" / f"{name}.sh")
    for scale in ("smoke", "paper"):
        for row in script.baselines(scale):
            assert script.plan(Cell(row, 1, scale)).steps[-1].words[0] == "baseline.json"


@pytest.mark.parametrize("scale", ["small", "paper"])
def test_what_goes_on_from_softmax_keeps_its_pairs_and_its_rate(scale):
    first, same = (trainings("peng_thesis/figure-4.4", row, scale) for row in ("softmax", "softmax continued"))
    (before,), (again, tuned) = first, same
    assert before == again and (before["model"], before["dataset"]) == (tuned["model"], tuned["dataset"])
    last = before["lr_scheduler"].get("end_learning_rate", before["optimization"]["lr"][0] * (4000 / 200_000) ** 0.5)
    assert tuned["optimization"]["lr"] == [pytest.approx(last, rel=0.02)]
    assert before["lr_scheduler"] == tuned["lr_scheduler"] or tuned["lr_scheduler"]["_name"] == "fixed"


@pytest.mark.parametrize("row, tables", [
    ("BASE", ["5.5a", "5.7"]), ("ABC-MLP 32-8", ["5.5a"]), ("MLP-exp 32-8", ["5.7"]), ("50 matrices", ["A.1"]),
    ("cross 64, causal 64", ["5.9"]), ("cross 256, causal 64", ["A.4"]), ("cross 64, causal 128", ["A.4"]),
])
def test_a_row_is_recorded_where_it_stands(row, tables):
    plan = plan_of("peng_thesis/table-4.4", row)
    assert plan.table == tables[0]
    assert [word.split(":")[0] for word in plan.steps[-1].words if "parameters" in word] == tables


@pytest.mark.parametrize("row, found", [
    ("IWSLT14 de-en RFA-Gaussian", {"decoder_self_attention": "rfa(features=128)",
                                    "cross_attention": "rfa(features=256)"}),
    ("MLP-exp-all 32-32-32", dict.fromkeys(SITES, "abc_mlp(slots=32)")),
    ("MLP-sigmoid 32-8", {"cross_attention": "abc_mlp(slots=32, activation='sigmoid')"}),
    ("cross 16, causal 8", {"decoder_self_attention": "abc_mlp(slots=8)", "cross_attention": "abc_mlp(slots=16)"}),
])
def test_sizes_of_the_thesis(row, found):
    model = model_of("peng_thesis/table-4.4", row)
    assert {name: model.get(name, "softmax") for name in found} == found
    for name, site in SITES.items():
        assert len(parse_choices(model.get(name, "softmax"), 6, site)) == 6


def test_settings_of_the_thesis():
    (found,) = trainings("peng_thesis/table-4.4", "WMT14 en-fr BASE", "paper")
    assert (found["optimization"]["lr"], found["optimization"]["max_update"], found["dataset"]["max_tokens"],
            found["optimization"]["update_freq"]) == ([0.000570544], 350_000, 8192, [16])
    (found,) = trainings("peng_thesis/table-5.5b", "ABC-MLP 128-64", "paper")
    assert found["model"]["decoder_self_attention"] == "abc_mlp(slots=64)"
    assert (found["model"]["encoder_ffn_embed_dim"], found["optimization"]["max_update"]) == (1024, 100_000)


@pytest.mark.parametrize("scale, length", [("small", 64), ("paper", 1024)])
def test_linformer_has_as_many_controls_as_positions(scale, length):
    for slots in (32, 64):
        model = model_of("peng_thesis/table-4.4", f"Linformer {slots}-{slots}", scale)
        for name, side in (("decoder_self_attention", "target"), ("cross_attention", "source")):
            assert model[name] == f"linformer(slots={slots}, length={length})"
            assert model[f"max_{side}_positions"] == length


@pytest.mark.parametrize("scale, layers, size", [("smoke", 3, 32), ("small", 3, 128), ("paper", 5, 160)])
@pytest.mark.parametrize("row, stack", [("Tf+Sup", "superposition_stack"), ("Tf+Nd", "nondeterministic_stack")])
def test_the_stack_is_in_the_third_layer_of_both_sides(row, stack, scale, layers, size):
    model = model_of("multi30k/multi30k", row, scale)
    for name in ("encoder_self_attention", "decoder_self_attention"):
        choices = parse_choices(model[name], layers, SITES[name])
        assert [choice.name for choice in choices] == ["softmax"] * 2 + [stack] + ["softmax"] * (layers - 3)
        assert stack != "superposition_stack" or f"size={size}" in model[name]


@pytest.mark.parametrize("row, preset", [
    ("RNN encoder-decoder", "rnn_encoder_decoder"), ("Sutskever", "rnn_sutskever"), ("RNNsearch", "rnnsearch"),
    ("grConv", "rnn_gated_convolution"), ("Luong dot", "rnn_luong_global"), ("Luong local-m", "rnn_luong_local_m"),
    ("Luong local-p", "rnn_luong_local_p"), ("GNMT", "rnn_gnmt"), ("ConvS2S", "fconv"),
])
def test_a_row_at_its_published_size_is_the_preset(row, preset):
    options = argparse.Namespace()
    ARCH_CONFIG_REGISTRY[preset](options)
    model = model_of("nmt_lectures/multi30k", row)
    assert model.pop("_name") == ("fconv" if preset == "fconv" else "rnn_translation")
    if preset == "fconv":  # which fairseq takes of the task's options
        assert (model.pop("max_source_positions"), model.pop("max_target_positions")) == (1024, 1024)
    assert model == vars(options)


def test_an_ensemble_decodes_its_members_and_a_search_another_row_s_model():
    plan = plan_of("nmt_lectures/multi30k", "Transformer, ensemble of 2", "small")
    members = [step.target for step in plan.steps if step.kind == "shared"]
    decoded = next(step.words for step in plan.steps if step.words[0] == "fairseq-generate")
    assert decoded[decoded.index("--path") + 1] == ":".join(f"{folder}/checkpoint_best.pt" for folder in members)
    assert f"parameters[parameters]={'+'.join(f'{m}/train.log' for m in members)}:parameters" in plan.steps[-1].words
    line = next(plan.line(step) for step in plan.steps if step.target == members[1])
    assert f"2>&1 | tee -a {members[1]}/train.log && touch {members[1]}/finished" in line
    folders = {step.target for row in ("GNMT", "GNMT, 8 bits") for step in plan_of("nmt_lectures/multi30k", row).steps
               if step.kind == "shared"}
    assert len(folders) == 1


@pytest.mark.parametrize("row", ["RNN", "lexical weighting"])
def test_phrases_at_scale_small_are_of_a_table_that_is_extracted(row):
    plan = plan_of("nmt_lectures/cho", row, "small")
    words, table, pairs = (step for step in plan.steps if step.kind == "prepare")
    assert table.words[:4] == ("seqstruct", "prepare", "phrase-table", f"{words.target}/text/train")
    assert pairs.words[pairs.words.index("--from") + 1] == table.target
    (scored,) = [step.words for step in plan.steps if step.words[:2] == ("seqstruct", "score-phrases")] or [None]
    assert (scored is None) == (row != "RNN") and (scored is None or scored[2] == table.target)
    assert plan.steps[-2].words[:4] == ("python", "-m", "seqstruct.scoring.phrase_choice",
                                        str(plan.place / "scored.gz") if row == "RNN" else table.target)


@pytest.mark.parametrize("row, updates, kept, rate", [
    ("EN-DE Transformer (base model)", 1500, 5, 0.000698771), ("EN-FR Transformer (big)", 600, 20, 0.000494106)])
def test_the_transformer_is_trained_and_decoded_as_published(row, updates, kept, rate):
    """Vaswani et al. 2017: a checkpoint in ten minutes of 0.4 or 1 second an update, positions of section 3.5, and the
    length penalty of Wu et al. (2016)."""
    (found,) = trainings("nmt_lectures/transformer", row)
    assert found["checkpoint"]["save_interval_updates"] == updates
    assert (found["checkpoint"]["keep_interval_updates"], found["optimization"]["lr"]) == (kept, [rate])
    assert found["model"]["interleaved_positions"]
    plan = plan_of("nmt_lectures/transformer", row)
    (words,) = [step.words for step in plan.steps if step.words[0] == "fairseq-generate"]
    given = {name: words[words.index(name) + 1] for name in ("--task", "--beam", "--length-alpha", "--coverage-beta")}
    assert given == {"--task": "translation_gnmt", "--beam": "4", "--length-alpha": "0.6", "--coverage-beta": "0"}
    assert "--lenpen" not in words


@pytest.mark.parametrize("row, batch, units, bleu", [
    ("WMT'16 en-ro", (64, 1), [512] * 20, "test_bleu"),
    ("WMT'14 en-de", (48, 1), [512] * 10 + [768] * 3 + [2048] * 2, "test_tokenized_bleu"),
    ("WMT'14 en-fr", (32, 8), [512] * 6 + [768] * 4 + [1024] * 3 + [2048, 4096], "test_tokenized_bleu"),
])
def test_convolutions_are_the_source_s(row, batch, units, bleu):
    """Gehring et al. 2017, sections 4 and 5.1: embeddings of 512, one GPU but for French, detokenised Romanian."""
    name = f"{row} ConvS2S (BPE 40K)"
    (found,) = trainings("nmt_lectures/convs2s", name)
    assert (found["dataset"]["batch_size"], *found["optimization"]["update_freq"]) == batch
    model = found["model"]
    for side in ("encoder", "decoder"):
        written = re.findall(r"\((\d+), (\d)\)\] \* (\d+)", model[f"{side}_layers"])
        groups = [tuple(map(int, group)) for group in written]
        assert [size for size, _, count in groups for _ in range(count)] == units
        assert all(width == (1 if size > 1024 else 3) for size, width, _ in groups)
        assert model[f"{side}_embed_dim"] == 512
    assert found["lr_scheduler"] == {"_name": "decay_from_plateau", "lr_shrink": 0.1}
    (table,) = (table for table in read_tables(RECIPES / "nmt_lectures") if table.name == "convs2s")
    assert {entry.metric for entry in table.published if entry.row.startswith(row)} == {bleu}


def test_statistics_aim_at_the_published_types():
    """59,500 merges make 63,000 types (Sennrich et al. 2016, table 1), and joint BPE has 30,000 merges more."""
    types = next(entry.value for table in read_tables(RECIPES / "nmt_lectures") if table.name == "bpe-statistics"
                 for entry in table.published if (entry.row, entry.metric) == ("BPE", "types"))
    words = plan_of("nmt_lectures/bpe-statistics", "BPE").steps[0].words
    sizes = {name: words[words.index(name) + 1] for name in ("--vocabulary", "--joint-vocabulary", "--shortlist")}
    assert list(sizes.values()) == [f"{types:.0f}", f"{types + 89_500 - 59_500:.0f}", "50000"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_there_is_no_small_scale_of_a_published_table(name):
    script = Script(RECIPES / "nmt_lectures" / f"{name}.sh")
    with pytest.raises(ValueError, match="scales are smoke and paper"):
        script.plan(script.cells("small")[0])


def test_a_figure_of_a_table_that_is_no_lines_of_the_source():
    (table,) = (table for table in read_tables(RECIPES / "nmt_lectures") if table.name == "bpe-statistics")
    assert {(p.row, p.metric): p.value for p in table.published}["BPE (joint)", "unknown"] == 32


LINEAGE = Script(RECIPES / "nmt_lectures" / "lineage.sh")


def test_penalties_are_tested_against_none_by_one_training():
    plan = LINEAGE.plan(Cell("penalties 0 0.2", 2, "small"))
    none, some = (step.words for step in plan.steps if step.words[0] == "fairseq-generate")
    models = {words[words.index("--path") + 1] for words in (none, some)}
    assert plan.table == "lineage-penalties" and [path for path in models if "lineage-gnmt-seed2" in path] == [*models]
    assert [words[words.index("--length-alpha") :][:4] for words in (none, some)] == [
        ("--length-alpha", "0", "--coverage-beta", beta) for beta in ("0", "0.2")
    ]
    (compared,) = {s.words[s.words.index("--against") + 1] for s in plan.steps if "--against" in s.words}
    assert compared.startswith(none[none.index("--results-path") + 1])


def test_what_goes_on_from_gnmt_is_tested_against_it_decoded_alike():
    plan = LINEAGE.plan(Cell("GNMT, expected GLEU", 2, "small"))
    before, after = (list(step.words) for step in plan.steps if step.words[0] == "fairseq-generate")
    paths = [words.pop(words.index("--path") + 1) for words in (before, after)]
    folders = [words.pop(words.index("--results-path") + 1) for words in (before, after)]
    assert before == after and plan.table == "lineage-penalties"
    assert "lineage-gnmt-seed2" in paths[0] and paths[1].startswith(folders[1])
    (training,) = (step.words for step in plan.steps if "reward" in step.words)
    assert f"checkpoint.finetune_from_model={paths[0]}" in training
    assert {s.words[s.words.index("--against") + 1] for s in plan.steps if "--against" in s.words} == {
        f"{folders[0]}/generate-test.txt"
    }


@pytest.mark.parametrize(
    ("row", "subwords"),
    [("Transformer, words", "words"), ("Transformer, characters", "characters"),
     ("Transformer, unigram sampled", "sentencepiece")],
)
def test_ways_to_cut_words_are_tested_against_bpe(row, subwords):
    plan = LINEAGE.plan(Cell(row, 1, "small"))
    base, own = [step.target for step in plan.steps if step.kind == "prepare"]
    assert "-bpe-" in base and f"-{subwords}-" in own
    decoded = [step.words[1] for step in plan.steps if step.words[0] == "fairseq-generate"]
    assert decoded == [f"{base}/bin", f"{own}/bin"]
    scored = next(step.words for step in plan.steps if "--against" in step.words)
    assert scored[scored.index("--data") + 1] == own and scored[scored.index("--against-data") + 1] == base


def test_rewards_and_eight_bits_begin_from_gnmt():
    plans = [LINEAGE.plan(Cell(row, 2, "small")) for row in ("GNMT", "GNMT, expected GLEU", "GNMT, 8 bits")]
    (gnmt,) = {step.target for plan in plans for step in plan.steps if "lineage-gnmt-seed2" in step.target}
    trained = [[step for step in plan.steps if step.kind == "train"] for plan in plans]
    assert [len(found) for found in trained] == [0, 1, 0]
    assert f"checkpoint.finetune_from_model={gnmt}/checkpoint_best.pt" in trained[1][0].words
    decoded = [[step.words for step in plan.steps if step.words[0] == "fairseq-generate"][-1] for plan in plans]
    assert [gnmt in words[words.index("--path") + 1] for words in decoded] == [True, False, True]
    assert ["--eight-bit" in words for words in decoded] == [False, False, True]
