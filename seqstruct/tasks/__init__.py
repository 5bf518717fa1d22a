"""fairseq tasks; importing this package registers all of them, and what `--user-dir` does not scan."""

from importlib import import_module
from pkgutil import iter_modules

import seqstruct.criterions  # registers them
import seqstruct.schedules  # noqa: F401
from seqstruct.bridge.patches.compat import prepare_fairseq

prepare_fairseq()

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
