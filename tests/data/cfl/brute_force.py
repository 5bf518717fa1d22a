"""Every short string of a grammar with its weight, by rewriting: plain, slow, independent of the charts."""

from collections import defaultdict

from seqstruct.data.cfl.grammar import Grammar


def enumerate_strings(grammar: Grammar, longest: int, least: float = 1e-16) -> dict[tuple[str, ...], float]:
    """Weights as written, summed over all leftmost derivations, of the strings of at most `longest` symbols.

    Sentential forms that must become longer, or weigh less than `least` (unary cycles go on for ever), are dropped.
    """
    shortest = _shortest(grammar)
    rules = defaultdict(list)
    for left, right, weight in grammar.rules:
        rules[left].append((right, weight))
    forms, strings = {(grammar.start,): 1.0}, defaultdict(float)
    while forms:
        new = defaultdict(float)
        for form, weight in forms.items():
            place = next((i for i, symbol in enumerate(form) if symbol in rules), None)
            if place is None:
                strings[form] += weight
                continue
            for right, factor in rules[form[place]]:
                after = form[:place] + right + form[place + 1 :]
                if sum(shortest[symbol] for symbol in after) <= longest:
                    new[after] += weight * factor
        forms = {form: weight for form, weight in new.items() if weight > least}
    return dict(strings)


def _shortest(grammar: Grammar) -> dict[str, float]:
    """Length of the shortest string of each symbol."""
    shortest = dict.fromkeys(grammar.nonterminals, float("inf")) | dict.fromkeys(grammar.terminals, 1)
    for _ in grammar.rules:
        for left, right, _ in grammar.rules:
            shortest[left] = min(shortest[left], sum(shortest[symbol] for symbol in right))
    return shortest
