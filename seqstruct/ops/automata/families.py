"""The automata behind rational recurrences (Peng 2022, sections 6.2 to 6.5, Table 6.1, appendices E.1 to E.3).

Each function gives a family of automata, one for each feature of the network; `wfsa.forward` gives the states of the
recurrence it names, as the scores of the prefixes.  Axis letters: V symbols, d features, `*` any leading axes.  Weights
are as the semiring wants them; networks are in the real semiring.

    automaton                       recurrence                                 inputs             decays
    pattern_automaton, 1 input (B)  SRU, T-RNN; RRNN(B), eq. 6.5c              (1 - f) W x        f
                                    SCRN                                       (1 - alpha) W x    alpha
                                    RRNN(B) in max-plus, eq. 6.21c             z                  log f
    pattern_automaton, n (C: 2)     RCNN of n-grams, RRNN(C), eq. 6.14         (1 - l) W_j x      l, alpha too
    interpolated_automaton (F)      RRNN(F), eq. 6.19                          (1 - f_j) z_j      f_j
    window_automaton, appendix E.1  QRNN of window 2                           (1 - f) tanh(z)    f
                                    T-LSTM                                     i W x              f
                                    T-GRU                                      tanh(o) W x        f
    affine_automaton, eq. 6.16      ISAN; the linear Elman network, with one matrix for all symbols (corollary 16)

alpha is a number; f, i and l are sigmoids of the word, and those of a window, as z and o there, of two words.  With a
gate that reads the state a recurrence is not rational (section 6.4.3).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from seqstruct.ops.automata.wfsa import Arc, Weight, Wfsa, wfsa
from seqstruct.ops.semiring import LogSemiring, RealSemiring


def pattern_automaton(inputs: Sequence[Tensor], decays: Sequence[Weight], semiring: LogSemiring) -> Wfsa:
    """Soft patterns of n symbols, not next to each other: states 0 .. n, final n (B: n = 1, C: n = 2).

    inputs: n of * V, mu_j, of the arc j-1 -> j; decays: n of * V or numbers, phi_j, of the loop at j.
    """
    one = _one(semiring, inputs[0])
    return wfsa(
        len(inputs) + 1,
        [Arc(0, 0, one)] + _pattern(inputs, decays),
        initial={0: one},
        final={len(inputs): one},
        semiring=semiring,
    )


def interpolated_automaton(
    inputs: Sequence[Tensor],
    decays: Sequence[Weight],
    epsilon: Weight,
    finals: Sequence[Weight],
    semiring: LogSemiring,
) -> Wfsa:
    """F (Figure 6.4): patterns of two symbols, of the second alone by an epsilon arc 0 -> 3, and of the first alone.

    inputs, decays: two each, as in `pattern_automaton`; epsilon: *, gamma; finals: two of *, rho_1 and rho_2.
    """
    one = _one(semiring, inputs[0])
    return wfsa(
        4,
        [Arc(0, 0, one), *_pattern(inputs, decays), Arc(3, 2, inputs[1])],
        initial={0: one},
        final={1: finals[0], 2: finals[1]},
        epsilons=[Arc(0, 3, epsilon)],
        semiring=semiring,
    )


def window_automaton(inputs: Tensor, decays: Tensor, semiring: LogSemiring) -> Wfsa:
    """Gates that see the symbol before as well, with 2 V + 1 states: 0, p_v = 1 + v, q_v = 1 + V + v (appendix E.1).

    inputs, decays: * V V, [a, b] of symbol b after a.  The first symbol of a string only stands before the second,
    and has the score zero.
    """
    V = inputs.size(-1)
    one, zero = _one(semiring, inputs), semiring.zero((), inputs)[0]
    taken = torch.eye(V, dtype=torch.bool, device=inputs.device)

    def after(table: Tensor, a: int, b: int) -> Tensor:
        return torch.where(taken[b], table[..., a, b].unsqueeze(-1), zero)  # * V, of symbol b alone

    everything = one.expand(V, V)
    arcs = []
    for b in range(V):
        arcs.append(Arc(0, 1 + b, after(everything, 0, b)))
        for a in range(V):
            arcs.append(Arc(1 + a, 1 + b, after(everything, a, b)))
            arcs.append(Arc(1 + a, 1 + V + b, after(inputs, a, b)))
            arcs.append(Arc(1 + V + a, 1 + V + b, after(decays, a, b)))
    return wfsa(2 * V + 1, arcs, initial={0: one}, final={1 + V + v: one for v in range(V)}, semiring=semiring)


def affine_automaton(matrices: Tensor, offsets: Tensor, initial: Tensor | None = None) -> Wfsa:
    """c_t = W_x c_{t-1} + b_x over the real semiring, with 2 d states, of which d + i brings in b_i (appendix E.3).

    matrices: V d d; offsets: V d; initial: d, c_0, zeros if None.  One automaton for each final state: * is d.
    """
    d = offsets.size(-1)
    arcs = [Arc(i, j, matrices[:, j, i]) for i in range(d) for j in range(d)]
    arcs += [Arc(d + j, j, offsets[:, j]) for j in range(d)] + [Arc(d + j, d + j, 1.0) for j in range(d)]
    starts: dict[int, Weight] = {d + j: 1.0 for j in range(d)}
    if initial is not None:
        starts |= {j: initial[j] for j in range(d)}
    chosen = torch.eye(d, dtype=offsets.dtype, device=offsets.device)
    return wfsa(2 * d, arcs, initial=starts, final={j: chosen[j] for j in range(d)}, semiring=RealSemiring())


def _pattern(inputs: Sequence[Tensor], decays: Sequence[Weight]) -> list[Arc]:
    if len(inputs) != len(decays) or not inputs:
        raise ValueError(f"expected as many inputs as decays, 1 or more, got {len(inputs)} and {len(decays)}")
    pairs = enumerate(zip(inputs, decays, strict=True), 1)
    return [arc for j, (mu, phi) in pairs for arc in (Arc(j - 1, j, mu), Arc(j, j, phi))]


def _one(semiring: LogSemiring, like: Tensor) -> Tensor:
    return semiring.one((), like)[0]
