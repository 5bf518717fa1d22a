"""fairseq models: importing this package registers all of them.

fairseq reads the types of options at run time: no postponed annotations in these modules.
"""

from importlib import import_module
from pkgutil import walk_packages

from seqstruct.bridge.patches.compat import prepare_fairseq

prepare_fairseq()

for _module in walk_packages(__path__, f"{__name__}."):
    import_module(_module.name)
