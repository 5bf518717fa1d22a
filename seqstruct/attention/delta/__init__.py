"""Attention by memories that decay and are corrected: the delta rule, its gated relatives, and what they come from.

Importing this package registers them.
"""

from seqstruct.attention.registry import import_all

import_all(__name__, __path__)
