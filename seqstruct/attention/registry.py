"""The register of attention mechanisms: names, their classes, sites and options."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Callable, Iterable, TypeVar

from seqstruct.attention.base import Attention, Site
from seqstruct.attention.option import check_option, default_of
from seqstruct.attention.plugins import import_plugins

T = TypeVar("T", bound=type[Attention])


class Register(Mapping[str, type[Attention]]):
    """Classes by name: those of this package and, imported when it is first asked, those of `plugins`."""

    def __init__(self) -> None:
        self._classes: dict[str, type[Attention]] = {}
        self._complete = False

    def add(self, name: str, cls: type[Attention]) -> None:
        """Raises ValueError if the name is taken."""
        if name in self._classes:
            other = self._classes[name]
            raise ValueError(f"attention {name!r} is registered already, by {other.__module__}.{other.__qualname__}")
        self._classes[name] = cls

    def _all(self) -> dict[str, type[Attention]]:
        if not self._complete:
            self._complete = True  # what is imported now may ask, too
            try:
                import_plugins()
            except BaseException:
                self._complete = False
                raise
        return self._classes

    def __getitem__(self, name: str) -> type[Attention]:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


ATTENTIONS = Register()


def register_attention(name: str, sites: Iterable[Site]) -> Callable[[T], T]:
    """Class decorator that makes a mechanism available under a name, at the given sites.

    Names are kept in checkpoints and are public.  Raises ValueError if the name is taken, or the class has no
    frozen dataclass `Config`.
    """

    def register(cls: T) -> T:
        if not dataclasses.is_dataclass(cls.Config) or not cls.Config.__dataclass_params__.frozen:
            raise ValueError(f"{cls.__qualname__}.Config: expected a frozen dataclass")
        cls.name = name
        cls.sites = frozenset(Site(site) for site in sites)
        ATTENTIONS.add(name, cls)
        return cls

    return register


def get_attention(name: str) -> type[Attention]:
    """The class registered under a name; ValueError, with the names that exist, if there is none."""
    if name not in ATTENTIONS:
        raise ValueError(f"no attention is called {name!r}; there are: {', '.join(sorted(ATTENTIONS))}")
    return ATTENTIONS[name]


def make_config(name: str, options: dict[str, Any]) -> Any:
    """The mechanism's Config from literal options.

    Raises ValueError on an unknown or missing option, a value of another type, or one beyond the declared limits.
    """
    config_class = get_attention(name).Config
    fields = {field.name: field for field in dataclasses.fields(config_class)}
    for option, value in options.items():
        if option not in fields:
            allowed = ", ".join(fields) or "none"
            raise ValueError(f"{name} has no option {option!r}; options: {allowed}")
        check_option(name, fields[option], value)
    missing = [n for n, f in fields.items() if default_of(f) is dataclasses.MISSING and n not in options]
    if missing:
        raise ValueError(f"{name} needs the option {missing[0]!r}")
    return config_class(**options)
