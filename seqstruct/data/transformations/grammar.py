"""Sentences of a weighted grammar, and two rewritings of them by a hierarchical rule, which a linear rule resembles.

After McCoy, Frank and Linzen (2020, "Does syntax need to grow on trees?"); the vocabulary is our own, of the numbers of
words that theirs has.  n is the number, "sg" or "pl"; weights in brackets, 1 where there is none:

    S    -> NP_n VP_n .
    NP_n -> Det N_n | Det N_n Prep Det N | Det N_n RC_n
    VP_n -> I_n | T_n NP
    RC_n -> Rel I_n [2] | Rel Det N_m T_m [1 for each m] | Rel T_n Det N [2]

An intransitive or transitive predicate, I_n or T_n, is an auxiliary and a verb in question formation and an inflected
verb in tense reinflection.  A source ends in a cue that says whether to repeat the sentence or to rewrite it:

    the pilot that does laugh doesn't wait . decl       the pilot that does laugh doesn't wait .
    the pilot that does laugh doesn't wait . quest      doesn't the pilot that does laugh wait ?
    the pilots by the nurse waited . present            the pilots by the nurse wait .
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

SINGULAR, PLURAL = NUMBERS = ("sg", "pl")
STOP = "."
STEMS = "baker doctor driver farmer gardener judge nurse painter pilot sailor singer teacher writer".split()
INTRANSITIVE = "arrive cough dance frown laugh rest stumble wait work".split()
TRANSITIVE = "annoy avoid follow greet help praise thank trust visit".split()
AUXILIARIES = {"do": PLURAL, "don't": PLURAL, "does": SINGULAR, "doesn't": SINGULAR}
NOUNS = {**dict.fromkeys(STEMS, SINGULAR), **{f"{stem}s": PLURAL for stem in STEMS}}
VERBS = (*INTRANSITIVE, *TRANSITIVE)
PRESENT = {SINGULAR: [f"{verb}s" for verb in VERBS], PLURAL: list(VERBS)}
PAST = [verb + "ed"[verb.endswith("e") :] for verb in VERBS]
DETERMINERS = "the my your our his their".split()
PREPOSITIONS = "above around behind beside by near under with".split()
RELATIVES = "that who".split()
PAST_OF = {form: past for forms in PRESENT.values() for form, past in zip(forms, PAST, strict=True)}
PRESENT_OF = {(past, n): form for n, forms in PRESENT.items() for form, past in zip(forms, PAST, strict=True)}
WORD_CLASSES = {
    word: name for name, words in (
        ("noun", NOUNS), ("auxiliary", AUXILIARIES), ("past", PAST), ("verb", PAST_OF), ("determiner", DETERMINERS),
        ("preposition", PREPOSITIONS), ("relative", RELATIVES), ("end", (STOP, "?")),
    ) for word in words
}

Rules = dict[str, tuple[list[list[str]], list[float]]]  # the right-hand sides of a symbol, and their weights


def _rules(auxiliaries: bool) -> Rules:
    found: dict[str, list[tuple[float, str]]] = {
        "Det": [(1, word) for word in DETERMINERS],
        "Prep": [(1, word) for word in PREPOSITIONS],
        "Rel": [(1, word) for word in RELATIVES],
        "N": [(1, "N_sg"), (1, "N_pl")],
        "NP": [(1, "NP_sg"), (1, "NP_pl")],
    }
    for n in NUMBERS:
        found |= {
            f"N_{n}": [(1, noun) for noun, number in NOUNS.items() if number == n],
            f"NP_{n}": [(1, f"Det N_{n}"), (1, f"Det N_{n} Prep Det N"), (1, f"Det N_{n} RC_{n}")],
            f"VP_{n}": [(1, f"I_{n}"), (1, f"T_{n} NP")],
            f"RC_{n}": [(2, f"Rel I_{n}"), (2, f"Rel T_{n} Det N"),
                        *((1, f"Rel Det N_{m} T_{m}") for m in NUMBERS)],
        }
        if auxiliaries:
            found[f"Aux_{n}"] = [(1, word) for word, number in AUXILIARIES.items() if number == n]
        for symbol, verbs in (("I", INTRANSITIVE), ("T", TRANSITIVE)):
            forms = [f"Aux_{n} {verb}" if auxiliaries else PRESENT_OF[PAST_OF[verb], n] for verb in verbs]
            found[f"{symbol}_{n}"] = [(1, form) for form in forms]
    return {
        symbol: ([side.split() for _, side in sides], [weight for weight, _ in sides])
        for symbol, sides in found.items()
    }


class Sentence(NamedTuple):
    """words: in the present tense, without a full stop.  main: where the main auxiliary, or verb, is, from 0."""

    words: list[str]
    main: int


class Pair(NamedTuple):
    """source: the sentence, a full stop and the cue.  target: what it is to be rewritten as."""

    source: list[str]
    target: list[str]


def move(words: Sequence[str], auxiliary: int) -> list[str]:
    """The question of a declarative without a full stop that the auxiliary at this place, from 0, gives in front."""
    return [words[auxiliary], *words[:auxiliary], *words[auxiliary + 1 :], "?"]


def move_first(words: Sequence[str]) -> list[str]:
    """The linear rule of questions: the first auxiliary goes to the front."""
    return move(words, next(place for place, word in enumerate(words) if word in AUXILIARIES))


def agree_recent(words: Sequence[str]) -> list[str]:
    """The linear rule of the present tense: each verb agrees with the noun that stands nearest before it."""
    found, number = [], SINGULAR
    for word in words:
        number = NOUNS.get(word, number)
        found.append(PRESENT_OF.get((word, number), word))
    return [*found, STOP]


@dataclass(frozen=True)
class Transformation:
    """keep, change: the cues.  given: the sentence as the source has it.  right: the rewritten one by the hierarchical
    rule.  linear: the rewritten one by the linear rule, of the source without full stop and cue."""

    keep: str
    change: str
    rules: Rules
    given: Callable[[Sentence], list[str]]
    right: Callable[[Sentence], list[str]]
    linear: Callable[[Sequence[str]], list[str]]

    @property
    def words(self) -> list[str]:
        """All words of sources and targets, in order."""
        used = {word for sides, _ in self.rules.values() for side in sides for word in side if word not in self.rules}
        ends = {STOP, self.keep, self.change} | ({"?"} if used & AUXILIARIES.keys() else set())
        return sorted(used | set(self.given(Sentence(list(used), 0))) | ends)

    def sample(self, generator: random.Random) -> Sentence:
        """A sentence, drawn by the weights."""

        def expand(symbol: str) -> list[str]:
            if symbol not in self.rules:
                return [symbol]
            (side,) = generator.choices(*self.rules[symbol])
            return [word for part in side for word in expand(part)]

        number = generator.choice(NUMBERS)
        subject = expand(f"NP_{number}")
        return Sentence(subject + expand(f"VP_{number}"), len(subject))

    def pair(self, sentence: Sentence, change: bool) -> Pair:
        """Source and target; change: by which cue."""
        words = self.given(sentence)
        source = [*words, STOP, self.change if change else self.keep]
        return Pair(source, self.right(sentence) if change else [*words, STOP])

    def tells(self, pair: Pair) -> bool:
        """Whether the rules differ, and already in the first word of a question."""
        other = self.by_linear_rule(pair.source)
        return other[0] != pair.target[0] if pair.target[-1] == "?" else other != pair.target

    def by_linear_rule(self, source: Sequence[str]) -> list[str]:
        """The target of a source where sentences are rewritten by the linear rule."""
        return self.linear(source[:-2]) if source[-1] == self.change else list(source[:-1])


TRANSFORMATIONS: Mapping[str, Transformation] = {
    "question-formation": Transformation(
        "decl", "quest", _rules(True), lambda sentence: sentence.words, lambda sentence: move(*sentence), move_first
    ),
    "tense-reinflection": Transformation(
        "past", "present", _rules(False), lambda sentence: [PAST_OF.get(word, word) for word in sentence.words],
        lambda sentence: [*sentence.words, STOP], agree_recent,
    ),
}
