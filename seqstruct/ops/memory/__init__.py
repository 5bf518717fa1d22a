"""Memories that attention reads: of a fixed size, of the last tokens, in blocks and in buckets.

    naive_linear_attention, naive_bounded_memory    the definitions, step by step
    causal_linear_attention    phi(q_t) S_t / (phi(q_t) . z_t) at all steps, S_t a `Memory` of features times values
                               (Peng 2022, eq. 4.5 to 4.8); `schedule` makes decays of gates and scales, and the module
                               `linear_attention` has `write`, `read` and `step` of one memory, and `read_pairs` without
    FeatureMap                 EluMap, GaussianMap, ArccosMap, LearnedMap, PositiveMap: features phi of vectors
    causal_bounded_memory      softmax(K_t q_t) V_t at all steps over the slots of a `BoundedMemory` (eq. 5.3 to 5.5);
                               the module `bounded_memory` has its `write`, `read` and `step`
    window_attention           softmax over the last tokens; ring_write, ring_positions, ring_unrolled keep these
    block_sparse_attention     softmax between blocks of tokens; layout, to_blocks, from_blocks, sinkhorn
    bucket_attention           softmax inside the buckets of a hash; hash_codes, limits, meetings, met_weights
    k_means                    clusters of vectors

Shapes are B H T D for queries and keys and B H T E for values throughout, B batch, H heads, T steps.
"""

from seqstruct.ops.memory.blocks import (
    Layout,
    block_sparse_attention,
    from_blocks,
    layout,
    sinkhorn,
    to_blocks,
)
from seqstruct.ops.memory.bounded_memory import (
    BoundedMemory,
    anything_written,
    causal_bounded_memory,
    empty_bounded_memory,
)
from seqstruct.ops.memory.clustering import k_means
from seqstruct.ops.memory.feature_maps import (
    ArccosMap,
    EluMap,
    FeatureMap,
    GaussianMap,
    LearnedMap,
    PositiveMap,
    gaussian_features,
    orthogonal_projection,
    unit_norm,
)
from seqstruct.ops.memory.linear_attention import Memory, Schedule, causal_linear_attention, empty_memory, schedule
from seqstruct.ops.memory.lsh import bucket_attention, hash_codes, limits, meetings, met_weights
from seqstruct.ops.memory.naive import naive_bounded_memory, naive_linear_attention
from seqstruct.ops.memory.window import ring_positions, ring_unrolled, ring_write, window_attention
