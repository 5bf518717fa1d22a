"""Logical forms of COGS (Kim and Linzen 2020, sec. 3.2 and appendix), read off derivations.

    The girl gave Emma a cake on the table .
    * girl ( x _ 1 ) ; * table ( x _ 8 ) ; give . agent ( x _ 2 , x _ 1 ) AND give . recipient ( x _ 2 , Emma ) AND
    give . theme ( x _ 2 , x _ 5 ) AND cake ( x _ 5 ) AND cake . nmod . on ( x _ 5 , x _ 8 )

A noun or verb has its place in the sentence, from 0, as variable, a name itself.  Definite nouns come first, by place;
then the conjunction of indefinite nouns, arguments and modifiers by the place of their first variable, at one place the
noun first and the rest as it follows in the sentence.  A word by itself has a lambda term.

Of a derivation's symbols, the part before the first dot counts: `ROLES` are phrases that are arguments or modifiers of
the head of the phrase around, `WORDS` its head, "Det" its article; all others are there for the sentence alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from seqstruct.data.cfl.derivations import Node
from seqstruct.data.cfl.rules import nonterminal
from seqstruct.data.cogs.lexicon import LEMMAS

ROLES = ("agent", "theme", "recipient", "nmod", "ccomp", "xcomp")
WORDS = ("Noun", "Name", "Verb", "Participle")
Pair = tuple[str, str]


@dataclass
class _Phrase:
    """kind: one of `WORDS`.  place: of the head in the sentence.  parts: arguments and modifiers with their labels."""

    kind: str = ""
    head: str = ""
    place: int = -1
    definite: bool = False
    parts: list[tuple[str, _Phrase]] = field(default_factory=list)

    @property
    def reference(self) -> str:
        return self.head if self.kind == "Name" else f"x _ {self.place}"

    def relation(self, label: str, other: _Phrase) -> tuple[int, str]:
        return self.place, f"{self.head} . {label} ( {self.reference} , {other.reference} )"


def name(symbol: str) -> list[str]:
    """The parts of a nonterminal's name, which dots divide."""
    return symbol.removeprefix(nonterminal("")).split(".")


def depth(node: Node | str, role: str) -> int:
    """How many phrases of a role stand one inside another."""
    if isinstance(node, str):
        return 0
    return (name(node.symbol)[0] == role) + max((depth(child, role) for child in node.children), default=0)


def pair(derivation: Node) -> Pair:
    """The sentence of a derivation and its logical form."""
    words: list[str] = []
    definite, terms = [], []
    _collect(_phrase(derivation, words), definite, terms)
    first = "".join(f"* {term} ; " for _, term in sorted(definite))
    rest = " AND ".join(term for _, term in sorted(terms, key=lambda term: term[0]))
    words[0] = words[0][0].upper() + words[0][1:]
    return " ".join([*words, "."]), first + rest


def _phrase(node: Node, words: list[str]) -> _Phrase:
    """What a node says; its words are put behind those there."""
    found = _Phrase()

    def visit(node: Node) -> None:
        kind = name(node.symbol)[0]
        for child in node.children:
            if isinstance(child, str):
                if kind in WORDS:
                    head = child if kind in ("Noun", "Name") else LEMMAS[child]
                    found.kind, found.head, found.place = kind, head, len(words)
                found.definite |= kind == "Det" and child == "the"
                words.append(child)
            elif (label := name(child.symbol))[0] in ROLES:
                said = " . ".join(label[:2]) if label[0] == "nmod" else label[0]
                found.parts.append((said, _phrase(child, words)))
            else:
                visit(child)

    visit(node)
    return found


def _collect(phrase: _Phrase, definite: list[tuple[int, str]], terms: list[tuple[int, str]]) -> None:
    if phrase.kind == "Noun":
        term = phrase.place, f"{phrase.head} ( {phrase.reference} )"
        (definite if phrase.definite else terms).append(term)
    for label, part in phrase.parts:
        terms.append(phrase.relation(label, part))
        if label == "xcomp":  # who wants to walk, walks
            terms.append(part.relation("agent", dict(phrase.parts)["agent"]))
        _collect(part, definite, terms)


def primitive(kind: str, word: str) -> Pair:
    """A word by itself with its lambda term.  kind: Noun, Name, or the number of a verb's arguments, 1 or 2."""
    if kind == "Name":
        return word, word
    if kind == "Noun":
        return word, f"LAMBDA a . {word} ( a )"
    if kind == "1":
        return word, f"LAMBDA a . LAMBDA e . {word} . agent ( e , a )"
    return word, f"LAMBDA a . LAMBDA b . LAMBDA e . {word} . agent ( e , b ) AND {word} . theme ( e , a )"
