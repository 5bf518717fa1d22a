"""Structured and efficient sequence models as a fairseq plugin; this module imports nothing before it is asked.

`seqstruct.load(CHECKPOINT)` is `seqstruct.loading.load.load`.
"""

__version__ = "0.4.0"


def __getattr__(name: str) -> object:
    """`load`, with fairseq, when it is first used."""
    if name != "load":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return import_module("seqstruct.loading.load").load
