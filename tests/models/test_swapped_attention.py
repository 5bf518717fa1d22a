"""A trained model decodes with another attention (Peng 2022, Table 4.6): it runs, warns, and is another model."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest
import torch
from fairseq import checkpoint_utils

from seqstruct.bridge.patches.compat import prepare_fairseq
from seqstruct.bridge.swapped_attention import changed
from seqstruct.bridge.versions import versions
from tests.models.front_door import fairseq, sizes

TRAIN = [
    "--arch", "structured_transformer", *sizes(dim=16, inner=32, heads=2), "--cross-attention", "normalized_softmax",
    "--optimizer", "adam", "--max-tokens", 200,
]


@pytest.fixture(scope="module")
def trained(reversals, tmp_path_factory):
    data, folder = reversals / "bin", tmp_path_factory.mktemp("swapped")
    fairseq(
        "train", data, *TRAIN, "--decoder-self-attention", "normalized_softmax", "--lr", 0.01, "--max-epoch", 6,
        "--update-epoch-batch-itr", "True", "--no-epoch-checkpoints", "--save-dir", folder,
    )
    return data, folder / "checkpoint_last.pt"


def generate(trained, plan=None):
    data, checkpoint = trained
    overrides = {"decoder_self_attention": plan, "cross_attention": plan} if plan else {}
    printed = fairseq("generate", data, "--path", checkpoint, "--beam", 1, "--max-len-b", 10, "--model-overrides",
                      repr(overrides))
    return printed, re.findall(r"^H-(\d+)\t(\S+)\t(.*)$", printed, re.M)


@pytest.fixture(scope="module")
def plain(trained):
    return generate(trained)


@pytest.mark.training
def test_the_same_attention_gives_the_same_and_no_warning(trained, plain):
    said, expected = plain
    again, found = generate(trained, "normalized_softmax")
    assert len(expected) == 60 and found == expected
    assert "fine-tuning" not in said + again


@pytest.mark.training
@pytest.mark.parametrize("plan", ["softmax", "rfa(features=8)", "abc_mlp(slots=3)"])
def test_another_attention_gives_something_else_and_warns(trained, plain, plan):
    printed, found = generate(trained, plan)
    assert len(found) == 60 and found != plain[1]
    assert "needs fine-tuning" in printed and "35.5 BLEU" in printed and "Table 4.6" in printed


@pytest.mark.training
def test_a_mechanism_with_the_same_parameters_is_told_by_the_options(trained, caplog):
    for option, plan, warnings in (("encoder", "linear", 2), ("decoder", "normalized_softmax", 0)):
        caplog.clear()
        overrides = {f"{option}_self_attention": plan}
        checkpoint_utils.load_model_ensemble_and_task([str(trained[1])] * 2, arg_overrides=overrides)
        assert caplog.text.count("needs fine-tuning") == warnings


@pytest.mark.training
def test_what_random_features_share_with_normalized_softmax_is_taken_over(trained):
    overrides = {"decoder_self_attention": "rfa(features=8)", "cross_attention": "rfa(features=8)"}
    (swapped,), _, _ = checkpoint_utils.load_model_ensemble_and_task([str(trained[1])], arg_overrides=overrides)
    (original,), _, _ = checkpoint_utils.load_model_ensemble_and_task([str(trained[1])])
    parameters = dict(original.named_parameters())
    assert any(name.endswith("sigma") for name in parameters)
    torch.testing.assert_close(dict(swapped.named_parameters()), parameters, rtol=0, atol=0)


def train_on(trained, *options):
    """One update that starts from a checkpoint; what was said."""
    return fairseq("train", trained[0], *TRAIN, "--max-update", 1, "--disable-validation", "--no-save", *options)


@pytest.mark.training
@pytest.mark.parametrize(
    ("start", "plan", "changes"),
    [
        ("--finetune-from-model", "rfa(features=8)", True),
        ("--restore-file", "rfa(features=8)", True),
        ("--finetune-from-model", "normalized_softmax*1", False),
        ("--finetune-from-model", "abc_mlp(slots=3)", True),
    ],
)
def test_training_that_goes_on_with_another_attention_says_so_once(trained, start, plan, changes):
    printed = train_on(trained, start, trained[1], "--decoder-self-attention", plan)
    assert printed.count("needs fine-tuning") == printed.count("was trained with other attention") == changes
    said = f"{trained[1]} was trained with other attention (decoder_self_attention: normalized_softmax, now {plan})"
    assert (said in printed) == changes


@pytest.mark.training
def test_so_does_training_with_another_number_of_heads(trained):
    printed = train_on(trained, "--finetune-from-model", trained[1], "--decoder-self-attention", "normalized_softmax",
                       "--encoder-attention-heads", 4)
    assert "(encoder_attention_heads: 2, now 4), and the model needs fine-tuning" in printed


@pytest.mark.parametrize(
    ("now", "then", "changes"),
    [
        ("softmax", "softmax*2", []),
        ("rfa(features=8, floor=1.0)", "rfa( features = 8 )", []),
        ("rfa", "rfa(floor=0.5)", ["decoder_self_attention: rfa(floor=0.5), now rfa"]),
        ("softmax + linear", "softmax*2", ["decoder_self_attention: softmax*2, now softmax + linear"]),
        ("softmax", "of_another_plugin", ["decoder_self_attention: of_another_plugin, now softmax"]),
    ],
)
def test_plans_are_compared_by_what_they_say(now: str, then: str, changes: list[str], tmp_path: Path) -> None:
    own, extra = {"model": {"decoder_self_attention": then}}, {"seqstruct_versions": versions()}
    torch.save({"model": {}, "cfg": own, "extra_state": extra}, tmp_path / "a.pt")
    assert changed(str(tmp_path / "a.pt"), {"decoder_self_attention": now}) == changes


def test_options_without_parameters_are_compared(tmp_path: Path) -> None:
    own = {"rotary": "all", "rotary_base": 10000.0, "qk_norm": False, "dropout": 0.1}
    extra = {"seqstruct_versions": versions()}
    torch.save({"model": {}, "cfg": {"model": own}, "extra_state": extra}, tmp_path / "a.pt")
    now = {"rotary": "none", "rotary_base": 10000.0, "qk_norm": True, "dropout": 0.3}
    assert changed(str(tmp_path / "a.pt"), now) == ["rotary: all, now none", "qk_norm: False, now True"]


@pytest.mark.parametrize("form", [{}, {"_use_new_zipfile_serialization": False}])
def test_a_transformer_of_fairseq_has_softmax(form: dict[str, bool], tmp_path: Path) -> None:
    prepare_fairseq()
    args = argparse.Namespace(arch="transformer", decoder_attention_heads=4)
    torch.save({"model": {}, "args": args}, tmp_path / "a.pt", **form)
    now = {"_name": "structured_transformer", "decoder_self_attention": "linear", "decoder_attention_heads": 4}
    assert changed(str(tmp_path / "a.pt"), now) == ["decoder_self_attention: softmax, now linear"]
    assert changed(str(tmp_path / "a.pt"), {"decoder_self_attention": "linear"}) == []
