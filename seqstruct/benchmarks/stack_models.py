"""Training steps of the models of DuSell and Chiang (2024), appendix D, for context-free languages, no dropout."""

from __future__ import annotations

import argparse
from types import SimpleNamespace

import torch
from fairseq.models import ARCH_CONFIG_REGISTRY
from torch import Tensor, nn

from seqstruct.benchmarks.timing import Contestant, Place, made_up_task
from seqstruct.models.language_models import stack_lstm_lm
from seqstruct.models.language_models.stack_lstm_lm import StackLSTMLanguageModel
from seqstruct.models.transformer.lm import StructuredTransformerLanguageModel, StructuredTransformerLanguageModelConfig

SYMBOLS = "()[]"  # of the Dyck language
DROPOUTS = ("dropout", "attention_dropout", "activation_dropout")
PLANS = {
    "Tf": (32, "softmax"),
    "Tf+Sup": (32, "softmax*2 + superposition_stack(size=32) + softmax*2"),
    "Tf+Nd Q=2": (28, "softmax*2 + nondeterministic_stack(states=2, symbols=3, size=5) + softmax*2"),
    "Tf+Nd Q=3": (28, "softmax*2 + nondeterministic_stack(states=3, symbols=3, size=5) + softmax*2"),
}
STACKS = {
    "LSTM": ("lstm", "none"),
    "LSTM+Sup": ("sup", stack_lstm_lm.SUPERPOSITION),
    "LSTM+Nd Q=2": ("nd", stack_lstm_lm.NONDETERMINISTIC),
    "LSTM+Nd Q=3": ("nd", stack_lstm_lm.NONDETERMINISTIC.replace("states=2", "states=3")),
}


def training_steps(length: int, batch: int, place: Place) -> dict[str, Contestant]:
    """By the name of the model; the loss is the cross-entropy of random strings."""
    task = made_up_task(SYMBOLS)
    dictionary = task.source_dictionary
    tokens = torch.randint(
        dictionary.nspecial, len(dictionary), (batch, length), generator=torch.Generator().manual_seed(1)
    )
    given = torch.cat([torch.full((batch, 1), dictionary.bos()), tokens[:, :-1]], 1)
    models = {name: _transformer(task, *choice, length) for name, choice in PLANS.items()}
    models |= {name: _lstm(task, *choice) for name, choice in STACKS.items()}
    return {name: _step(model, given, tokens, place) for name, model in models.items()}


def _transformer(task: SimpleNamespace, embed_dim: int, plan: str, length: int) -> nn.Module:
    config = StructuredTransformerLanguageModelConfig(
        add_bos_token=True, tokens_per_sample=length, max_target_positions=length, tpu=False
    )
    preset = argparse.Namespace(decoder_embed_dim=embed_dim, **dict.fromkeys(DROPOUTS, 0.0))
    ARCH_CONFIG_REGISTRY["structured_transformer_lm_cfl"](preset)
    for name, value in {**vars(preset), "decoder_self_attention": plan}.items():
        setattr(config, name, value)
    return StructuredTransformerLanguageModel.build_model(config, task)


def _lstm(task: SimpleNamespace, preset: str, stack: str) -> nn.Module:
    config = argparse.Namespace(stack=stack)
    ARCH_CONFIG_REGISTRY[f"stack_lstm_lm_{preset}"](config)
    return StackLSTMLanguageModel.build_model(config, task)


def _step(model: nn.Module, given: Tensor, tokens: Tensor, place: Place) -> Contestant:
    model, given, tokens = model.to(place.device), given.to(place.device), tokens.to(place.device)

    def loss() -> Tensor:
        logits = model(given)[0]
        return nn.functional.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten())

    return place.training_step(model, loss)
