"""`seqstruct inspect` on small checkpoints: plan, counts, training, and files that are no checkpoints."""

import argparse

import pytest
import torch

from seqstruct.cli import main
from seqstruct.cli.inspect import count_parameters, part_of, plan_lines, ranges, slot_lines, version_lines


def small_model(layers=3):
    table = torch.zeros(11, 6)
    model = {"decoder.version": torch.tensor([3.0]), "decoder.embed_tokens.weight": table}
    for layer in range(layers):
        at = f"decoder.layers.{layer}"
        model |= {
            f"{at}.self_attn.mechanism.q_proj.weight": torch.zeros(6, 6),
            f"{at}.self_attn_layer_norm.weight": torch.zeros(6),
            f"{at}.fc1.weight": torch.zeros(12, 6),
        }
    return model | {"decoder.layer_norm.weight": torch.zeros(6), "decoder.output_projection.weight": table}


def checkpoint(**model_options):
    return {
        "cfg": {
            "model": {"_name": "structured_transformer_lm", **model_options},
            "task": {"_name": "cfl_language_modeling", "data": "data-bin/dyck"},
            "optimizer": {"_name": "adam"},
            "common": {"seed": 5},
            "checkpoint": {"best_checkpoint_metric": "loss"},
        },
        "model": small_model(),
        "optimizer_history": [{"num_updates": 1234}],
        "extra_state": {"train_iterator": {"epoch": 3, "iterations_in_epoch": 0}, "best": 0.5},
    }


@pytest.mark.parametrize(
    "key, part",
    [
        ("encoder.layers.0.self_attn.mechanism.k_proj.bias", "encoder self-attention"),
        ("decoder.layers.11.self_attn.k_proj.bias", "decoder self-attention"),
        ("decoder.layers.0.self_attn.mechanism.norm.weight", "decoder self-attention"),
        ("decoder.layers.0.self_attn_layer_norm.bias", "norms"),
        ("decoder.layers.0.encoder_attn.mechanism.memory", "cross-attention"),
        ("decoder.layers.0.encoder_attn_layer_norm.bias", "norms"),
        ("encoder.layers.4.fc2.bias", "feed-forward"),
        ("encoder.embed_positions.weight", "embeddings"),
        ("encoder.layernorm_embedding.weight", "norms"),
        ("decoder.output_projection.weight", "output"),
        ("encoder.attention.scorer.root", "encoder self-attention"),
        ("decoder.attention.pairwise", "cross-attention"),
        ("intra.mechanism.scorer.root", "encoder self-attention"),
        ("classification_heads.x.weight", "other"),
    ],
)
def test_part_of(key, part):
    assert part_of(key) == part


def test_tied_tables_count_once_and_placeholders_not_at_all():
    counts = count_parameters(small_model())
    assert counts == {"embeddings": 66, "decoder self-attention": 108, "feed-forward": 216, "norms": 24}


def test_ranges():
    assert ranges("aabccc") == ["0-1 a", "2 b", "3-5 c"]
    assert ranges([]) == []


def test_plan_of_a_stock_checkpoint():
    assert plan_lines(small_model(), {}) == ["decoder self 0-2 fairseq's own attention"]


def test_command_prints_all_sections(tmp_path, capsys):
    path = tmp_path / "small.pt"
    torch.save(checkpoint(decoder_self_attention="softmax*2 + sigmoid"), path)
    assert main(["inspect", str(path)]) == 0
    printed = capsys.readouterr().out
    for said in (
        "model        structured_transformer_lm\n",
        "decoder self 0-1 softmax, 2 sigmoid(bias=0.0)\n",
        "414 in all, float32\n",
        "data data-bin/dyck\n",
        "decoder vocabulary 11\n",
        "1,234 updates\n",
        "epoch 3 is next\n",
        "best loss 0.5\n",
        "optimizer adam\n",
        "seed 5\n",
        "versions     not in this checkpoint\n",
    ):
        assert said in printed, printed


def test_layers_of_a_masked_language_model_are_in_the_plan(tmp_path, capsys):
    path = tmp_path / "roberta.pt"
    entries = checkpoint(_name="structured_roberta", encoder_self_attention="softmax*2 + delta")
    place = "encoder.sentence_encoder."
    entries["model"] = {key.replace("decoder.", place): tensor for key, tensor in small_model().items()}
    torch.save(entries, path)
    assert main(["inspect", str(path)]) == 0
    printed = capsys.readouterr().out
    for line in (
        "plan         encoder self 0-1 softmax, 2 delta(bidirectional=False, negative_eigenvalues=False)\n",
        "encoder self-attention              108\n",
        "encoder vocabulary 11\n",
    ):
        assert line in printed


def test_versions_that_wrote_the_checkpoint():
    assert version_lines({"extra_state": {"seqstruct_versions": {"torch": "2.13.0", "numpy": "2.4.6"}}}) == [
        "torch 2.13.0", "numpy 2.4.6",
    ]
    assert version_lines({"extra_state": {}}) == ["not in this checkpoint"]


def test_options_may_be_a_namespace(tmp_path, capsys):
    path = tmp_path / "stock.pt"
    stock = argparse.Namespace(arch="transformer", task="translation", data="bin", source_lang="de", target_lang="en")
    torch.save({"args": stock, "cfg": None, "model": small_model()}, path)
    assert main(["inspect", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "model        transformer\n" in printed
    assert "de to en\n" in printed


def odd(**entries):
    """A checkpoint some of whose entries another program wrote."""
    return lambda path: torch.save(checkpoint() | entries, path)


def misfit(path):
    torch.save(checkpoint(decoder_self_attention="softmax*4"), path)


def unknown(path):
    torch.save(checkpoint(decoder_self_attention="telepathy"), path)


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda path: None, "no such checkpoint"),
        (odd(model={"weight": 3}), "bad.pt: not the entries of a fairseq checkpoint"),
        (odd(model={4: torch.zeros(2)}), "bad.pt: not the entries of a fairseq checkpoint"),
        (odd(cfg=3), "its entry 'cfg' is int"),
        (odd(cfg={"model": 3}), "bad.pt: not the entries of a fairseq checkpoint"),
        (odd(cfg={"model": {"decoder_self_attention": 5}}), "bad.pt: not the entries of a fairseq checkpoint"),
        (odd(extra_state=["best"]), "its entry 'extra_state' is list"),
        (odd(extra_state={"best": "low"}), "bad.pt: could not convert string to float: 'low'"),
        (odd(extra_state={"train_iterator": {"epoch": "third"}}), "bad.pt: not the entries of a fairseq checkpoint"),
        (odd(extra_state={"seqstruct_versions": 2}), "bad.pt: not the entries of a fairseq checkpoint"),
        (odd(optimizer_history={"num_updates": 3}), "its entry 'optimizer_history' is dict"),
        (odd(optimizer_history=[7]), "bad.pt: not the entries of a fairseq checkpoint"),
        (odd(optimizer_history=[{"num_updates": [5]}]), "bad.pt: not the entries of a fairseq checkpoint"),
        (misfit, "4 layers described, the model has 3"),
        (unknown, "no attention is called 'telepathy'"),
    ],
)
def test_bad_files_get_one_sentence(tmp_path, refused, make, said):
    path = tmp_path / "bad.pt"
    make(path)
    assert said in refused("inspect", path)


def test_an_attention_beside_recurrent_layers_is_in_the_plan():
    names = "encoder.attention.scorer.score_weight", "decoder.attention.key_layer.weight"
    model = {name: torch.zeros(3) for name in names}
    lines = plan_lines(model, {"encoder_self_attention": "simple(score_size=3)", "cross_attention": "none"})
    assert lines == [
        "encoder self 0 simple(hidden_size=50, score_size=3, bounded=True)",
        "cross        0 the architecture's own attention",
    ]


def test_attention_inside_sentences_is_in_the_plan():
    model = {"words.weight": torch.zeros(3, 2), "intra.mechanism.root_value": torch.zeros(3)}
    assert plan_lines(model, {"intra_attention": "hard_parents"}) == [
        "encoder self 0 hard_parents(without_heads='refuse', root_token=False)"
    ]
    assert plan_lines({"words.weight": torch.zeros(3, 2)}, {"intra_attention": "none"}) == []


def test_what_layers_have_beside_the_plan():
    assert slot_lines({"rotary": "none", "qk_norm": False, "short_conv": 0, "logit_soft_cap": None}) == []
    chosen = {"rotary": "all", "rotary_base": 500.0, "decoder_kv_heads": 2, "swiglu": True, "short_conv": 4}
    assert slot_lines(chosen) == ["rotary=all, decoder_kv_heads=2, short_conv=4, swiglu, rotary_base=500.0"]
