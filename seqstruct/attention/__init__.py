"""Attention mechanisms as modules: torch and `seqstruct.ops` only.  Importing this package registers all of them."""

from importlib import import_module
from pkgutil import iter_modules

from seqstruct.attention.base import Attention, Reading, Shape, Site
from seqstruct.attention.option import option
from seqstruct.attention.plan import AttentionPlan, Choice, parse_choices
from seqstruct.attention.registry import ATTENTIONS, get_attention, make_config, register_attention

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = [
    "ATTENTIONS",
    "Attention",
    "AttentionPlan",
    "Choice",
    "Reading",
    "Shape",
    "Site",
    "get_attention",
    "make_config",
    "option",
    "parse_choices",
    "register_attention",
]
