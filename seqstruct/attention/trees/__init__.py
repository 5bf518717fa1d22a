"""Attention by dependency trees: marginals of heads, soft children, parents.

Importing this package registers them.
"""

from seqstruct.attention.registry import import_all

import_all(__name__, __path__)
