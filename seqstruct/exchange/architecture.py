"""A model of fairseq as one of `seqstruct.hf`, and back: options of the one are those of the other by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

import torch
from torch import Tensor, nn

from seqstruct.attention.option import default_of
from seqstruct.hf import (
    SeqstructConfig,
    SeqstructForCausalLM,
    SeqstructForSeq2SeqLM,
    SeqstructForSequenceClassification,
)
from seqstruct.models.transformer.classifier import StructuredClassifier, StructuredClassifierConfig
from seqstruct.models.transformer.lm import (
    StructuredTransformerLanguageModel,
    StructuredTransformerLanguageModelConfig,
)
from seqstruct.models.transformer.translation import StructuredTransformerModel, StructuredTransformerModelConfig
from seqstruct.scoring.trained import first_symbol

ARCHITECTURES: dict[str, tuple[type, type, type]] = {  # fairseq's model, its options, and the model of transformers
    "structured_transformer": (StructuredTransformerModel, StructuredTransformerModelConfig, SeqstructForSeq2SeqLM),
    "structured_transformer_lm": (
        StructuredTransformerLanguageModel, StructuredTransformerLanguageModelConfig, SeqstructForCausalLM,
    ),
    "structured_transformer_classifier": (
        StructuredClassifier, StructuredClassifierConfig, SeqstructForSequenceClassification,
    ),
}
NOT_EXPORTED = (  # options that change what a model computes and have no counterpart
    "adaptive_input", "adaptive_softmax_cutoff", "character_embeddings", "scale_attn", "scale_heads", "scale_fc",
    "scale_resids", "decoder_layers_to_keep", "encoder_layers_to_keep", "stack_to_output",
)
SHARED = {field.name for field in fields(SeqstructConfig)}
NAMED = {"architectures", "dtype", "arch", "id2label", "label2id", "transformers_version"}  # transformers' own
COUNTERS = (".version", "_float_tensor")  # of fairseq's modules; no parameters


def name_of(model: Any) -> str:
    """The architecture of a model of fairseq.  Raises ValueError if there is none for transformers."""
    for name, (kind, *_) in ARCHITECTURES.items():
        if isinstance(model, kind):
            return name
    raise ValueError(f"{type(model).__name__} has no counterpart in transformers; those that have: "
                     f"{', '.join(ARCHITECTURES)}")


def config_of(model: Any, task: Any, options: Mapping[str, Any]) -> SeqstructConfig:
    """The configuration of a model of fairseq, its options as the checkpoint has them.

    Raises ValueError on an option that has no counterpart in transformers.
    """
    name = name_of(model)
    options = {**_defaults(ARCHITECTURES[name][1]), **options}
    for option in NOT_EXPORTED:
        if options.get(option):
            raise ValueError(f"--{option.replace('_', '-')} has no counterpart in transformers")
    values = {key: _plain(options[key]) for key in SHARED & options.keys() - NAMED}
    source, target = task.source_dictionary, task.target_dictionary
    if name == "structured_transformer_classifier":
        target = source
        labels = [str(label) for label in task.labels]
        values |= {"id2label": dict(enumerate(labels)), "label2id": {x: i for i, x in enumerate(labels)},
                   "pairs": bool(task.pairs), "encoder_normalize_before": True, "no_scale_embedding": True,
                   "interleaved_positions": True, "decoder_layers": 0}
    if name == "structured_transformer_lm":
        values["decoder_normalize_before"] = not options["decoder_normalize_after"]
        values["max_target_positions"] = model.decoder.max_target_positions
    first = first_symbol(task) if name == "structured_transformer_lm" else target.bos()
    return SeqstructConfig(
        arch=name, vocab_size=len(target), source_vocab_size=len(source), special_tokens=target.nspecial,
        bos_token_id=first, pad_token_id=target.pad(), eos_token_id=target.eos(),
        decoder_start_token_id=target.eos(), **values,
    )


def converted(model: Any, config: SeqstructConfig) -> Any:
    """The same model for transformers, in eval mode; its parameters are the very same."""
    other = ARCHITECTURES[config.arch][2](config).eval()
    other.load_state_dict(parameters_of(model))
    return other


def parameters_of(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers without what counts fairseq's versions."""
    return {name: value for name, value in model.state_dict().items() if not name.endswith(COUNTERS)}


def options_of(config: SeqstructConfig) -> dict[str, Any]:
    """The options of fairseq's model: of those that training alone knows, the defaults."""
    known = _defaults(ARCHITECTURES[config.arch][1])
    found = {key: getattr(config, key) for key in SHARED & known.keys() - NAMED}
    if config.arch == "structured_transformer_lm":
        found["decoder_normalize_after"] = not config.decoder_normalize_before
        found["decoder_normalize_before"] = config.decoder_normalize_before
        found["tokens_per_sample"] = config.max_target_positions
    return {**known, **found, "_name": config.arch}


def _defaults(options: type) -> dict[str, Any]:
    found = {field.name: default_of(field) for field in fields(options)}
    return {name: _plain(x) for name, x in found.items() if x is not MISSING and not str(x).startswith("${")}


def _plain(value: Any) -> Any:
    """An option as JSON has it: choices are their names."""
    return value if value is None or type(value) in (bool, int, float, str, list) else str(value)


@torch.no_grad()
def difference(model: Any, other: Any) -> float:
    """The largest difference between logits of the two on random tokens, with padding; NaN where there is one."""
    config, generator = other.config, torch.Generator().manual_seed(1)

    def drawn(size: int, length: int) -> Tensor:
        length = max(1, min(length, config.max_source_positions - 1, config.max_target_positions - 1))
        return torch.randint(config.special_tokens, size, (3, length), generator=generator)

    source = drawn(config.source_vocab_size or config.vocab_size, 7)
    short = source.clone()
    short[0, 3:] = config.pad_token_id  # on the right, where no pass is disturbed
    lengths = short.ne(config.pad_token_id).sum(1)
    if config.is_encoder_decoder:
        target = drawn(config.vocab_size, 6)
        expected, _ = model(short, lengths, target)
        found = other(short, decoder_input_ids=target).logits
    elif config.arch == "structured_transformer_lm":
        expected, _ = model(short)
        found = other(short).logits
        real = short.ne(config.pad_token_id)
        expected, found = expected[real], found[real]
    elif config.pairs:
        second = drawn(config.vocab_size, 5)
        expected = model(short, lengths, second, None)
        found = other(short, second_input_ids=second).logits
    else:
        expected, found = model(short, lengths), other(short).logits
    return float((expected - found).masked_fill(expected == found, 0.0).abs().max())  # -inf of both, too
