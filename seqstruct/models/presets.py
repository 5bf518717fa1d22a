"""What options and presets of several models share."""

from typing import Any, Dict

from fairseq import utils
from fairseq.dataclass import ChoiceEnum

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


def both_sides(**values: Any) -> Dict[str, Any]:
    """Values of options that an encoder and a decoder have, by the options' names."""
    return {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in values.items()}
