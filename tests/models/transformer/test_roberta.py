"""RoBERTa with other attention: fairseq's checkpoints load, and the chain of Peng (2022), section 5.5.3, runs."""

from __future__ import annotations

import argparse
import copy
import logging
import random
import re
import types

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY
from fairseq.models.roberta.model import RobertaModel

from seqstruct.bridge.checkpoints import load_checkpoint
from seqstruct.models.transformer.roberta import StructuredRoberta, StructuredRobertaConfig
from tests.models.building import dictionary_of
from tests.models.front_door import binarize, fairseq, sizes

SIZES = dict(encoder_layers=2, encoder_embed_dim=12, encoder_ffn_embed_dim=20, encoder_attention_heads=2)
TASK = types.SimpleNamespace(source_dictionary=dictionary_of("abcdefg"), max_positions=lambda: 30)


def stock(**options):
    return RobertaModel.build_model(argparse.Namespace(**SIZES, max_positions=30, **options), TASK).eval()


def structured(plan="softmax", **options):
    config = StructuredRobertaConfig(encoder_self_attention=plan, **SIZES, **options)
    return StructuredRoberta.build_model(config, TASK).eval()


def load(model, state):
    state = copy.deepcopy(state)
    model.upgrade_state_dict(state)
    model.load_state_dict(state)
    return model


def texts(generator):
    tokens = torch.randint(4, 11, (3, 13), generator=generator)
    tokens[:, 0], tokens[1, 7:], tokens[2, 1:] = 0, 1, 1
    return tokens


def test_a_checkpoint_of_fairseq_gives_the_same_numbers(generator, caplog):
    original = stock()
    tokens = texts(generator)
    model = load(structured(), original.state_dict())
    assert "other attention" not in caplog.text
    real = tokens.ne(1)
    torch.testing.assert_close(model(tokens)[0][real], original(tokens)[0][real])
    torch.testing.assert_close(
        model(tokens, features_only=True)[0][real], original(tokens, features_only=True)[0][real]
    )
    assert model.max_positions() == original.max_positions() == 30


def test_one_of_2019_loads_too(generator):
    original = stock()
    state = {}
    for key, value in original.state_dict().items():
        key = key.replace("encoder.", "decoder.", 1).replace("layernorm_embedding", "emb_layer_norm")
        if key.endswith(".version"):
            continue
        found = re.fullmatch(r"(.*self_attn\.)([qkv])_proj\.(weight|bias)", key)
        state[f"{found[1]}in_proj_{found[3]}" if found else key] = (
            torch.cat([original.state_dict()[f"{found[1].replace('decoder.', 'encoder.', 1)}{x}_proj.{found[3]}"]
                       for x in "qkv"]) if found else value
        )
    assert any("in_proj_weight" in key for key in state)
    tokens = texts(generator)
    model = load(structured(), state)
    torch.testing.assert_close(model(tokens)[0][0], original(tokens)[0][0])


@pytest.mark.parametrize("plan", ["abc_mlp(slots=3)", "linformer(slots=3, length=32)"])
def test_other_attention_takes_over_what_it_shares_and_warns(plan, generator, caplog):
    original = stock()
    fresh = structured(plan)
    before = {key: value.clone() for key, value in fresh.state_dict().items()}
    with caplog.at_level(logging.WARNING):
        model = load(fresh, original.state_dict())
    assert "needs fine-tuning" in caplog.text and "Table 4.6" in caplog.text and "35.5" in caplog.text
    for name, value in original.state_dict().items():
        moved = re.sub(r"self_attn\.", "self_attn.mechanism.", name)
        assert torch.equal(model.state_dict()[moved], value)
    own = [key for key in model.state_dict() if key.endswith("tied.weight")]
    assert own and all(torch.equal(model.state_dict()[key], before[key]) for key in own)
    tokens = texts(generator)
    assert not torch.allclose(model(tokens)[0][0], original(tokens)[0][0])


def test_presets_are_of_roberta_base():
    for preset, plan in (("structured_roberta_abc", "abc_mlp(slots=128)"),
                         ("structured_roberta_linformer", "linformer(slots=128, length=512)")):
        namespace = argparse.Namespace()
        ARCH_CONFIG_REGISTRY[preset](namespace)
        assert namespace.encoder_self_attention == plan
    config = StructuredRobertaConfig()
    assert (config.encoder_layers, config.encoder_embed_dim, config.encoder_attention_heads) == (12, 768, 12)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Text of one word over and over, and labels that say which."""
    folder, chooser = tmp_path_factory.mktemp("text"), random.Random(1)
    for split, count in (("train", 120), ("valid", 24)):
        rows = [(label, f"{'ab'[label]} " * chooser.randint(3, 8) + "c") for label in (chooser.randint(0, 1)
                for _ in range(count))]
        (folder / f"{split}.input0").write_text("".join(f"{text}\n" for _, text in rows))
        (folder / f"{split}.label").write_text("".join(f"{label}\n" for label, _ in rows))
    binarize(folder, folder / "mlm", only=".input0")
    (folder / "labels").write_text("0 1\n1 1\n")
    for part, dictionary in (("input0", folder / "mlm/dict.txt"), ("label", folder / "labels")):
        binarize(folder, folder / "task" / part, "--srcdict", dictionary, only=f".{part}")
    return folder


TRAIN = (
    "--optimizer", "adam", "--lr", 0.01, "--batch-size", 20, "--update-epoch-batch-itr", "True",
    "--no-epoch-checkpoints", "--dropout", 0.0, "--max-positions", 16, *sizes("encoder", dim=16, inner=32, heads=2),
)
MASKED = ("--task", "masked_lm", "--criterion", "masked_lm", "--sample-break-mode", "eos", "--tokens-per-sample", 16)
LABELS = (
    "--task", "sentence_prediction", "--criterion", "sentence_prediction", "--num-classes", 2, "--init-token", 0,
    "--separator-token", 2, "--best-checkpoint-metric", "accuracy", "--maximize-best-checkpoint-metric",
)
PLAN = ("--arch", "structured_roberta", "--encoder-self-attention", "abc_mlp(slots=3)")


@pytest.mark.training
def test_pretrained_swapped_continued_and_fine_tuned(data, tmp_path):
    fairseq("train", data / "mlm", *TRAIN, *MASKED, "--arch", "roberta", "--max-epoch", 3, "--save-dir", tmp_path / "a")
    log = fairseq("train", data / "mlm", *TRAIN, *MASKED, *PLAN, "--max-epoch", 4, "--save-dir", tmp_path / "b",
                  "--finetune-from-model", tmp_path / "a/checkpoint_last.pt")
    assert "the checkpoint has other attention" in log
    losses = [float(loss) for loss in re.findall(r"valid on 'valid' subset \| loss ([\d.]+)", log)]
    assert len(losses) == 4 and losses[-1] < 0.9 * losses[0]
    log = fairseq("train", data / "task", *TRAIN, *LABELS, *PLAN, "--max-epoch", 3, "--save-dir", tmp_path / "c",
                  "--finetune-from-model", tmp_path / "b/checkpoint_last.pt")
    assert "other attention" not in log
    accuracies = [float(value) for value in re.findall(r"\| accuracy ([\d.]+)", log)]
    assert max(accuracies) > 90
    model = load_checkpoint(tmp_path / "c/checkpoint_best.pt")["model"]
    assert any("mechanism.tied" in key for key in model) and any("classification_heads" in key for key in model)
    printed = fairseq("validate", data / "task", "--path", tmp_path / "c/checkpoint_best.pt", *LABELS[:10],
                      "--valid-subset", "valid", "--batch-size", 7)
    assert max(accuracies) == pytest.approx(float(re.findall(r"accuracy ([\d.]+)", printed)[-1]), abs=0.1)


def test_wrong_input(data, tmp_path):
    with pytest.raises(ValueError, match="additive.*encoder"):
        structured("additive")
    with pytest.raises(ValueError, match="another architecture"):
        load(structured(), RobertaModel.build_model(
            argparse.Namespace(**{**SIZES, "encoder_layers": 3}, max_positions=30), TASK).state_dict())
    model = structured("linformer(slots=3, length=8)")
    with pytest.raises(ValueError, match="linformer: a sequence of .* tokens or more; its memory is laid out for 8"):
        model(texts(torch.Generator().manual_seed(1)))


def test_rotary_positions_stand_in_the_place_of_learned_ones(generator):
    model = structured(rotary="all", encoder_kv_heads=1, qk_norm=True).double()
    sentence = model.encoder.sentence_encoder
    assert sentence.embed_positions is None
    tokens = texts(generator)
    encoded, alone = model(tokens)[0], model(tokens[1:2, :7])[0]
    torch.testing.assert_close(encoded[1:2, :7], alone)
