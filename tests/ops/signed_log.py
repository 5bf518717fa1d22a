"""The backward pass of Kim et al. (2017) as they have it: every number a logarithm and a sign (their Table 1).

A program is a list of terms (target, sources): target <-(+) product of sources, all of a target's terms before its
first use.  Run forward it is the left of their Figure 2 or their Figure 6; `gradients` goes over it backwards, as the
right of Figure 2 and Figure 7 do loop by loop.  Two readings differ from the figures as printed: the share of a term in
its target is the term divided by the target, and the gradient reaches the log-partition with a minus sign.
"""

from __future__ import annotations

import math
from typing import NamedTuple

INF = math.inf


class Signed(NamedTuple):
    """sign * exp(log)."""

    log: float
    sign: int

    @classmethod
    def of(cls, number):
        return cls(math.log(abs(number)) if number else -INF, 1 if number >= 0 else -1)

    def __add__(self, other):
        greater, less = (self, other) if self.log >= other.log else (other, self)
        if less.log == -INF:
            return greater
        d = math.exp(less.log - greater.log)
        if greater.sign == less.sign:
            return Signed(greater.log + math.log1p(d), greater.sign)
        return Signed(greater.log + math.log1p(-d) if d < 1 else -INF, greater.sign)

    def __mul__(self, other):
        return Signed(self.log + other.log, self.sign * other.sign)

    def number(self):
        return self.sign * math.exp(self.log)


ZERO, ONE = Signed(-INF, 1), Signed(0.0, 1)


def product(values, sources):
    result = ONE
    for source in sources:
        result = result * values.get(source, ZERO)
    return result


def run(program, leaves):
    values = dict(leaves)
    for target, sources in program:
        values[target] = values.get(target, ZERO) + product(values, sources)
    return values


def gradients(program, values, parts, total, upstream):
    """Of sum(upstream * p), p = alpha beta / total for each of parts {name: (alpha, beta)}, by log potential."""
    grads = {}

    def add(name, amount):
        grads[name] = grads.get(name, ZERO) + amount

    for name, pair in parts.items():
        p = product(values, pair) * Signed(-values[total].log, 1)
        delta = p * Signed.of(upstream[name])
        for factor in pair:
            add(factor, delta)
        add(total, delta * Signed(0.0, -1))
    for target, sources in reversed(program):
        value = values[target]
        if target in grads and value.log > -INF:
            share = grads[target] * product(values, sources) * Signed(-value.log, 1)
            for source in sources:
                add(source, share)
    return grads


def chain_program(n, C):
    """Figure 2 with start and stop folded in: leaves are u[t, c] and e[t, i, j]; parts are nodes and edges."""
    program, parts = [], {}
    for c in range(C):
        program.append((("alpha", 0, c), [("u", 0, c)]))
    for t in range(1, n):
        for c in range(C):
            program += [(("alpha", t, c), [("alpha", t - 1, y), ("e", t - 1, y, c), ("u", t, c)]) for y in range(C)]
    program += [(("beta", n - 1, c), []) for c in range(C)]
    for t in range(n - 2, -1, -1):
        for c in range(C):
            program += [(("beta", t, c), [("beta", t + 1, y), ("e", t, c, y), ("u", t + 1, y)]) for y in range(C)]
    program += [(("A",), [("alpha", n - 1, c)]) for c in range(C)]
    for t in range(n):
        for c in range(C):
            parts["node", t, c] = (("alpha", t, c), ("beta", t, c))
            if t + 1 < n:
                for y in range(C):
                    beyond = ("beyond", t, c, y)
                    program.append((beyond, [("e", t, c, y), ("u", t + 1, y), ("beta", t + 1, y)]))
                    parts["edge", t, c, y] = (("alpha", t, c), beyond)
    return program, parts


def tree_program(n):
    """Figure 6: positions 1 .. n, the first the root; leaves are theta[s, t], parts the arcs (s, t)."""
    program = [(("a", i, i, side, 1), []) for i in range(1, n + 1) for side in "LR"]
    for k in range(1, n):
        for s in range(1, n - k + 1):
            t = s + k
            for u in range(s, t):
                inner = [("a", s, u, "R", 1), ("a", u + 1, t, "L", 1)]
                program.append((("a", s, t, "R", 0), [*inner, ("theta", s, t)]))
                if s > 1:
                    program.append((("a", s, t, "L", 0), [*inner, ("theta", t, s)]))
            program += [(("a", s, t, "R", 1), [("a", s, u, "R", 0), ("a", u, t, "R", 1)]) for u in range(s + 1, t + 1)]
            if s > 1:
                program += [(("a", s, t, "L", 1), [("a", s, u, "L", 1), ("a", u, t, "L", 0)]) for u in range(s, t)]
    program.append((("b", 1, n, "R", 1), []))
    for k in range(n - 1, 0, -1):
        for s in range(1, n - k + 1):
            t = s + k
            complete, incomplete = ("b", s, t, "R", 1), ("b", s, t, "R", 0)
            for u in range(s + 1, t + 1):
                program.append((("b", s, u, "R", 0), [complete, ("a", u, t, "R", 1)]))
                program.append((("b", u, t, "R", 1), [complete, ("a", s, u, "R", 0)]))
            if s > 1:
                complete = ("b", s, t, "L", 1)
                for u in range(s, t):
                    program.append((("b", s, u, "L", 1), [complete, ("a", u, t, "L", 0)]))
                    program.append((("b", u, t, "L", 0), [complete, ("a", s, u, "L", 1)]))
            for incomplete, arc in ((("b", s, t, "R", 0), (s, t)), (("b", s, t, "L", 0), (t, s))):
                for u in range(s, t):
                    if s > 1 or arc == (s, t):
                        left, right = ("a", s, u, "R", 1), ("a", u + 1, t, "L", 1)
                        program.append((("b", s, u, "R", 1), [incomplete, right, ("theta", *arc)]))
                        program.append((("b", u + 1, t, "L", 1), [incomplete, left, ("theta", *arc)]))
    parts = {}
    for s in range(1, n):
        for t in range(s + 1, n + 1):
            parts[s, t] = (("a", s, t, "R", 0), ("b", s, t, "R", 0))
            if s > 1:
                parts[t, s] = (("a", s, t, "L", 0), ("b", s, t, "L", 0))
    return program, parts
