"""Attention by feature maps: a memory of fixed size, read by a product.

Importing this package registers them.
"""

from seqstruct.attention.registry import import_all

import_all(__name__, __path__)
