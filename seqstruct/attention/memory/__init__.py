"""Memories of a bounded number of slots, read by softmax.

Importing this package registers them.
"""

from seqstruct.attention.registry import import_all

import_all(__name__, __path__)
