"""Grammars of one's own that are awkward: ambiguous, with empty rules, cycles, useless symbols, improper weights."""

GRAMMARS = {
    "ambiguous": 'S -> S S [0.3] | S S S [0.2] | "a" [0.3] | "b"',
    "empty and unary": """
        S -> A B A [0.25] | A [0.25] | "a" S "b" "c" [0.25] | "c"
        A -> B [0.3] | "a" A [0.3] | [0.4]
        B -> A [0.2] | "b" [0.5] |
        """,
    "unary cycle": 'S -> T [0.5] | "a"\nT -> U | "b" T\nU -> S [0.9] | "c"',
    "critical": 'S -> "(" S ")" S |',
    "weights without a sum": 'S -> S S [3] | "a" [2] | "b" [5]',
    "weights that sum to less": 'S -> "a" S "a" [0.2] | "b" S [0.1] | "c" [0.05]',
    "useless": 'S -> "a" S [0.4] | X "b" [0.3] | "c" Y\nX -> X "a"\nY -> "a" | "b" [0.2]\nZ -> "c"',
    "long rule": 'S -> "a" S "b" S "a" S "b" [0.3] | T T T T T\nT -> | "a" [0.1]',
    "finite": 'S -> A A A\nA -> "a" | "b" [0.3] | [0.2]',
    "one name twice": 'S -> "S" S [0.2] | T\nT -> "T" | "S"',
}
_WORDS = " | ".join(f'"w{i}"' for i in range(3000))
LARGE = (f"S -> S S [0.3] | W\nW -> {_WORDS}", f"S -> {_WORDS} | W S [0.9]\nW -> {_WORDS}")  # all strings are alike
LONGEST = {"ambiguous": 6, "empty and unary": 4, "long rule": 7}
