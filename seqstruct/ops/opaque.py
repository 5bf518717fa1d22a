"""Functions of tensors that a compiled graph holds whole, as one operator.

A loop over tokens would be unrolled anew for each length, and branches on numbers and buffers that are used again
cannot be traced at all.  Such a function is called as it is in eager mode; where PyTorch compiles or exports, an
operator of the library `seqstruct_whole` stands for it, whose derivative calls the function again and lets autograd go
back through it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

P, R = ParamSpec("P"), TypeVar("R")


def opaque(fake: Callable[..., Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function an operator in compiled graphs.

    The function takes tensors and numbers, by annotations that `torch.library.infer_schema` knows, and returns a tensor
    or a tuple of them; it changes none of its arguments and draws no random numbers.  fake: the results' shapes and
    types, contiguous, for arguments without numbers; of symbolic sizes, so by `size`, not `len`.
    A derivative in a compiled graph costs one forward pass more, and holds nothing but the arguments until then.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        operator = _operator(function, fake)

        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            return operator(*args, **kwargs) if torch.compiler.is_compiling() else function(*args, **kwargs)

        return called

    return decorate


def _operator(function: Callable[..., Any], fake: Callable[..., Any]) -> Callable[..., Any]:
    place = function.__module__.rpartition("seqstruct.")[2].replace(".", "_")
    name = f"seqstruct_whole::{place}_{function.__name__.strip('_')}"
    schema = torch.library.infer_schema(function, mutates_args=())
    arguments = schema.rpartition(" -> ")[0].strip()[1:]

    def forward(*args: Any) -> Any:
        return _own(function(*args))

    def backward(grads: list[Tensor | None], needed: list[bool], *args: Any) -> list[Tensor]:
        kept = torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set()
        above = torch._C._ForceDispatchKeyGuard(kept[0], kept[1] & _but_autograd())
        with above, torch.enable_grad():  # an operator runs where nothing is recorded
            leaves = [x.detach() if isinstance(x, Tensor) else x for x in args]
            wanted = [x.requires_grad_() for x, n in zip(leaves, needed, strict=True) if n]
            results = function(*leaves)
            results = results if isinstance(results, tuple) else (results,)
            reached = [(x, g) for x, g in zip(results, grads, strict=True) if g is not None and x.requires_grad]
            outputs, grads = [x for x, _ in reached], [g for _, g in reached]
            found = torch.autograd.grad(outputs, wanted, grads, allow_unused=True) if reached else [None] * len(wanted)
        return [_own(torch.zeros_like(x) if g is None else g) for x, g in zip(wanted, found, strict=True)]

    def fake_backward(grads: list[Tensor | None], needed: list[bool], *args: Any) -> list[Tensor]:
        return [x.new_empty(x.shape) for x, n in zip(args, needed, strict=True) if n]

    asked = f"(Tensor?[] grads, bool[] needed, {arguments} -> Tensor[]"
    again = torch.library.custom_op(f"{name}_backward", backward, mutates_args=(), schema=asked)
    again.register_fake(fake_backward)
    operator = torch.library.custom_op(name, forward, mutates_args=(), schema=schema)
    operator.register_fake(fake)

    def setup(ctx: Any, inputs: tuple, output: Any) -> None:
        ctx.kinds = [isinstance(x, Tensor) for x in inputs]
        ctx.others = [x for x in inputs if not isinstance(x, Tensor)]
        ctx.save_for_backward(*(x for x in inputs if isinstance(x, Tensor)))

    def derivative(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        tensors, others, needed = iter(ctx.saved_tensors), iter(ctx.others), list(ctx.needs_input_grad)
        args = [next(tensors) if kind else next(others) for kind in ctx.kinds]
        found = iter(again(list(grads), needed, *args))
        return tuple(next(found) if n else None for n in needed)

    operator.register_autograd(derivative, setup_context=setup)
    return operator


@functools.cache
def _but_autograd() -> torch._C.DispatchKeySet:
    """All keys but those of autograd; autocast's are none of them, and stay excluded where they were."""
    found = torch._C._after_autograd_keyset
    for name in dir(torch._C.DispatchKey):
        if name.startswith("Autocast") and name != "AutocastFunctionality":
            found = found | torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, name))
    return found


def _own(result: Any) -> Any:
    """In memory of its own, contiguous."""
    if isinstance(result, Tensor):
        return result.detach().clone(memory_format=torch.contiguous_format)
    return tuple(_own(x) for x in result)
