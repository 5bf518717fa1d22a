"""Tiny models of transformers, and tokens for them."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoModelForSequenceClassification

from seqstruct.hf import SeqstructConfig

SIZES = {
    f"{side}_{name}": value
    for side in ("encoder", "decoder")
    for name, value in dict(layers=2, embed_dim=12, ffn_embed_dim=7, attention_heads=2).items()
}
AUTO = {
    "structured_transformer_lm": AutoModelForCausalLM,
    "structured_transformer": AutoModelForSeq2SeqLM,
    "structured_transformer_classifier": AutoModelForSequenceClassification,
}


def config_of(arch: str = "structured_transformer_lm", **options: Any) -> SeqstructConfig:
    return SeqstructConfig(arch=arch, vocab_size=13, **{**SIZES, "dropout": 0.0, **options})


def drawn(arch: str = "structured_transformer_lm", **options: Any) -> Any:
    """A model whose initial values come from a seed of their own."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return AUTO[arch].from_config(config_of(arch, **options)).eval()


def tokens_of(generator: torch.Generator, batch: int = 3, length: int = 7) -> torch.Tensor:
    return torch.randint(4, 13, (batch, length), generator=generator)
