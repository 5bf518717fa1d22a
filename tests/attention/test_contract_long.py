"""The laws of every registered mechanism at a length of three times whatever it cuts a sequence by, and more."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import asdict

import seqstruct.ops
from seqstruct.attention import make_config
from seqstruct.testing.cases import LONG, cases
from seqstruct.testing.test_laws_long import *  # noqa: F403

CUTTING = {"chunk", "slots", "size", "stride", "period", "window", "half_width", "dilation"}


def test_it_is_three_times_what_cuts_it() -> None:
    """`scan` and kernels that are compiled on demand have lengths of their own in their tests."""
    for case in cases(long=True):
        options = asdict(make_config(case.name, case.options))
        for option in CUTTING & options.keys():
            assert 3 * options[option] <= LONG, (case, option)
    found = 0
    for module in pkgutil.walk_packages(seqstruct.ops.__path__, "seqstruct.ops."):
        if ".triton" in module.name:  # a package that need not be there
            continue
        names = vars(importlib.import_module(module.name))
        for name in {"CHUNK", "BLOCK", "LEAST_BLOCK"} & names.keys() if module.name != "seqstruct.ops.scan" else ():
            assert 3 * names[name] <= LONG, (module.name, name)
            found += 1
    assert found >= 8
