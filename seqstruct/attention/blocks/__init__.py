"""Softmax over blocks of the keys, chosen by place or by sorting; and scores that are no products.

Importing this package registers them.
"""

from seqstruct.attention.registry import import_all

import_all(__name__, __path__)
