"""Kernels in C++ for CPUs, which take the place of the same computation in PyTorch: float32 and float64.

They are operators of a library `seqstruct`, which is built when the package is installed, or in place by `build`, and
loaded at first use.  It holds every kernel for several kinds of processors and runs that for the one at hand; threads
are PyTorch's.  Every function of the package that has a kernel gives the same numbers, up to rounding, without it:
where SEQSTRUCT_COMPILED=0, where the library could not be built, on other devices and for other data types.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

logger = logging.getLogger(__name__)

VARIABLE = "SEQSTRUCT_COMPILED"
COMMAND = f"python -m {__name__}.build"
TYPES = (torch.float32, torch.float64)
_loaded: bool | None = None  # None before first use
_lock = threading.RLock()  # of the first use
_derivatives: list[torch.library.Library] = []  # which last as long as these do


def usable(*tensors: Tensor | None) -> bool:
    """Whether kernels take these tensors: on the CPU, all of them float32 or all float64, nothing `transformed`.

    Raises ValueError if the variable is neither 0 nor 1, or if it is 1 where the library was not built.
    """
    present = [x for x in tensors if x is not None]
    fits = all(x.device.type == "cpu" and x.dtype == present[0].dtype for x in present)
    return fits and present[0].dtype in TYPES and not transformed() and switched_on()


def transformed() -> bool:
    """Whether forward-mode derivatives or transforms of `torch.func` are on, which kernels do not take.

    What is plain PyTorch without a kernel, as `retention` and `mlstm`, goes through them.  What has a derivative of its
    own there too, as chains, projective trees, linear attention, the delta rule and the stacks, raises RuntimeError
    under `torch.func.grad`.
    """
    return forward_ad._current_level >= 0 or torch._C._are_functorch_transforms_active()


def switched_on() -> bool:
    """Whether there are kernels that are not switched off.  Raises ValueError as `usable` does."""
    asked = os.environ.get(VARIABLE)
    if asked == "0":
        return False
    if asked not in (None, "", "1"):
        raise ValueError(f"expected {VARIABLE} to be 0 or 1, got {asked!r}")
    if _loaded is None and not torch.compiler.is_compiling():  # a trace cannot load it
        with _lock:
            _load()
    if asked == "1" and _loaded is False:
        raise ValueError(f"{VARIABLE}=1, but seqstruct's operators were not built for these sources: {COMMAND}")
    return bool(_loaded)


class Operator:
    """An operator of the library; `call` is there once `usable` has been true.

    fake: shapes and types of its results for arguments without numbers; None where it returns nothing.
    setup, backward: its derivative, as `torch.library.register_autograd` takes it.
    """

    call: Callable[..., Any]
    declared: list[Operator] = []

    def __init__(
        self,
        name: str,
        fake: Callable[..., Any] | None,
        setup: Callable[..., None] | None = None,
        backward: Callable[..., Any] | None = None,
    ):
        self.name, self.fake, self.setup, self.backward = f"seqstruct::{name}", fake, setup, backward
        Operator.declared.append(self)
        if _loaded:
            self.register()

    def register(self) -> None:
        """Make it known to PyTorch beside its kernel."""
        torch.library.register_fake(self.name, self.fake or (lambda *arguments: None))
        if self.backward is not None:
            _derivatives.append(torch.library.Library("seqstruct", "IMPL", "Autograd"))
            _derivatives[-1].impl(self.name, self._differentiable())
        self.call = getattr(torch.ops.seqstruct, self.name.partition("::")[2]).default

    def _differentiable(self) -> Callable[..., Any]:
        """As `torch.library.register_autograd` makes it, whose search for defaults takes 25 microseconds a call."""

        def below(*arguments: Any) -> Any:
            with torch._C._AutoDispatchBelowAutograd():
                return self.call(*arguments)

        def forward(ctx: Any, *arguments: Any) -> Any:
            results = below(*arguments)
            self.setup(ctx, arguments, results)
            return results

        methods = {"forward": staticmethod(forward), "backward": staticmethod(self.backward)}
        function = type(self.name.replace("::", "_"), (torch.autograd.Function,), methods)

        def kernel(*arguments: Any) -> Any:
            recorded = torch.is_grad_enabled() and any(isinstance(x, Tensor) and x.requires_grad for x in arguments)
            return function.apply(*arguments) if recorded else below(*arguments)

        return kernel


def _load() -> None:
    from seqstruct.ops.compiled.build import library_path, sources  # here, since the module is run as a command too

    global _loaded
    if _loaded is not None:  # by another thread in the meantime
        return
    path, there = library_path(), bool(sources())  # the code of an exported model has none: nothing could be built
    try:
        if there:
            torch.ops.load_library(path)
    except OSError as error:
        reason = "were not built for these sources" if not path.exists() else f"do not load ({error})"
        logger.warning("seqstruct's operators %s; PyTorch's take their place.  To build them: %s", reason, COMMAND)
        there = False
    for operator in Operator.declared if there else ():
        operator.register()
    _loaded = there
