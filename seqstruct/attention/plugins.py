"""Mechanisms from outside: of installed packages, and of modules and files of one's own.

An installed package names its module in the entry-point group `seqstruct.attention`; whatever the point is called, what
counts is what the module registers.  SEQSTRUCT_PLUGINS names modules that Python finds, and files by paths that end in
.py, separated by colons.  Both are imported when the register is first asked, by whichever command.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

GROUP = "seqstruct.attention"
VARIABLE = "SEQSTRUCT_PLUGINS"


def import_plugins() -> None:
    """Import all of them, for what they register.  Raises ValueError, naming the one that does not import."""
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        package = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
        _named(f"the package {package} (entry point {point.name}, group {GROUP})", point.load)
    for name in filter(None, os.environ.get(VARIABLE, "").split(":")):
        load = _import_file if name.endswith(".py") else import_module
        _named(f"{name} ({VARIABLE})", load, name)


def _named(source: str, load: Callable[..., Any], *arguments: str) -> None:
    try:
        load(*arguments)
    except Exception as error:
        raise ValueError(f"{source} does not import: {type(error).__name__}: {error}") from error


def _import_file(name: str) -> None:
    path = Path(name).resolve()
    module_name = "seqstruct_plugin" + re.sub(r"\W", "_", str(path.with_suffix("")))  # hides no other module
    while module_name in sys.modules:
        if sys.modules[module_name].__file__ == str(path):
            return
        module_name += "_"  # that is another file, such as a-b.py beside a_b.py
    spec = spec_from_file_location(module_name, path)
    module = sys.modules[module_name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
