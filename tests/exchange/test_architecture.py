"""fairseq's models and those of transformers compute the same numbers, whatever their options."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from seqstruct.exchange.architecture import ARCHITECTURES, config_of, converted, difference, options_of, parameters_of
from tests.models.building import dictionary_of

SIZES = {
    f"{side}_{name}": value
    for side in ("encoder", "decoder")
    for name, value in dict(layers=2, embed_dim=12, ffn_embed_dim=10, attention_heads=2).items()
}
TRANSLATION = [
    {},
    {"share_all_embeddings": True, "encoder_normalize_before": True, "decoder_normalize_before": True},
    {"interleaved_positions": True, "layernorm_embedding": True, "share_decoder_input_output_embed": True},
    {"encoder_learned_pos": True, "decoder_learned_pos": True, "activation_fn": "gelu_accurate"},
    {"no_token_positional_embeddings": True, "interleaved_positions": True, "no_scale_embedding": True,
     "activation_fn": "tanh"},
    {"decoder_output_dim": 8, "encoder_embed_dim": 10},
    {"encoder_self_attention": "lsh + luna(slots=3)", "cross_attention": "rfa(features=16) + abc_mlp(slots=3)",
     "decoder_self_attention": "performer(features=9) + nondeterministic_stack(states=2, symbols=3, size=2)"},
    {"rotary": "hybrid", "rms_norm": True, "swiglu": True, "no_biases": True, "qk_norm": True, "short_conv": 3,
     "decoder_kv_heads": 1, "logit_soft_cap": 3.0, "decoder_self_attention": "softmax + delta"},
]
LANGUAGE_MODEL = [
    {},
    {"decoder_normalize_after": True, "share_decoder_input_output_embed": True, "activation_fn": "gelu"},
    {"compact_vocabulary": True, "interleaved_positions": True, "logit_soft_cap": 3.0, "decoder_input_dim": 6},
    {"reversible": True, "decoder_self_attention": "softmax + gated_delta"},
    {"no_decoder_final_norm": True, "decoder_learned_pos": True, "decoder_self_attention": "lsh + abc_random"},
    {"rotary": "all", "swiglu": True, "rms_norm": True, "decoder_kv_heads": 1, "ffn_chunks": 2},
]
CLASSIFIER = [
    {},
    {"pooling": "mean", "classifier_hidden_size": 6},
    {"tie_layers": True, "encoder_self_attention": "linear", "pairs": True},
    {"rotary": "all", "rms_norm": True, "pairs": True, "pooling": "mean"},
    {"encoder_self_attention": "dependency(hidden_size=3, score_size=4) + bigbird(size=2)"},
]
CASES = [
    (name, options)
    for name, given in zip(ARCHITECTURES, (TRANSLATION, LANGUAGE_MODEL, CLASSIFIER), strict=True)
    for options in given
]


def task_of(options: dict[str, Any]) -> SimpleNamespace:
    source, target = dictionary_of("abcdefg"), dictionary_of("hijklmnop")
    if options.get("share_all_embeddings"):
        target = source
    return SimpleNamespace(
        source_dictionary=source,
        target_dictionary=target,
        labels=["no", "yes", "both"],
        pairs=options.get("pairs", False),
        cfg=SimpleNamespace(add_bos_token=options.get("add_bos_token", False)),
    )


def model_of(name: str, options: dict[str, Any]) -> tuple[Any, SimpleNamespace, dict[str, Any]]:
    """fairseq's model with parameters drawn at random, its task, and the options as a checkpoint has them."""
    kind, flat, _ = ARCHITECTURES[name]
    values = {key: value for key, value in {**SIZES, **options}.items() if key in flat.__dataclass_fields__}
    if name == "structured_transformer_lm":
        values |= {"tokens_per_sample": 30, "max_target_positions": 30, "tpu": False}
        values["add_bos_token"] = options.get("add_bos_token", False)
    config, task = flat(**values), task_of(options)
    if name == "structured_transformer_lm":
        task.source_dictionary = task.target_dictionary
    with torch.random.fork_rng():
        torch.manual_seed(2)
        model = kind.build_model(config, task).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn_like(parameter) * 0.5)
    saved = {key: getattr(config, key) for key in flat.__dataclass_fields__}
    return model, task, saved


@pytest.mark.parametrize("name, options", CASES, ids=str)
def test_logits_are_the_same(name: str, options: dict[str, Any]) -> None:
    model, task, saved = model_of(name, options)
    config = config_of(model, task, saved)
    other = converted(model, config)
    assert difference(model, other) < 1e-5
    assert len(list(other.parameters())) == len(list(model.parameters()))


@pytest.mark.parametrize("value", [torch.nan, -torch.inf, torch.inf])
def test_what_is_no_number_is_a_difference(value: float) -> None:
    model, task, saved = model_of("structured_transformer_lm", {"compact_vocabulary": True})
    other = converted(model, config_of(model, task, saved))
    assert difference(model, other) < 1e-5  # where both have -inf
    other.decoder.output_projection.bias.data = other.decoder.output_projection.bias.data.clone()
    other.decoder.output_projection.bias.data[-1] = value
    assert not difference(model, other) <= 1e-5


def test_a_language_model_begins_as_it_was_trained() -> None:
    for begins, first in ((False, 2), (True, 0)):
        assert config_of(*model_of("structured_transformer_lm", {"add_bos_token": begins})).bos_token_id == first


@pytest.mark.parametrize("name, options", CASES, ids=str)
def test_options_come_back(name: str, options: dict[str, Any]) -> None:
    model, task, saved = model_of(name, options)
    config = config_of(model, task, saved)
    back = options_of(config)
    again, *_ = model_of(name, {key: back[key] for key in back if not key.startswith("_")} | {
        key: options[key] for key in ("pairs",) if key in options})
    again.load_state_dict(model.state_dict())
    assert difference(again, converted(model, config)) < 1e-5
    assert parameters_of(again).keys() == parameters_of(model).keys()


def test_what_has_no_counterpart_is_refused() -> None:
    model, task, saved = model_of("structured_transformer_lm", {})
    with pytest.raises(ValueError, match="--adaptive-input has no counterpart"):
        config_of(model, task, {**saved, "adaptive_input": True})
    with pytest.raises(ValueError, match="Linear has no counterpart in transformers"):
        config_of(torch.nn.Linear(1, 1), task, saved)
