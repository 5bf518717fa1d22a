"""A trained model decodes with another attention (Peng 2022, Table 4.6): it runs, warns, and is another model."""

from __future__ import annotations

import re

import pytest
from fairseq import checkpoint_utils

from tests.models.front_door import PLUGIN, binarize, fairseq, write_copy_corpus

SIZES = [f"--{side}-{name}={value}" for side in ("encoder", "decoder") for name, value in
         (("embed-dim", 16), ("ffn-embed-dim", 32), ("attention-heads", 2), ("layers", 1))]  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("swapped")
    write_copy_corpus(folder)
    data = binarize(folder, folder / "bin")
    fairseq(
        "train", data, "--user-dir", PLUGIN, "--cpu", "--num-workers", 0, "--arch", "structured_transformer", *SIZES,
        "--decoder-self-attention", "normalized_softmax", "--cross-attention", "normalized_softmax",
        "--optimizer", "adam", "--lr", 0.01, "--max-tokens", 200, "--max-epoch", 6, "--update-epoch-batch-itr", "True",
        "--no-epoch-checkpoints", "--save-dir", folder / "run",
    )  # fmt: skip
    return data, folder / "run" / "checkpoint_last.pt"


def generate(trained, plan=None):
    data, checkpoint = trained
    overrides = {"decoder_self_attention": plan, "cross_attention": plan} if plan else {}
    printed = fairseq("generate", data, "--user-dir", PLUGIN, "--cpu", "--path", checkpoint, "--beam", 1, "--max-len-b",
                      10, "--model-overrides", repr(overrides))  # fmt: skip
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
    names = {name for name, _ in original.named_parameters()}
    assert any(name.endswith("sigma") for name in names)
    assert names == {name for name, _ in swapped.named_parameters()}
    for name, value in original.named_parameters():
        assert (dict(swapped.named_parameters())[name] == value).all(), name
