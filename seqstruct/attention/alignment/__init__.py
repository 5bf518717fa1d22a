"""Alignment of a decoder to its source: additive, Luong's scores, local and location-based.

Importing this package registers them.
"""

from seqstruct.attention.registry import import_all

import_all(__name__, __path__)
