"""Recurrences derived from weighted finite-state automata (Peng 2022, chapter 6 and appendix E.4), one score a feature.

    B           c_t  = f_t c_{t-1} + (1 - f_t) z_t                                       (eq. E.2)
    B_max_plus  c_t  = max(log f_t + c_{t-1}, z_t)                                       (eq. E.3)
    C           c1_t as B with f1, z1;  c2_t = f2_t c2_{t-1} + c1_{t-1} (1 - f2_t) z2_t;  c_t = c2_t        (eq. E.4)
    F           c1_t as B with f1, z1;  c2_t = f2_t c2_{t-1} + (c1_{t-1} + r) (1 - f2_t) z2_t;
                c_t = p1 c1_t + p2 c2_t                                                  (eq. E.5)

f, p and r are sigmoids; the hidden state is h_t = tanh(o_t c_t) with the optional output gate o_t, a sigmoid, in
max-plus tanh(log o_t + c_t), and tanh(c_t) without it.  F's epsilon arc is open from the first step on, where section
6.5.1 starts its target from 0.  The released code starts max-plus from -100 and multiplies by o_t; here as published.

What depends on the word comes in as one tensor `projected` B T K d, affine in the word vectors: logits
of f1, z1, for C and F logits of f2, z2, and last, where there is an output gate, the logits of o; K is thus 2 or 3 (B,
B_max_plus), 4 or 5 (C, F).  One product makes all of it.  The state is B J d: c, or c1 and c2.

The automata themselves are in `automata.families`.

F alone, and it always, takes final_logits 2 d (of p1, p2) and epsilon_logits d (of r).
Raises ValueError on an automaton that is none of these, parameters of F elsewhere or missing, or shapes that do not
fit.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from seqstruct.ops.automata.passes import MaxPlusPasses, RealPasses
from seqstruct.ops.masking import check_padding_mask

PATTERNS = {"B": 1, "B_max_plus": 1, "C": 2, "F": 2}  # gates and inputs of each automaton, and scores in its state
MAX_PLUS = "B_max_plus"


class Rational(NamedTuple):
    """hidden: B T d, h; scores: B T d, c, what the automaton gives each prefix; state: B J d, after the last step.

    Of a single step, without the axis T.  The scores share memory with what the backward pass needs: not to be changed
    in place.
    """

    hidden: Tensor
    scores: Tensor
    state: Tensor


def rational_initial(automaton: str, batch: int, size: int, like: Tensor) -> Tensor:
    """The state before any word, B J d, of the type and device of `like`: 0, in max-plus -inf."""
    return like.new_full((batch, _patterns(automaton), size), -torch.inf if automaton == MAX_PLUS else 0.0)


def rational_recurrence(
    automaton: str,
    projected: Tensor,
    state: Tensor | None = None,
    padding_mask: Tensor | None = None,
    *,
    final_logits: Tensor | None = None,
    epsilon_logits: Tensor | None = None,
) -> Rational:
    """All steps of a recurrence; first derivatives only.

    padding_mask: B T bool, True = padding, anywhere, or None.  A padded step leaves the state as it is, whatever
    `projected` holds there; its hidden state means nothing.
    Calculations are in float32 at least, results in the type of `projected`.  Of equal scores in max-plus the gradient
    goes to z.  Cost: O(B T d) time and memory.
    """
    _check(automaton, projected, state, final_logits, epsilon_logits)
    B, T, _, d = projected.shape
    check_padding_mask(padding_mask, B, T)
    if state is None:
        state = rational_initial(automaton, B, d, projected)
    if padding_mask is not None:
        projected = torch.where(padding_mask[..., None, None], _identity(automaton, projected), projected)
    dtype = torch.promote_types(projected.dtype, torch.float32)
    inputs = projected.to(dtype), state.to(dtype)
    if automaton == MAX_PLUS:
        found = MaxPlusPasses.apply(*inputs)
    else:
        weights = (None if x is None else x.to(dtype).sigmoid() for x in (epsilon_logits, final_logits))
        found = RealPasses.apply(*inputs, *weights)
    return Rational(*(x.to(projected.dtype) for x in found))


def _identity(automaton: str, projected: Tensor) -> Tensor:
    """K 1: a projection under which a step does nothing."""
    columns = projected.new_zeros(projected.size(-2), 1)
    patterns = PATTERNS[automaton]
    columns[0 : 2 * patterns : 2] = torch.inf
    columns[1 : 2 * patterns : 2] = -torch.inf if automaton == MAX_PLUS else 0.0
    return columns


def _patterns(automaton: str) -> int:
    if automaton not in PATTERNS:
        raise ValueError(f"expected an automaton of {', '.join(PATTERNS)}, got {automaton!r}")
    return PATTERNS[automaton]


def _check(
    automaton: str, projected: Tensor, state: Tensor | None, final_logits: Tensor | None, epsilon_logits: Tensor | None
) -> None:
    J = _patterns(automaton)
    if projected.dim() != 4 or projected.size(-2) not in (2 * J, 2 * J + 1):
        raise ValueError(
            f"{automaton}: expected projected B T K d with K {2 * J} or {2 * J + 1}, got {tuple(projected.shape)}"
        )
    B, d = projected.size(0), projected.size(-1)
    for name, tensor, shape in (
        ("state", state, (B, J, d)),
        ("final_logits", final_logits, (2, d)),
        ("epsilon_logits", epsilon_logits, (d,)),
    ):
        if tensor is not None and tensor.shape != shape:
            raise ValueError(f"{automaton}: expected {name} {shape}, got {tuple(tensor.shape)}")
    if any((given is not None) != (automaton == "F") for given in (final_logits, epsilon_logits)):
        raise ValueError(f"{automaton}: final_logits and epsilon_logits belong to F, both of them, and to F alone")
