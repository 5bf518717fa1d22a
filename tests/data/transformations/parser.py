"""A recursive-descent parser of the sentences, written without the grammar that makes them, and what it derives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

DETERMINERS = {"the", "my", "your", "our", "his", "their"}
PREPOSITIONS = {"above", "around", "behind", "beside", "by", "near", "under", "with"}
PEOPLE = {"baker", "doctor", "driver", "farmer", "gardener", "judge", "nurse", "painter", "pilot", "sailor", "singer",
          "teacher", "writer"}
NUMBER = {**{noun: "one" for noun in PEOPLE}, **{noun + "s": "many" for noun in PEOPLE}}
AGREES = {"does": "one", "doesn't": "one", "do": "many", "don't": "many"}
ALONE = {"arrive": "arrived", "cough": "coughed", "dance": "danced", "frown": "frowned", "laugh": "laughed",
         "rest": "rested", "stumble": "stumbled", "wait": "waited", "work": "worked"}
WITH_OBJECT = {"annoy": "annoyed", "avoid": "avoided", "follow": "followed", "greet": "greeted", "help": "helped",
               "praise": "praised", "thank": "thanked", "trust": "trusted", "visit": "visited"}
PAST = {past: verb for verbs in (ALONE, WITH_OBJECT) for verb, past in verbs.items()}


class Phrase(NamedTuple):
    """head: of the first noun, "one" or "many".  kind: plain, preposition, or a relative clause: alone, subject or
    object.  text: in the present tense.  tags: a letter for each word."""

    head: str
    kind: str
    text: list[str]
    tags: str


class Clause(NamedTuple):
    """subject, and the rest from its verb or auxiliary on.  kind: alone, or that of the object.  text: in the present
    tense; place: of the main auxiliary or verb."""

    subject: Phrase
    kind: str
    text: list[str]
    place: int
    tags: str


class Parser:
    """Of words with auxiliaries, or in the past tense.  Raises AssertionError where they are no sentence."""

    def __init__(self, words: Sequence[str], auxiliaries: bool):
        self.words, self.at, self.auxiliaries = list(words), 0, auxiliaries

    @property
    def next(self) -> str:
        return self.words[self.at] if self.at < len(self.words) else ""

    def take(self, allowed) -> str:
        assert self.next in allowed, (self.words, self.at, self.next)
        self.at += 1
        return self.words[self.at - 1]

    def clause(self) -> Clause:
        subject = self.noun_phrase()
        verb, alone = self.verb(subject.head)
        tags = "av"[not self.auxiliaries :]
        rest = Phrase("", "alone", [], "") if alone else self.noun_phrase()
        assert self.at == len(self.words), (self.words, self.at)
        text = [*subject.text, *verb, *rest.text]
        return Clause(subject, rest.kind, text, len(subject.text), subject.tags + tags + rest.tags)

    def noun_phrase(self) -> Phrase:
        text = [self.take(DETERMINERS), self.take(NUMBER)]
        head, verb_tags = NUMBER[text[1]], "av"[not self.auxiliaries :]
        if self.next in PREPOSITIONS:
            text += [self.take(PREPOSITIONS), self.take(DETERMINERS), self.take(NUMBER)]
            return Phrase(head, "preposition", text, "dnpdn")
        if self.next not in ("that", "who"):
            return Phrase(head, "plain", text, "dn")
        text.append(self.take(("that", "who")))
        if self.next in DETERMINERS:
            text += [self.take(DETERMINERS), self.take(NUMBER)]
            verb, alone = self.verb(NUMBER[text[-1]])
            assert not alone
            return Phrase(head, "object", text + verb, "dnrdn" + verb_tags)
        verb, alone = self.verb(head)
        if alone:
            return Phrase(head, "alone", text + verb, "dnr" + verb_tags)
        return Phrase(head, "subject", [*text, *verb, self.take(DETERMINERS), self.take(NUMBER)],
                      "dnr" + verb_tags + "dn")

    def verb(self, subject: str) -> tuple[list[str], bool]:
        """The predicate in the present tense, agreeing with its subject, and whether it has no object."""
        if self.auxiliaries:
            auxiliary = self.take(AGREES)
            assert AGREES[auxiliary] == subject, self.words
            verb = self.take({**ALONE, **WITH_OBJECT})
            return [auxiliary, verb], verb in ALONE
        verb = PAST[self.take(PAST)]
        return [verb + "s" if subject == "one" else verb], verb in ALONE


def parse(words: Sequence[str], auxiliaries: bool) -> Clause:
    return Parser(words, auxiliaries).clause()


def question(clause: Clause) -> list[str]:
    """The main auxiliary before the subject."""
    rest = clause.text[clause.place + 1 :]
    return [clause.text[clause.place], *clause.subject.text, *rest, "?"]
