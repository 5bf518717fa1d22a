"""Scores of rewritten sentences: what each metric counts, baselines of the data, and the command with models."""

from __future__ import annotations

import json
from collections import Counter

import pytest
import torch

from seqstruct.cli import main
from seqstruct.data.transformations.folder import PairsRequest, draw, write_folder
from seqstruct.data.transformations.grammar import TRANSFORMATIONS, Pair
from seqstruct.scoring.named_baselines import measure
from seqstruct.scoring.trained import load_model
from seqstruct.scoring.transformations import BASELINES, baselines, score
from tests.models.front_door import fairseq, sizes

QUESTIONS, TENSES = "question-formation", "tense-reinflection"
SIZES = {"train": 400, "valid": 11, "test": 53, "gen": 47}


def pair(source, target):
    return Pair(source.split(), target.split())


def judged(rule, found, output):
    """The metrics of gen of one output."""
    outputs = dict.fromkeys(("test", "gen"), [output.split()])
    scores = score(TRANSFORMATIONS[rule], {"test": [found], "gen": [found]}, outputs)
    assert all(m.unit == "%" and m.value in (0, 100) for m in scores)
    return {m.metric.removeprefix("gen_") for m in scores if m.metric.startswith("gen_") and m.value}


@pytest.mark.parametrize(("output", "right"), [
    ("doesn't the pilots that do laugh wait ?", {"main_auxiliary", "first_word", "full_sentence"}),
    ("doesn't the pilots that do laugh cough ?", {"main_auxiliary", "first_word"}),
    ("doesn't the pilots that do laugh doesn't wait ?", {"first_word"}),
    ("doesn't the pilots that laugh doesn't wait ?", {"first_word"}),
    ("do the pilots that laugh doesn't wait ?", {"first_auxiliary"}),
    ("don't the pilots that do laugh wait ?", set()), ("", set()), ("wait do doesn't", set()),
])
def test_what_is_counted_of_questions(output, right):
    found = pair("the pilots that do laugh doesn't wait . quest", "doesn't the pilots that do laugh wait ?")
    assert judged(QUESTIONS, found, output) == right


@pytest.mark.parametrize(("output", "right"), [
    ("the pilots by our nurse wait .", {"main_verb", "full_sentence"}),
    ("the pilot by our nurse wait .", {"main_verb"}), ("the pilots by our nurse waits .", {"recent_noun"}),
    ("my singers near a nurse waits .", set()), ("my singers near the nurses waits .", {"recent_noun"}),
    ("the pilots by our nurse work .", set()), ("the pilots by our nurse waited .", set()),
    ("the pilots by our nurse wait", set()), ("", set()),
])
def test_what_is_counted_of_tenses(output, right):
    found = pair("the pilots by our nurse waited . present", "the pilots by our nurse wait .")
    assert judged(TENSES, found, output) == right


@pytest.fixture(scope="module", params=[QUESTIONS, TENSES])
def made(request, tmp_path_factory):
    """The folder of a transformation, its rule and its pairs."""
    asked, folder = PairsRequest(request.param, **SIZES), tmp_path_factory.mktemp("made") / "data"
    write_folder(asked, folder)
    return folder, TRANSFORMATIONS[request.param], draw(asked)


def test_baselines_are_those_of_the_pairs(made):
    folder, rule, pairs = made
    found = {name: {m.metric: m.value for m in measure(name, folder)} for name in BASELINES}
    kept = sum(pair.source[-1] == rule.keep for pair in pairs["test"])
    unmoved = [pair for pair in pairs["test"] if pair.source[:-1] == pair.target]
    linear = found["linear rule"]
    assert linear["test_full_sentence"] == 100 and linear["gen_full_sentence"] == 0
    assert found["copy"]["test_full_sentence"] == pytest.approx(100 * len(unmoved) / 53) and len(unmoved) == kept
    if "gen_first_word" in linear:
        assert (linear["gen_first_word"], linear["gen_main_auxiliary"], linear["gen_first_auxiliary"]) == (0, 0, 100)
        counts = Counter(pair.target[0] for pair in pairs["train"] if pair.source[-1] == "quest")
        (most, _), *_ = counts.most_common(1)
        share = 100 * sum(pair.target[0] == most for pair in pairs["gen"]) / 47
        assert found["majority"]["gen_first_word"] == pytest.approx(share) and share > 0
        assert found["copy"]["gen_first_word"] == 0
    else:
        assert (linear["gen_main_verb"], linear["gen_recent_noun"]) == (0, 100)
        assert found["majority"]["gen_main_verb"] + found["majority"]["gen_recent_noun"] == pytest.approx(100)
        assert 20 < found["majority"]["gen_main_verb"] < 80 and found["copy"]["gen_main_verb"] == 0


def test_the_most_frequent_form_of_a_verb():
    train = [
        pair("the pilots waited . present", "the pilots wait ."), pair("the judge waited . past", "the judge waited ."),
        pair("my pilots waited . present", "my pilots wait ."), pair("my judge waited . present", "my judge waits ."),
        pair("my judge rested . present", "my judge rests ."),
    ]
    answer = baselines(TRANSFORMATIONS[TENSES], train)["majority"]
    assert " ".join(answer("the judge waited . present".split())) == "the judge wait ."
    assert " ".join(answer("the judges rested . present".split())) == "the judges rests ."
    assert " ".join(answer("the judge coughed . past".split())) == "the judge coughed ."


def test_the_command_scores_what_a_system_made(made, tmp_path, capsys):
    folder, _, _ = made
    text = folder / "text"
    targets = [str(text / f"{split}.target") for split in ("test", "gen")]
    arguments = ["score-transformations", str(folder), "--outputs", *targets]
    written = ["--record", str(tmp_path / "s.json"), "--write", *map(str, (tmp_path / "t", tmp_path / "g"))]
    assert main([*arguments, *written]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split() == ["%", "model", "linear", "rule", "majority", "copy"]
    assert {line.split()[0]: line.split()[1:3] for line in printed}["gen_full_sentence"] == ["100.00", "0.00"]
    recorded = {entry["metric"]: entry["value"] for entry in json.loads((tmp_path / "s.json").read_text())}
    assert recorded["test_full_sentence"] == 100 and recorded.keys() == {line.split()[0] for line in printed[1:]}
    assert (tmp_path / "g").read_text() == (text / "gen.target").read_text()
    (tmp_path / "few").write_text("do ?\n")
    assert main([*arguments[:-1], str(tmp_path / "few")]) == 1
    assert "gen: 1 outputs for 47 sentences" in capsys.readouterr().err
    assert main(["score-transformations", str(tmp_path), *arguments[2:]]) == 1
    assert "cannot be read; `seqstruct prepare question-formation` makes such a folder" in capsys.readouterr().err


MODELS = {
    "language-model": ["--task", "language_modeling", "--sample-break-mode", "eos", "--tokens-per-sample", 64,
                       "--arch", "structured_transformer_lm", "--decoder-self-attention",
                       "softmax + superposition_stack(size=8)"],
    "translation": ["--task", "translation", "--source-lang", "source", "--target-lang", "target",
                    "--arch", "structured_transformer", *sizes("encoder", dim=16, inner=24, heads=2, layers=2)],
}


def greedy(model, task, source, longest):
    """The likeliest word each time, by whole forward passes."""
    dictionary = task.target_dictionary
    ids = task.source_dictionary.encode_line(" ".join(source), add_if_not_exist=False).long()
    end, made, alone = dictionary.eos(), [], not hasattr(model, "encoder")
    while len(made) < longest - alone * len(source):
        if alone:
            output = model(torch.cat([torch.tensor([end]), ids[:-1], torch.tensor(made, dtype=torch.long)])[None])
        else:
            output = model(ids[None], torch.tensor([len(ids)]), torch.tensor([[end, *made]]))
        scores = model.get_normalized_probs(output, True)[0, -1]
        scores[dictionary.pad()] = -torch.inf
        made.append(int(scores.argmax()))
        if made[-1] == end:
            made.pop()
            break
    return [dictionary[number] for number in made]


@pytest.mark.training
@pytest.mark.parametrize("setting", MODELS)
def test_outputs_of_a_checkpoint_are_greedy(setting, tmp_path, capsys):
    counts = {"train": 300, "valid": 5, "test": 7, "gen": 5}
    data, run = tmp_path / "data", tmp_path / "run"
    write_folder(PairsRequest(QUESTIONS, setting, **counts), data)
    fairseq("train", data / "bin", *MODELS[setting], *sizes("decoder", dim=16, inner=24, heads=2, layers=2),
            "--optimizer", "adam", "--lr", 0.01, "--max-update", 20, "--max-tokens", 400, "--save-dir", run,
            "--no-epoch-checkpoints", "--seed", 5)
    files = [tmp_path / "test", tmp_path / "gen"]
    checkpoint = run / "checkpoint_best.pt"
    assert main(["score-transformations", str(data), "--checkpoint", str(checkpoint), "--cpu", "--batch-size", "3",
                 "--write", *map(str, files)]) == 0, capsys.readouterr().err
    model, task = load_model(checkpoint, data / "bin")
    pairs = draw(PairsRequest(QUESTIONS, setting, **counts))
    for path, split in zip(files, ("test", "gen"), strict=True):
        longest = max(len(pair.source) + len(pair.target) for pair in pairs[split])
        with torch.inference_mode():
            expected = [" ".join(greedy(model, task, pair.source, longest)) for pair in pairs[split]]
        assert path.read_text("utf-8").splitlines() == expected
