"""Small models for tests, built as the command line builds them."""

from __future__ import annotations

import argparse
import types
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY
from torch import Tensor

from seqstruct.models.rnn_translation.model import RecurrentTranslationConfig, RecurrentTranslationModel
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


def small_recurrent_model(dictionary: Dictionary, seed: int, **options: Any) -> RecurrentTranslationModel:
    """Of size 8, in evaluation, with initial values up to 0.7."""
    config = RecurrentTranslationConfig(**{"embed_dim": 6, "hidden_size": 8, "initialization_bound": 0.7, **options})
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return RecurrentTranslationModel.build_model(config, task_of(dictionary)).eval()


def sources_of(sentences: list[list[int]]) -> dict[str, Any]:
    """A batch to decode, padded on the left as fairseq does."""
    width = max(map(len, sentences))
    source = torch.tensor([[1] * (width - len(s)) + s for s in sentences])
    return {"net_input": {"src_tokens": source, "src_lengths": torch.tensor([len(s) for s in sentences])}}


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


@torch.no_grad()
def assert_same_by_steps(
    model: Any, before: Tensor, source: Tensor | None = None, orders: dict[int, list[int]] | None = None, **close: Any
) -> None:
    """Symbol by symbol a decoder gives what it does at once; before some steps rows are selected, as in beam search."""
    whole, state = model(before)[0] if source is None else model(source, None, before)[0], {}
    encoded = [] if source is None else [model.encoder(source)]
    for t in range(before.size(1)):
        if orders and t in orders:
            order = torch.tensor(orders[t])
            before, whole = before[order], whole[order]
            encoded = [model.encoder.reorder_encoder_out(x, order) for x in encoded]
            model.decoder.reorder_incremental_state(state, order)
        logits = model.decoder(before[:, : t + 1], *encoded, incremental_state=state)[0]
        torch.testing.assert_close(logits, whole[:, t : t + 1], **close)
