"""Trained models that are given other attention than they were trained with: what is taken over, and a warning.

Loading a state dictionary shows other parameters (`adapt_state_dict`); mechanisms whose parameters bear the
same names and shapes, as those of softmax and linear, differ in the options alone, as do numbers of heads, rotary
positions and the norms of queries and keys (`changed`).
"""

from __future__ import annotations

import logging
from typing import Any

from torch import Tensor, nn

from seqstruct.attention import Choice, make_config
from seqstruct.attention.plan import read_items
from seqstruct.bridge.adapter import AttentionAdapter
from seqstruct.bridge.checkpoints import check_parameters, configuration_of, load_checkpoint, mapped, options_of
from seqstruct.bridge.earlier_plans import keep_meaning

logger = logging.getLogger(__name__)

PLANS = ("encoder_self_attention", "decoder_self_attention", "cross_attention")
OPTIONS = ("encoder_attention_heads", "decoder_attention_heads", "attention_heads", "rotary", "rotary_base", "qk_norm")
WITHOUT_FINE_TUNING = (
    "without it, a translation model trained with softmax attention (35.5 BLEU) and used with random feature attention "
    "had 0.4, and one trained with random feature attention (35.2) and used with softmax had 0.7 (IWSLT'14 de-en, "
    "development set; Peng 2022, Table 4.6)"
)

SWAPPED = "attention_swapped"  # an attribute of models that a warning was given of


def warn(what: str, *models: nn.Module) -> None:
    """Say what of the attention of a checkpoint's models was swapped, and what comes of it without fine-tuning."""
    for model in models:
        setattr(model, SWAPPED, True)
    logger.warning("%s, and the model needs fine-tuning; %s", what, WITHOUT_FINE_TUNING)


def adapt_state_dict(model: nn.Module, state_dict: dict[str, Tensor]) -> None:
    """Fit a state dictionary, in place, to the attention of `model`.

    Stock attention keys (`self_attn.k_proj.weight`) move under the adapter (`self_attn.mechanism.k_proj.weight`); those
    that hold all three projections in one (`in_proj_weight`, in checkpoints of 2019) are taken apart.
    An adapter whose keys or shapes still differ was given another mechanism: it takes over parameters of the same name
    and shape, such as softmax attention's projections, and keeps its initial values for the others; a warning names it
    and says what comes of it without fine-tuning.
    Raises ValueError if anything but attention differs, or where the mechanism's `check_saved` does.
    """
    own = model.state_dict()
    named = model.named_modules(remove_duplicate=False)  # layers that are one bear all their names in checkpoints
    adapters = {f"{name}.": module for name, module in named if isinstance(module, AttentionAdapter)}
    swapped = []
    for prefix, adapter in adapters.items():
        _move_stock_keys(state_dict, prefix)
        expected = {key: value.shape for key, value in own.items() if key.startswith(prefix)}
        found = {key: value.shape for key, value in state_dict.items() if key.startswith(prefix)}
        if found != expected:
            adapter.mechanism.check_saved({key.removeprefix(f"{prefix}mechanism.") for key in found})
            swapped.append(prefix.rstrip("."))
            for key in found:
                if found[key] != expected.get(key):
                    del state_dict[key]
            state_dict.update({key: own[key] for key in expected if key not in state_dict})
    check_parameters(own, state_dict)
    if swapped:
        warn(
            f"the checkpoint has other attention at {', '.join(swapped)}: what the two share is taken over, the rest "
            "starts from initial values",
            model,
        )


def _move_stock_keys(state_dict: dict[str, Tensor], prefix: str) -> None:
    inner = f"{prefix}mechanism."
    for kind in ("weight", "bias"):
        if f"{prefix}in_proj_{kind}" in state_dict:
            parts = state_dict.pop(f"{prefix}in_proj_{kind}").chunk(3)
            state_dict.update({f"{inner}{name}_proj.{kind}": part for name, part in zip("qkv", parts, strict=True)})
    for key in [key for key in state_dict if key.startswith(prefix) and not key.startswith(inner)]:
        state_dict[inner + key[len(prefix) :]] = state_dict.pop(key)


def changed(filename: str, options: Any) -> list[str]:
    """What of these options of a model is other attention than a checkpoint was trained with, and how.

    None where the checkpoint does not say its own; an architecture of fairseq's, which has no plans, has softmax.
    """
    try:
        state = mapped(filename) or load_checkpoint(filename)
    except (OSError, ValueError):  # told by whatever loads the model
        return []
    keep_meaning(state)
    now, own = options_of(options), configuration_of(state).get("model")
    if not own:
        return []
    if now.get("_name", own.get("_name")) != own.get("_name") and not any(name in own for name in PLANS):
        own = {**own, **dict.fromkeys(PLANS, "softmax")}
    return [
        f"{name}: {own[name]}, now {now[name]}"
        for name in (*PLANS, *OPTIONS)
        if name in now and name in own and _meaning(own[name]) != _meaning(now[name])
    ]


def _meaning(value: Any) -> Any:
    """A plan's choices, one alone for all layers, however it is written; what is no plan as it is."""
    try:
        choices = [Choice(name, make_config(name, given)) for name, given in read_items(value, "the plan")]
    except (ValueError, AttributeError):
        return value
    return choices[:1] if all(choice == choices[0] for choice in choices) else choices
