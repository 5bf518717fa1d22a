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
    """Give a parsed namespace the values of a preset where the command line gave none."""
    for name, value in values.items():
        if getattr(cfg, name, None) is None:
            setattr(cfg, name, value)


def preset(model: str, name: str, text: str, **values: Any) -> None:
    """Register values of a model's options under a name; text: what `seqstruct list` says of it."""

    def apply(cfg: Any) -> None:
        set_default(cfg, **values)

    apply.__doc__ = text
    register_model_architecture(model, name)(apply)


def both_sides(**values: Any) -> Dict[str, Any]:
    """Values of options that an encoder and a decoder have, by the options' names."""
    return {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in values.items()}


def set_modern(cfg: Any, *sides: str, embed_dim: int, heads: int, layers: int) -> None:
    """Layers of today on the sides ("encoder", "decoder") of a model, as in Qwen3: normed before, by roots of mean
    squares, with rotary positions, queries and keys normed, SwiGLU of 8/3 model sizes (to a multiple of 64), no biases,
    and half as many heads of keys and values as of queries.
    """
    for side in sides:
        size = getattr(cfg, f"{side}_embed_dim", None) or embed_dim
        sizes = dict(
            embed_dim=size,
            ffn_embed_dim=-(-8 * size // (3 * 64)) * 64,
            layers=layers,
            attention_heads=heads,
            kv_heads=heads // 2,
        )
        set_default(cfg, **{f"{side}_{name}": value for name, value in sizes.items()})
    set_default(
        cfg, rotary="all", qk_norm=True, no_biases=True, rms_norm=True, swiglu=True, no_scale_embedding=True
    )  # fmt: skip
