"""Layers for models of one's own: torch alone, the batch first, a mechanism by one string."""

from seqstruct.attention import Reading, Site
from seqstruct.attention.slot import Slot
from seqstruct.attention.states import select_rows
from seqstruct.layers.stack_lstm import StackLSTM
from seqstruct.nn.block import TransformerBlock
from seqstruct.nn.mixer import Mixer
from seqstruct.nn.multi_head import MultiheadAttention
from seqstruct.nn.rational import RRNN

__all__ = [
    "MultiheadAttention",
    "Mixer",
    "RRNN",
    "Reading",
    "Site",
    "Slot",
    "StackLSTM",
    "TransformerBlock",
    "select_rows",
]
