"""Stacks as attention: superposition and nondeterministic.

Importing this package registers them.
"""

from seqstruct.attention.registry import import_all

import_all(__name__, __path__)
