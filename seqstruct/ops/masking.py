"""Masks: one boolean `padding_mask` (B S, True = padding) and what follows from it."""

from __future__ import annotations

import torch
from torch import Tensor


def check_padding_mask(padding_mask: Tensor | None, batch: int, length: int) -> None:
    """Raise ValueError unless the mask is None or a boolean tensor of shape batch x length."""
    if padding_mask is None:
        return
    if padding_mask.dtype != torch.bool:
        raise ValueError(f"padding_mask: expected bool (True = padding), got {padding_mask.dtype}")
    if tuple(padding_mask.shape) != (batch, length):
        raise ValueError(f"padding_mask: expected {batch} x {length}, got {' x '.join(map(str, padding_mask.shape))}")


def host_looks(x: Tensor) -> bool:
    """Whether the host looks at numbers of x on its way: not at those of another device, nor where PyTorch compiles."""
    return x.device.type == "cpu" and not torch.compiler.is_compiling()


def some(mask: Tensor) -> bool:
    """Whether any is True; where the host does not look, True."""
    return not host_looks(mask) or bool(mask.any())


def fails(wrong: Tensor, expected: str) -> bool:
    """Whether any is True, which the caller makes an error; where the host does not look PyTorch makes one, later."""
    if host_looks(wrong):
        return some(wrong)
    torch._assert_async(~wrong.any(), expected)
    return False


def mask_of(padding_mask: Tensor | None, x: Tensor) -> Tensor:
    """The mask; where there is none, B S False for x: B S C."""
    return torch.zeros(x.shape[:2], dtype=torch.bool, device=x.device) if padding_mask is None else padding_mask


def clear_padding(padding_mask: Tensor | None, *inputs: Tensor) -> tuple[Tensor, ...]:
    """Inputs B S C with zeros at padding; one tensor given twice stays one.  Raises as `check_padding_mask`."""
    check_padding_mask(padding_mask, *inputs[0].shape[:2])
    if padding_mask is None:
        return inputs
    nothing, first = padding_mask.unsqueeze(-1), inputs[0]
    cleared = first.masked_fill(nothing, 0.0)
    return cleared, *(cleared if x is first else x.masked_fill(nothing, 0.0) for x in inputs[1:])


def bound_padding(padding_mask: Tensor, x: Tensor) -> Tensor:
    """x: B S C with zeros at padding where what stands there is so large that products of it may not be finite."""
    most = min(1e4, torch.finfo(x.dtype).max ** 0.5)
    ordinary = x.detach().abs().amax(-1, keepdim=True) <= most  # not where it is NaN
    return x.masked_fill(padding_mask.unsqueeze(-1) & ~ordinary, 0.0)


def causal_mask(queries: int, keys: int, device: torch.device | None = None) -> Tensor:
    """T S bool, True where query t sees key s; the last query sees all keys (keys >= queries)."""
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)


def left_to_right_visible(padding_mask: Tensor, queries: int) -> Tensor:
    """B T S bool: key s is real and not in the future of query t, of the last T."""
    return causal_mask(queries, padding_mask.size(1), padding_mask.device)[None] & ~padding_mask[:, None]


def positions(padding_mask: Tensor) -> Tensor:
    """B S long: how many real tokens stand before each cell; padding is never counted."""
    real = (~padding_mask).long()
    return real.cumsum(1) - real


def started(padding_mask: Tensor) -> Tensor:
    """B S bool: whether a real token stands at or before each cell."""
    return (~padding_mask).cummax(1).values if padding_mask.size(1) else ~padding_mask


def reordered(x: Tensor, order: Tensor) -> Tensor:
    """x: B H T D with its positions in the order B T."""
    return x.gather(2, order[:, None, :, None].expand(-1, x.size(1), -1, x.size(3)))
