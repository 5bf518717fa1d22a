"""Options of a mechanism, declared with their limits in its `Config`.

    slots: int = option(32, least=1)  # n, size of the memory
    kernel: str = option("gaussian", among=("gaussian", "arccos"))  # the kernel that the features approximate
    sigma: float = option(1.0, above=0)  # initial value of the learned sigma

`check_option` holds a value against the declaration: when a plan is parsed, and when a module is built.
"""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Limits:
    """What an option may be: from `least` to `most`, above `above`, `even`, one of `among`; None where it is free."""

    least: float | None = None
    above: float | None = None
    most: float | None = None
    among: tuple[Any, ...] | None = None
    even: bool = False

    def hold(self, value: Any) -> bool:
        """Whether a value of the option's type lies within; None always does, NaN and infinite numbers never do."""
        if self.among is not None:
            return value in self.among
        if value is None or isinstance(value, (bool, str)):
            return True
        return (
            abs(value) <= sys.float_info.max
            and (self.least is None or value >= self.least)
            and (self.above is None or value > self.above)
            and (self.most is None or value <= self.most)
            and not (self.even and value % 2)
        )

    def __str__(self) -> str:
        """The limits in words, "" if there are none."""
        if self.among is not None:
            return "one of " + ", ".join(map(str, self.among))
        low = f"above {self.above}" if self.above is not None else f"{self.least} or more" + ", even" * self.even
        if self.most is None:
            return low if (self.above, self.least) != (None, None) else ""
        if self.above is not None:
            return f"{low}, {self.most} at most"
        return f"{self.most} at most" if self.least is None else f"from {self.least} to {self.most}"


class Options:
    """Base of the `Config` of mechanisms: what derives from it is a frozen dataclass."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


def option(default: Any, **limits: Any) -> Any:
    """A field of `Options` with a default and `Limits`, whose fields the keywords are."""
    return dataclasses.field(default=default, metadata={"limits": Limits(**limits)})


def default_of(field: dataclasses.Field) -> Any:
    """The default of a field, or dataclasses.MISSING."""
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def limits_of(field: dataclasses.Field) -> Limits | None:
    """The limits that a field declares, or None."""
    return field.metadata.get("limits")


def check_option(name: str, field: dataclasses.Field, value: Any) -> None:
    """Raise ValueError, naming mechanism and option, if the value has another type than the default or breaks a limit.

    A field without a default takes any type; a whole number serves where the default is a float.
    """
    default, limits = default_of(field), limits_of(field)
    if default is not dataclasses.MISSING and default is not None and not _same_kind(value, default):
        kind = type(default).__name__
        raise ValueError(f"{name}: option {field.name} takes {kind} (default {default!r}), not {value!r}")
    if limits is not None and not limits.hold(value):
        raise ValueError(f"{name}: {field.name} is {str(limits) or 'a finite number'}, not {value!r}")


def check_options(name: str, config: Any) -> None:
    """`check_option` for every field of a Config."""
    for field in dataclasses.fields(config):
        check_option(name, field, getattr(config, field.name))


def _same_kind(value: Any, default: Any) -> bool:
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    if isinstance(default, float):
        return isinstance(value, (int, float))
    return isinstance(value, type(default))
