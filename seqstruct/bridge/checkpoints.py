"""Checkpoints: loaded safely, taken over from stock fairseq models, and with attention swapped."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor, nn

from seqstruct.bridge.adapter import AttentionAdapter
from seqstruct.bridge.compat import prepare_fairseq
from seqstruct.bridge.earlier_plans import keep_meaning
from seqstruct.bridge.swapped_attention import warn


def load_checkpoint(path: str | Path) -> dict[str, Any]:
    """A fairseq checkpoint as a dictionary on the CPU, loaded with `weights_only=True`.

    Raises OSError if there is no such file, ValueError if it is truncated, foreign, or holds objects other than
    tensors and plain data.
    """
    prepare_fairseq()
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such checkpoint")
    with open(path, "rb") as stream:
        state = _load(stream, path)
    if not isinstance(state, dict) or "model" not in state:
        raise ValueError(f"{path}: expected a fairseq checkpoint with a 'model' entry")
    keep_meaning(state)
    return state


def _load(stream: IO[bytes], path: Path) -> Any:
    try:
        return torch.load(stream, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file makes the unpickler raise whatever its bytes lead to
        reason = str(error).strip().split("\n")[0].split(". ")[0] or type(error).__name__
        raise ValueError(f"{path}: not a whole fairseq checkpoint ({reason})") from None


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
    adapters = {f"{name}.": module for name, module in model.named_modules() if isinstance(module, AttentionAdapter)}
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
    _check_rest(own, state_dict)
    if swapped:
        warn(
            f"the checkpoint has other attention at {', '.join(swapped)}: what the two share is taken over, the rest "
            "starts from initial values"
        )


def _move_stock_keys(state_dict: dict[str, Tensor], prefix: str) -> None:
    inner = f"{prefix}mechanism."
    for kind in ("weight", "bias"):
        if f"{prefix}in_proj_{kind}" in state_dict:
            parts = state_dict.pop(f"{prefix}in_proj_{kind}").chunk(3)
            state_dict.update({f"{inner}{name}_proj.{kind}": part for name, part in zip("qkv", parts, strict=True)})
    for key in [key for key in state_dict if key.startswith(prefix) and not key.startswith(inner)]:
        state_dict[inner + key[len(prefix) :]] = state_dict.pop(key)


def _check_rest(own: dict[str, Tensor], state_dict: dict[str, Tensor]) -> None:
    missing = [key for key in own if key not in state_dict]
    surplus = [key for key in state_dict if key not in own]
    if missing or surplus:
        what = f"it lacks {missing[0]}" if missing else f"it holds {surplus[0]}"
        count = len(missing) + len(surplus)
        raise ValueError(f"the checkpoint is of another architecture: {what} ({count} such differences)")
    for key, value in own.items():
        if state_dict[key].shape != value.shape:
            raise ValueError(
                f"the checkpoint is of another architecture: {key} is {tuple(state_dict[key].shape)} there and "
                f"{tuple(value.shape)} here"
            )
