"""Reversible residual layers (Gomez et al. 2017, eq. 6 to 8; Kitaev et al. 2020, sec. 3): no activations are stored.

    y1 = x1 + f(x2),   y2 = x2 + g(y1);   backwards   x2 = y2 - g(y1),   x1 = y1 - f(x2)

f is attention, g the feed-forward part, each with its normalisation before and its dropout after.  Both streams start
from the embeddings, and the mean of both leaves the last layer.  Memory of activations O(B T C) whatever the number of
layers, for one more computation of f and g in the backward pass; random draws are repeated there.
Deviation: the Reformer joins the two streams by concatenation, here their mean has the size that fairseq's output
layer expects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import get_device_states, set_device_states

from seqstruct.ops.first_derivatives import first_derivatives_only

Branch = Callable[[Tensor], Tensor]


class ReversibleLayers(nn.Module):
    """Decoder layers without cross attention whose residual connections are reversible.

    fairseq's decoder goes through its layers one by one: this module is the only one that it meets, and stands for all.
    Parameters have the names that they have in a list of layers.
    """

    def __init__(self, layers: Iterable[nn.Module]):
        super().__init__()
        for number, layer in enumerate(layers):
            self.add_module(str(number), layer)

    def __iter__(self) -> Iterator[nn.Module]:
        yield self

    def forward(
        self,
        x: Tensor,
        encoder_out: Any = None,
        encoder_padding_mask: Any = None,
        incremental_state: dict[str, dict[str, Any]] | None = None,
        self_attn_mask: Tensor | None = None,
        self_attn_padding_mask: Tensor | None = None,
        **_: Any,
    ) -> tuple[Tensor, None, None]:
        """The last layer's output T B C for x T B C, as fairseq's layers give it: without weights."""
        options = {
            "padding_mask": self_attn_padding_mask, "attn_mask": self_attn_mask, "incremental_state": incremental_state
        }
        branches = [(partial(layer.attend, **options), layer.transform) for layer in self.children()]
        if torch.is_grad_enabled():
            streams = _Reversible.apply(branches, x, x, *self.parameters())
        else:
            streams = two_streams(branches, x, x)
        return (streams[0] + streams[1]) / 2, None, None


def two_streams(branches: Sequence[tuple[Branch, Branch]], x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
    """The two streams after all layers, each given by its f and g; all tensors of one shape."""
    for f, g in branches:
        x1 = x1 + f(x2)
        x2 = x2 + g(x1)
    return x1, x2


class _Reversible(torch.autograd.Function):
    """two_streams, with activations recomputed in the backward pass; parameters: of all branches."""

    @staticmethod
    def forward(ctx, branches, x1, x2, *parameters):
        ctx.branches, ctx.draws = branches, []

        def drawing(branch: Branch) -> Branch:
            def run(x: Tensor) -> Tensor:
                ctx.draws.append((torch.get_rng_state(), get_device_states(x)))
                return branch(x)

            return run

        device = x1.device.type
        ctx.cast = (device, torch.get_autocast_dtype(device), torch.is_autocast_enabled(device))
        y1, y2 = two_streams([(drawing(f), drawing(g)) for f, g in branches], x1, x2)
        ctx.save_for_backward(y1, y2, *parameters)
        return y1, y2

    @staticmethod
    @first_derivatives_only
    def backward(ctx, d1, d2):
        x1, x2, *parameters = ctx.saved_tensors
        wanted = [p for p in parameters if p.requires_grad]
        gradients: dict[int, Tensor] = {}

        def undo(branch: Branch, draw: Any, x: Tensor, sum_: Tensor, d_sum: Tensor) -> tuple[Tensor, Tensor]:
            """What `branch(x)` was added to, and the gradient that x has by it."""
            x = x.detach().requires_grad_()
            with torch.enable_grad(), _drawn(draw), torch.autocast(ctx.cast[0], ctx.cast[1], ctx.cast[2]):
                added = branch(x)
            found = torch.autograd.grad(added, [x, *wanted], d_sum, allow_unused=True)
            for parameter, gradient in zip(wanted, found[1:], strict=True):
                if gradient is not None:
                    before = gradients.get(id(parameter))
                    gradients[id(parameter)] = gradient if before is None else before + gradient
            return sum_ - added.detach(), torch.zeros_like(x) if found[0] is None else found[0]

        for layer in reversed(range(len(ctx.branches))):
            f, g = ctx.branches[layer]
            x2, d = undo(g, ctx.draws[2 * layer + 1], x1, x2, d2)
            d1 = d1 + d
            x1, d = undo(f, ctx.draws[2 * layer], x2, x1, d1)
            d2 = d2 + d
        return None, d1, d2, *(gradients.get(id(p)) for p in parameters)


@contextmanager
def _drawn(draw: tuple[Tensor, tuple[Any, Any]]) -> Iterator[None]:
    """The random draws of the forward pass, once more."""
    state, (devices, states) = draw
    with torch.random.fork_rng(devices=devices):
        torch.set_rng_state(state)
        set_device_states(devices, states)
        yield
