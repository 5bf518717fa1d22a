"""What a decoder of today asks of the slots that attention stands in, whatever the mechanism: options of `Shape`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Slot:
    """Options of one site; by default those of the Transformer of 2017.  Raises ValueError on one out of range.

    kv_heads: heads that keys and values are projected to (Ainslie et al. 2023), each for num_heads / kv_heads heads of
    queries in a row; None for num_heads.  Mechanisms that cannot hold the fewer ones repeat them.
    biases: whether the projections have biases, where the mechanism's own form has them.
    qk_norm: whether queries and keys are divided by their root mean square in each head, times a learned vector of the
    head's size that all heads share (Henry et al. 2020; the form of Dehghani et al. 2023 without a mean).
    rotary_base: base of rotary positions (Su et al. 2021, sec. 3.2.2) of queries and keys, 10000 there; None: none.
    short_conv: tokens that the convolution before the projections sees, its own among them; 0 for none.
    The first three are for mechanisms with heads, as num_heads is.
    """

    kv_heads: int | None = None
    biases: bool = True
    qk_norm: bool = False
    rotary_base: float | None = None
    short_conv: int = 0

    def __post_init__(self) -> None:
        if self.kv_heads is not None and self.kv_heads < 1:
            raise ValueError(f"heads of keys and values are 1 or more, not {self.kv_heads}")
        if self.rotary_base is not None and not 1 < self.rotary_base < math.inf:
            raise ValueError(f"the base of rotary positions is a finite number above 1, not {self.rotary_base}")
        if self.short_conv < 0:
            raise ValueError(f"a short convolution sees 1 token or more, 0 for none, not {self.short_conv}")

    def across(self) -> Slot:
        """What of it holds at cross-attention: neither rotary positions nor a convolution.

        A distance between a token of the target and one of the source has no meaning, and the source's tokens have met
        their neighbours in the encoder.
        """
        return replace(self, rotary_base=None, short_conv=0)


USUAL = Slot()
