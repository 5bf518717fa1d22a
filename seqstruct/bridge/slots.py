"""What a model's flat options ask of the slots of its layers, and of their norms and feed-forward parts."""

from __future__ import annotations

import math
from typing import Any

from torch import nn

from seqstruct.attention import AttentionPlan, Site, Slot, get_attention
from seqstruct.attention.base import check_rotates
from seqstruct.bridge.options import spelled

EPSILON = 1e-6  # of norms by the root of the mean square
ABSOLUTE = ("interleaved_positions", "encoder_learned_pos", "decoder_learned_pos")


def slots_of(flat: Any, plan: AttentionPlan) -> dict[Site, Slot]:
    """The slots of each site.

    Raises ValueError, naming site and layer, where `rotary` is "all" and a mechanism of self-attention does not rotate,
    where absolute positions are asked for beside rotary ones, and on an option out of range.
    """
    rotary = str(getattr(flat, "rotary", "none"))
    if rotary != "none":
        for option in ABSOLUTE:
            if getattr(flat, option, False):
                raise ValueError(f"--rotary stands in the place of absolute positions: not with {spelled(option)}")
    if rotary == "all":
        for site in (Site.ENCODER_SELF, Site.DECODER_SELF):
            _check_all(plan, site)
    cap = getattr(flat, "logit_soft_cap", None)
    if cap is not None and not 0 < cap < math.inf:
        raise ValueError(f"--logit-soft-cap is a finite number above 0, not {cap}")
    if cap is not None and getattr(flat, "adaptive_softmax_cutoff", None) is not None:
        raise ValueError("--logit-soft-cap does not go with --adaptive-softmax-cutoff")
    common = dict(
        biases=not getattr(flat, "no_biases", False),
        qk_norm=getattr(flat, "qk_norm", False),
        rotary_base=None if rotary == "none" else flat.rotary_base,
        short_conv=getattr(flat, "short_conv", 0),
    )
    encoder, decoder = (Slot(kv_heads=getattr(flat, f"{s}_kv_heads", None), **common) for s in ("encoder", "decoder"))
    return {Site.ENCODER_SELF: encoder, Site.DECODER_SELF: decoder, Site.CROSS: decoder}


def _check_all(plan: AttentionPlan, site: Site) -> None:
    for layer, choice in enumerate(plan.at(site)):
        try:
            check_rotates(get_attention(choice.name), site)
        except ValueError as error:
            hint = "with --rotary hybrid it stands as it is beside layers that do"
            raise ValueError(f"{site.value} attention, layer {layer}: {error}; {hint}") from None


def norm_by_root(module: nn.Module) -> None:
    """Put norms by the root of the mean square (Zhang and Sennrich 2019) in the place of a module's own layer norms."""
    for name, child in module.named_children():
        if hasattr(child, "normalized_shape"):
            setattr(module, name, nn.RMSNorm(child.normalized_shape, EPSILON))
