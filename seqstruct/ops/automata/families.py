"""The automata behind rational recurrences (Peng 2022, sections 6.2 to 6.5, Table 6.1, appendices E.1 to E.3).

Each function gives a family of automata, one for each feature of the network; `wfsa.forward` gives the states of the
recurrence it names, as the scores of the prefixes.  Axis letters: V symbols, C size of a word vector, d features, `*`
any leading axes.  Weights are as the semiring wants them; networks are in the real semiring.

    automaton                                  recurrence
    pattern_automaton, 1 input (B)             SRU, SCRN, T-RNN; RRNN(B), and in max-plus; eq. 6.5c, 6.21c
    pattern_automaton, n inputs (C: 2)         RCNN of n-grams, RRNN(C); eq. 6.14
    interpolated_automaton (F)                 RRNN(F); eq. 6.19
    window_automaton                           QRNN of window 2, T-LSTM, T-GRU; appendix E.1
    affine_automaton                           ISAN, the linear Elman network; eq. 6.16
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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


class GateWeights(NamedTuple):
    """What a gate or an input reads: weight d C of the word vector, bias d, previous d C of the word vector before.

    state: d d, of the state before.  No rational recurrence has it.
    """

    weight: Tensor
    bias: Tensor | None = None
    previous: Tensor | None = None
    state: Tensor | None = None


def sru_automaton(vectors: Tensor, candidate: GateWeights, forget: GateWeights) -> Wfsa:
    """Simple recurrent unit in its first version, and T-RNN: c_t = f c_{t-1} + (1 - f) W x_t.  vectors: V C."""
    gates = _of_symbol("SRU", vectors, forget).sigmoid()
    inputs = (1 - gates) * _of_symbol("SRU", vectors, candidate)
    return pattern_automaton([inputs], [gates], RealSemiring())


def scrn_automaton(vectors: Tensor, candidate: GateWeights, alpha: float) -> Wfsa:
    """Context units of the structurally constrained network: c_t = alpha c_{t-1} + (1 - alpha) W x_t."""
    return pattern_automaton([(1 - alpha) * _of_symbol("SCRN", vectors, candidate)], [alpha], RealSemiring())


def rcnn_automaton(vectors: Tensor, candidates: Sequence[GateWeights], decay: GateWeights | float) -> Wfsa:
    """Recurrent convolution over n-grams: cj_t = l cj_{t-1} + c(j-1)_{t-1} (1 - l) W_j x_t, l a constant or a gate.

    Raises ValueError where the gate reads the state (proposition 14 does not hold then, section 6.4.3).
    """
    gates = decay if isinstance(decay, float) else _of_symbol("RCNN", vectors, decay).sigmoid()
    inputs = [(1 - gates) * _of_symbol("RCNN", vectors, candidate) for candidate in candidates]
    return pattern_automaton(inputs, [gates] * len(inputs), RealSemiring())


def qrnn_automaton(vectors: Tensor, candidate: GateWeights, forget: GateWeights) -> Wfsa:
    """Quasi-recurrent network of window 2: c_t = f c_{t-1} + (1 - f) tanh(z), gate and z of two words."""
    gates = _of_pair("QRNN", vectors, forget).sigmoid()
    return window_automaton((1 - gates) * _of_pair("QRNN", vectors, candidate).tanh(), gates, RealSemiring())


def t_lstm_automaton(vectors: Tensor, candidate: GateWeights, enter: GateWeights, forget: GateWeights) -> Wfsa:
    """Strongly typed LSTM: c_t = f c_{t-1} + i W x_t, gates of two words."""
    inputs = _of_pair("T-LSTM", vectors, enter).sigmoid() * _of_pair("T-LSTM", vectors, candidate)
    return window_automaton(inputs, _of_pair("T-LSTM", vectors, forget).sigmoid(), RealSemiring())


def t_gru_automaton(vectors: Tensor, candidate: GateWeights, output: GateWeights, forget: GateWeights) -> Wfsa:
    """Strongly typed GRU: c_t = f c_{t-1} + tanh(o) W x_t, f a sigmoid, both of two words."""
    inputs = _of_pair("T-GRU", vectors, output).tanh() * _of_pair("T-GRU", vectors, candidate)
    return window_automaton(inputs, _of_pair("T-GRU", vectors, forget).sigmoid(), RealSemiring())


def elman_automaton(vectors: Tensor, recurrent: Tensor, candidate: GateWeights, initial: Tensor | None = None) -> Wfsa:
    """Elman network without a nonlinearity: c_t = W_c c_{t-1} + W x_t + b (corollary 16).  recurrent: d d."""
    offsets = _of_symbol("Elman", vectors, candidate).T
    return affine_automaton(recurrent.expand(len(vectors), -1, -1), offsets, initial)


def _pattern(inputs: Sequence[Tensor], decays: Sequence[Weight]) -> list[Arc]:
    if len(inputs) != len(decays) or not inputs:
        raise ValueError(f"expected as many inputs as decays, 1 or more, got {len(inputs)} and {len(decays)}")
    pairs = enumerate(zip(inputs, decays, strict=True), 1)
    return [arc for j, (mu, phi) in pairs for arc in (Arc(j - 1, j, mu), Arc(j, j, phi))]


def _one(semiring: LogSemiring, like: Tensor) -> Tensor:
    return semiring.one((), like)[0]


def _of_symbol(model: str, vectors: Tensor, gate: GateWeights) -> Tensor:
    """d V."""
    _refuse_state(model, gate)
    if gate.previous is not None:
        raise ValueError(f"{model}: expected gates of one word, got one of two")
    found = gate.weight @ vectors.T
    return found if gate.bias is None else found + gate.bias.unsqueeze(-1)


def _of_pair(model: str, vectors: Tensor, gate: GateWeights) -> Tensor:
    """d V V, [a, b] of word b after a."""
    _refuse_state(model, gate)
    found = (gate.weight @ vectors.T).unsqueeze(-2)
    if gate.previous is not None:
        found = found + (gate.previous @ vectors.T).unsqueeze(-1)
    if gate.bias is not None:
        found = found + gate.bias[:, None, None]
    return found.expand(-1, len(vectors), -1)


def _refuse_state(model: str, gate: GateWeights) -> None:
    if gate.state is not None:
        raise ValueError(f"{model}: a gate that reads the state makes a recurrence that is not rational; no automaton")
