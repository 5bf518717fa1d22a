"""The numbers that a search takes, of fairseq's commands and of loaded models; others are taken without a word."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

WHOLE = {  # the least value of each
    "beam": 1, "min_len": 0, "max_len_b": 0, "no_repeat_ngram_size": 0, "sampling_topk": -1, "diverse_beam_groups": -1,
}
REAL: dict[str, tuple[str, Callable[[float], bool]]] = {
    "max_len_a": ("a finite number, 0 or more", lambda x: 0 <= x < math.inf),
    "lenpen": ("a finite number", math.isfinite),
    "unkpen": ("a number", lambda x: x > -math.inf),  # infinity leaves no unknown word
    "sampling_topp": ("a number from 0 to 1, or -1 for none", lambda x: 0 <= x <= 1 or x == -1),
    "temperature": ("a finite number above 0", lambda x: 0 < x < math.inf),
    "diverse_beam_strength": ("a finite number", math.isfinite),
    "diversity_rate": ("a finite number, 0 or more, or -1 for none", lambda x: 0 <= x < math.inf or x == -1),
}


def check_numbers(options: Mapping[str, Any], symbols: int, spelled: Callable[[str], str] = str) -> None:
    """Raise ValueError on a number that its option does not take; other options are left alone.

    symbols: how many there are to choose from.  spelled: an option's name as the error has it.
    """
    for name, value in options.items():
        if name in WHOLE:
            if isinstance(value, bool) or not isinstance(value, Integral):
                raise ValueError(f"{spelled(name)}: expected a whole number, got {value!r}")
            if value < WHOLE[name]:
                raise ValueError(f"{spelled(name)}: expected {WHOLE[name]} or more, got {value}")
        elif name in REAL:
            expected, fits = REAL[name]
            if isinstance(value, bool) or not isinstance(value, Real) or not fits(float(value)):
                raise ValueError(f"{spelled(name)}: expected {expected}, got {value!r}")
    if options.get("sampling_topk", -1) > symbols:
        raise ValueError(f"{spelled('sampling_topk')}: expected at most the {symbols} symbols, got "
                         f"{options['sampling_topk']}")
