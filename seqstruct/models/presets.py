"""What options and presets of several models share."""

from typing import Any, Dict

from fairseq import utils
from fairseq.dataclass import ChoiceEnum
from fairseq.models import register_model_architecture

ACTIVATIONS = ChoiceEnum(utils.get_available_activation_fns())
PLAN_HELP = (
    "attention of each layer from the lowest up, e.g. 'softmax*2 + superposition_stack(size=32) + softmax*2'; one "
    "mechanism alone stands in every layer"
)


def set_default(cfg: Any, **values: Any) -> None:
    """Give a parsed namespace the values of a preset where the command line gave none.

    A function makes its value of the namespace, once all others are there.
    """
    for name, value in sorted(values.items(), key=lambda item: callable(item[1])):
        if getattr(cfg, name, None) is None:
            setattr(cfg, name, value(cfg) if callable(value) else value)


def preset(model: str, name: str, text: str, **values: Any) -> None:
    """Register values of a model's options, as of `set_default`; text: what `seqstruct list` says of them."""

    def apply(cfg: Any) -> None:
        set_default(cfg, **values)

    apply.__doc__ = text
    register_model_architecture(model, name)(apply)


def both_sides(**values: Any) -> Dict[str, Any]:
    """Values of options that an encoder and a decoder have, by the options' names."""
    return {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in values.items()}


def modern(*sides: str, embed_dim: int, heads: int, layers: int) -> Dict[str, Any]:
    """Layers of today on the sides ("encoder", "decoder") of a model, as in Qwen3: normed before, by roots of mean
    squares, with rotary positions, queries and keys normed, SwiGLU of 8/3 model sizes (to a multiple of 64), no biases,
    and half as many heads of keys and values as of queries.
    """
    values = dict(rotary="all", qk_norm=True, no_biases=True, rms_norm=True, swiglu=True, no_scale_embedding=True)
    for side in sides:
        sizes = dict(embed_dim=embed_dim, layers=layers, attention_heads=heads, kv_heads=heads // 2)
        values |= {f"{side}_{name}": value for name, value in sizes.items()}
        values[f"{side}_ffn_embed_dim"] = lambda cfg, side=side: -(-8 * getattr(cfg, f"{side}_embed_dim") // 192) * 64
    return values
