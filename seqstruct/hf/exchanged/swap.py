"""From a model of transformers to one with other attention: weights are taken over, then fitted to what softmax gave.

Kasai et al. 2021 (T2R) exchange attention and fine-tune all; Zhang et al. 2024 (Hedgehog) and 2025 (LoLCATs, sec. 3.2)
first fit each exchanged layer, on the inputs that it has in the softmax model, to that model's outputs there.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from seqstruct.attention import Attention, get_attention
from seqstruct.hf.exchanged.models import (
    PROJECTIONS,
    ExchangedAttention,
    ExchangedBertForMaskedLM,
    ExchangedGPT2LMHeadModel,
    ExchangedLlamaForCausalLM,
    ExchangedModel,
)

EXCHANGED = {
    "GPT2LMHeadModel": ExchangedGPT2LMHeadModel,
    "LlamaForCausalLM": ExchangedLlamaForCausalLM,
    "BertForMaskedLM": ExchangedBertForMaskedLM,
}


@torch.no_grad()
def swap_attention(model: PreTrainedModel, plan: str) -> Any:
    """A new model, in the training mode of the old, with copies of its weights, and the plan's mechanisms.

    What softmax's projections of queries, keys, values and outputs are is taken over, biases where the mechanism has
    them; parameters beyond those start as the mechanism's do.  With the plan "softmax" logits stay as they are.
    Raises ValueError on another class of models, a plan that does not fit, a mechanism without such projections, and
    an option of the model that has no counterpart.
    """
    cls = EXCHANGED.get(type(model).__name__)
    if cls is None:
        raise ValueError(f"{type(model).__name__}: expected one of {', '.join(EXCHANGED)}")
    fields = model.config.to_dict()
    for name in ("model_type", "architectures", "transformers_version", "dtype"):
        fields.pop(name, None)
    made = cls(cls.config_class(**fields, plan=plan)).to(device=model.device, dtype=model.dtype)
    own = made.state_dict()
    made.load_state_dict({name: value for name, value in model.state_dict().items() if name in own}, strict=False)
    for block, attention in zip(cls.blocks(model), made.attentions, strict=True):
        for name, (weight, bias) in zip(PROJECTIONS, cls.projections(block), strict=True):
            _take(attention, name, weight, bias)
    if model.can_generate():
        made.generation_config = copy.deepcopy(model.generation_config)
    return made.train(model.training)


def _take(attention: ExchangedAttention, name: str, weight: Tensor, bias: Tensor | None) -> None:
    layer = getattr(attention.mechanism, name, None)
    if not isinstance(layer, nn.Linear) or layer.weight.shape != weight.shape:
        raise ValueError(f"{attention.mechanism.name}: expected {name} of {tuple(weight.shape)}, as softmax has it")
    layer.weight.copy_(weight)
    if layer.bias is not None:
        layer.bias.zero_() if bias is None else layer.bias.copy_(bias)


def losses_at_swap(model: ExchangedModel) -> list[str]:
    """Sentences on what the plan's mechanisms cannot take over: rotary positions, biases."""
    shape, found = model.shape_of(model.config), []
    for name in dict.fromkeys(choice.name for choice in model.config.choices()):
        mechanism = get_attention(name)
        if shape.slot.rotary_base is not None and not mechanism.rotates:
            found.append(f"{name} has no rotary positions: its layers do without")
        if shape.slot.biases and not mechanism.biases:
            found.append(f"{name} has no biases: the model's are left out")
    return found


def falling(updates: int, warmup: int = 0) -> Callable[[int], float]:
    """A schedule: the rate rises over the first `warmup` of so many updates, and falls to zero in a straight line."""
    return lambda done: min((done + 1) / max(warmup, 1), max(1 - done / max(updates, 1), 0.0))


def transfer(
    model: PreTrainedModel, exchanged: Any, batches: Iterable[Mapping[str, Tensor]], rate: float = 1e-3,
    schedule: Callable[[int], float] = lambda done: 1.0,
) -> Tensor:
    """Fit each exchanged layer to what softmax gives for the same inputs, in the old model; other layers stay.

    batches: arguments of the models, one update each by Adam; where attention_mask is 0 nothing is fitted.  Only the
    mechanisms' parameters change.  schedule: what the rate is multiplied by after so many updates.
    Updates x layers comes back: squared errors by the square of what is to be fitted.
    Raises ValueError if all layers are softmax's.
    """
    layers = [i for i, choice in enumerate(exchanged.config.choices()) if choice.name != "softmax"]
    if not layers:
        raise ValueError("attention transfer: expected a plan with other attention than softmax")
    teacher, seen = swap_attention(model, "softmax").eval(), {}

    def keep(module: Any, inputs: tuple[Tensor, ...], named: Mapping[str, Any], output: tuple[Tensor, None]) -> None:
        seen[module.layer] = inputs[0] if inputs else named["hidden_states"], named["padding_mask"], output[0]

    for attention in teacher.attentions:
        attention.register_forward_hook(keep, with_kwargs=True)
    students = [exchanged.attentions[i] for i in layers]
    optimizer = torch.optim.Adam([p for student in students for p in student.parameters()], rate)
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
    found, training = [], exchanged.training
    exchanged.train()
    for batch in batches:
        with torch.no_grad():
            teacher(**_inputs(batch), **_uncached(teacher))
        errors = torch.stack([_error(student.mechanism, *seen[i]) for i, student in zip(layers, students, strict=True)])
        _update(optimizer, rates, errors.sum())
        found.append(errors.tolist())
    exchanged.train(training)
    return torch.tensor(found).view(-1, len(layers))


def tune(
    model: PreTrainedModel, batches: Iterable[Mapping[str, Tensor]], rate: float = 3e-4,
    schedule: Callable[[int], float] = lambda done: 1.0,
) -> Tensor:
    """Train all parameters by the model's own loss, one update of AdamW a batch, which has labels; the losses.

    schedule: as for `transfer`.
    """
    optimizer = torch.optim.AdamW(model.parameters(), rate)
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
    training, found = model.training, []
    model.train()
    for batch in batches:
        loss = model(**batch, **_uncached(model)).loss
        _update(optimizer, rates, loss)
        found.append(loss.item())  # a small tensor kept between large ones would hold their memory
    model.train(training)
    return torch.tensor(found)


def _update(optimizer: torch.optim.Optimizer, rates: torch.optim.lr_scheduler.LRScheduler, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], 1.0)
    optimizer.step()
    rates.step()


def _error(mechanism: Attention, hidden: Tensor, padding_mask: Tensor | None, aim: Tensor) -> Tensor:
    """The squared error of what a layer gives for inputs B T C, by the square of its aim."""
    apart = mechanism(hidden, hidden, hidden, padding_mask)[0].output - aim
    if padding_mask is not None:
        apart, aim = apart[~padding_mask], aim[~padding_mask]
    return apart.square().sum() / aim.square().sum()


def _inputs(batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value for name, value in batch.items() if name != "labels"}


def _uncached(model: PreTrainedModel) -> dict[str, bool]:
    return {"use_cache": False} if model.can_generate() else {}
