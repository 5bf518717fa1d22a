"""The differentiable vector pushdown automaton of DuSell and Chiang (2024, section 3.2.2): all its runs, weighted.

A run starts in state 0 with one stack element, symbol 0 and the bottom vector, and takes one transition a step.  In
state q with top (x, u), step t, with the vector v_t, offers: push to (r, y), which puts (y, v_t) on top; replace by
(r, y), which makes the top (y, u); pop to r, which uncovers the element below.  The bottom can be replaced, never
popped.  The weight of a run is the product of the weights exp(logit) of its transitions, and

    reading_t[r, y] = sum over runs ending in (r, y) of weight * top vector / sum over all runs of weight

after the transition of step t.  Adding a constant to all logits of a step changes nothing.  Readings with no run left
are zero.  `naive` has the recurrence behind it.

Log-weights are B T A (`layout` says which stands where), pushed vectors B T m, readings B T (Q S m) with Q states and S
symbols.

    pushdown_stack                          the readings of all steps at once
    pushdown_initial, _step, _steps, _reading    the same step by step, from a `PushdownState`
    limited_initial, _step, _steps, _reading     the same with a memory of so many steps, in a state that stays small
    pushdown_tape                           a sequence within a recurrent network, forward and back
    expected_actions, most_probable_run     what the automaton does
    naive_tops                              what any semiring says of all runs
"""

from __future__ import annotations

from torch import Tensor

from seqstruct.ops.compiled import usable
from seqstruct.ops.pushdown.actions import expected_actions
from seqstruct.ops.pushdown.best_run import Run, Transition, most_probable_run
from seqstruct.ops.pushdown.columns import step_order
from seqstruct.ops.pushdown.compiled import CompiledPushdownTape
from seqstruct.ops.pushdown.layout import LARGEST_READING, pad_pushdown_logits, pushed_vectors, transition_count
from seqstruct.ops.pushdown.limited import LimitedState, limited_initial, limited_reading, limited_step, limited_steps
from seqstruct.ops.pushdown.naive import naive_tops
from seqstruct.ops.pushdown.stack import pushdown_stack
from seqstruct.ops.pushdown.step import PushdownState, pushdown_initial, pushdown_reading, pushdown_step, pushdown_steps
from seqstruct.ops.pushdown.tape import PushdownTape, reading_order


def pushdown_tape(bottom: Tensor, steps: int, *, states: int, symbols: int, sigmoid: bool) -> PushdownTape:
    """The tape of a sequence, in compiled form where that is asked for.  Arguments: see `PushdownTape`."""
    kind = CompiledPushdownTape if usable(bottom) else PushdownTape
    return kind(bottom, steps, states=states, symbols=symbols, sigmoid=sigmoid)
