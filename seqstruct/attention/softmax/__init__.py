"""Softmax over all keys, and what normalises scores in another way: sigmoid, gated, renormalised, segments, hashing.

Importing this package registers them.
"""

from seqstruct.attention.registry import import_all

import_all(__name__, __path__)
