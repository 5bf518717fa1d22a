"""Weighted finite-state automata, and the recurrences that come of them (Peng 2022, chapters 3 and 6).

Axis letters: B batch, T positions, Q states, V symbols, d features; `*` leading axes of a family of automata.

    wfsa, forward, best_path        an automaton over a semiring; sums over all its paths, * T+1 Q; the best one
    pattern_automaton, ...          those behind rational recurrences, and which networks are such (`families`)
    rational_recurrence             hidden states B T d of all steps from `projected` B T K d
    rational_step                   one of them, as `naive` has it
    forward_spans, backward_spans   what a recurrence makes of every span of a sequence
"""

from seqstruct.ops.automata.families import (
    affine_automaton,
    interpolated_automaton,
    pattern_automaton,
    window_automaton,
)
from seqstruct.ops.automata.naive import rational_step
from seqstruct.ops.automata.rational import MAX_PLUS, PATTERNS, Rational, rational_initial, rational_recurrence
from seqstruct.ops.automata.span_representation import backward_spans, forward_spans, span_mask
from seqstruct.ops.automata.wfsa import Arc, Path, Prefixes, Wfsa, best_path, forward, wfsa
