"""fairseq criterions: importing this package registers all of them.

fairseq reads types at run time: no postponed annotations in files that register something, nor in `seqstruct.tasks`.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
