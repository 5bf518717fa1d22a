"""Small models for tests, built as the command line builds them."""

from __future__ import annotations

import argparse
import types
from typing import Any

from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY

from seqstruct.models.transformer.lm import (
    StructuredTransformerLanguageModel,
    StructuredTransformerLanguageModelConfig,
)
from seqstruct.models.transformer.translation import StructuredTransformerModel, StructuredTransformerModelConfig

LANGUAGES = {
    "marked-reversal": "01#",
    "unmarked-reversal": "01",
    "padded-reversal": "01",
    "dyck": "()[]",
    "hardest-cfl": "()[],;$",
}
PLANS = {
    "Tf": "softmax",
    "Tf_Sup": "softmax*2 + superposition_stack(size=32) + softmax*2",
    "Tf_Nd": "softmax*2 + nondeterministic_stack(states={states}, symbols=3, size=5) + softmax*2",
}


def dictionary_of(symbols: str) -> Dictionary:
    """fairseq's dictionary with one entry a character."""
    dictionary = Dictionary()
    for symbol in symbols:
        dictionary.add_symbol(symbol)
    return dictionary


def cfl_dictionary(language: str) -> Dictionary:
    """The dictionary of a context-free language."""
    return dictionary_of(LANGUAGES[language])


def task_of(dictionary: Dictionary) -> Any:
    """The two dictionaries a model asks its task for."""
    return types.SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)


def language_model_config(**options: Any) -> StructuredTransformerLanguageModelConfig:
    """The flat configuration with the values a task would give."""
    config = StructuredTransformerLanguageModelConfig(
        add_bos_token=True, tokens_per_sample=64, max_target_positions=64, tpu=False
    )
    for name, value in options.items():
        if not hasattr(config, name):
            raise AttributeError(name)
        setattr(config, name, value)
    return config


def small_language_model(dictionary: Dictionary, **options: Any) -> StructuredTransformerLanguageModel:
    """Two layers of size 12."""
    sizes = dict(decoder_embed_dim=12, decoder_ffn_embed_dim=20, decoder_layers=2, decoder_attention_heads=2)
    return StructuredTransformerLanguageModel.build_model(
        language_model_config(**{**sizes, **options}), task_of(dictionary)
    )


def language_model(kind: str, dictionary: Dictionary, states: int) -> StructuredTransformerLanguageModel:
    """Tf, Tf_Sup or Tf_Nd of the CFL experiments, through the preset."""
    namespace = argparse.Namespace(decoder_self_attention=PLANS[kind].format(states=states))
    if kind == "Tf_Nd":
        namespace.decoder_embed_dim = 28
    ARCH_CONFIG_REGISTRY["structured_transformer_lm_cfl"](namespace)
    return StructuredTransformerLanguageModel.build_model(
        language_model_config(**vars(namespace)), task_of(dictionary)
    )


def small_translation_model(dictionary: Dictionary, **options: Any) -> StructuredTransformerModel:
    """Two layers of size 12 on either side."""
    config = StructuredTransformerModelConfig()
    sizes = dict(embed_dim=12, ffn_embed_dim=20, layers=2, attention_heads=2)
    values = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in sizes.items()}
    for name, value in {**values, **options}.items():
        if not hasattr(config, name):
            raise AttributeError(name)
        setattr(config, name, value)
    return StructuredTransformerModel.build_model(config, task_of(dictionary))
