"""Attention mechanisms as modules: torch and `seqstruct.ops` only.  Importing this package registers all of them."""

from seqstruct.attention.base import Attention, Reading, Shape, Site
from seqstruct.attention.option import option
from seqstruct.attention.plan import AttentionPlan, Choice, parse_choices
from seqstruct.attention.registry import ATTENTIONS, get_attention, import_all, make_config, register_attention
from seqstruct.attention.slot import Slot

import_all(__name__, __path__)

__all__ = [
    "ATTENTIONS",
    "Attention",
    "AttentionPlan",
    "Choice",
    "Reading",
    "Shape",
    "Site",
    "Slot",
    "get_attention",
    "make_config",
    "option",
    "parse_choices",
    "register_attention",
]
