"""Memories of fixed size that decay and are corrected by what is written: the delta rule's family.

    gated_delta_rule    S <- diag(e^g) S, S <- S + beta k (v - S^T k)^T; also without gate, without beta, many steps
    gated_slots         slots that decay, read by a softmax
    exponential_gates   exponential input gates, with a normaliser
    log_linear          a decaying memory in O(log T) parts, each with a scale of its own; log_linear_after a state
    write, write_...    the memory alone, and single tokens; read_... what a query gets of it

`naive` has the recurrences.  Letters: B batch, H heads, T tokens, K and V sizes of a key and a value, N slots, R rows
of a chunk, n chunks, L levels.  Everything is differentiable, by kernels and for decays of channels once.
"""

from seqstruct.ops.delta.exponential import (
    ExponentialMemory,
    empty_exponential,
    exponential_gates,
    read_exponential,
    write_exponential,
)
from seqstruct.ops.delta.fenwick import Buckets, log_linear, log_linear_after, read_buckets, write_buckets
from seqstruct.ops.delta.rule import gated_delta_rule, write
from seqstruct.ops.delta.slots import gated_slots
