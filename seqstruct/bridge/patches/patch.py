"""One way to mend fairseq, and one list of all that is mended: each patch says which defect it is for."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

MARK = "seqstruct_patches"


class Patch(NamedTuple):
    """function(original, *args, **named) stands for owner.attribute, of a class or module, or for a property's getter.

    Its docstring says what is wrong with the original.
    """

    owner: Any
    attribute: str
    function: Callable

    @property
    def name(self) -> str:
        """What is mended, and by what."""
        owner = getattr(self.owner, "__qualname__", self.owner.__name__)
        return f"{owner}.{self.attribute} by {self.function.__module__}.{self.function.__qualname__}"

    @property
    def original(self) -> Callable:
        """What stands there: fairseq's own, or that of earlier patches."""
        found = inspect.getattr_static(self.owner, self.attribute)
        return found.fget if isinstance(found, property) else getattr(self.owner, self.attribute)

    @property
    def applied(self) -> bool:
        """Whether it stands there, from whatever import of its module."""
        return self.name in getattr(self.original, MARK, ())


PATCHES: dict[str, Patch] = {}


def patch(owner: Any, attribute: str) -> Callable[[Callable], Callable]:
    """Enter a function in the list; `apply_patches` puts it in its place."""

    def enter(function: Callable) -> Callable:
        entered = Patch(owner, attribute, function)
        PATCHES[entered.name] = entered
        return function

    return enter


def apply_patches() -> None:
    """Put all patches in their places, in the order of the list; those that stand there already are left alone."""
    for entered in PATCHES.values():
        if not entered.applied:
            _apply(entered)


def _apply(entered: Patch) -> None:
    owner, attribute, function = entered
    original = entered.original

    @functools.wraps(original)
    def mended(*args: Any, **named: Any) -> Any:
        return function(original, *args, **named)

    setattr(mended, MARK, (*getattr(original, MARK, ()), entered.name))
    found = inspect.getattr_static(owner, attribute)
    setattr(owner, attribute, property(mended, found.fset) if isinstance(found, property) else mended)
