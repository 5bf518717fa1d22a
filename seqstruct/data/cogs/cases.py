"""The sentences of COGS and its 21 cases of generalisation (Kim and Linzen 2020, sec. 3, table 1).

Eighteen cases are lexical: a word stands in training once, by itself or in a sentence of one kind, and is tested in
sentences of another.  Three are structural: modifiers of objects are tested at subjects; modifiers and sentential
complements, one inside another no more than `DEPTH` times in training, are tested `DEEPER` times.  The cases have the
names of the released data.  Constructions are those of that data, with weights of a public copy of what generated it,
by which it has as many passives as is counted in it; simple sentences stand apart here from those with a sentential
complement, so that a case changes the former alone.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from seqstruct.data.cfl.derivations import Derivations
from seqstruct.data.cfl.rules import nonterminal, read_rules
from seqstruct.data.cogs.lexicon import FORMS, LEMMAS, NAMES, NOUNS, lexical_rules
from seqstruct.data.cogs.meaning import Pair, depth, pair, primitive

DEPTH, DEEPER = 2, range(3, 13)
RECURSIVE = ("ccomp", "nmod")
RULES = """
S -> Simple [0.92258] | Embedding [0.07742]
Embedding -> agent Verb.clausal "that" ccomp
ccomp -> S
Simple -> agent VP [0.41258] | theme.subject Verb.alternating [0.06] | theme.passive "was" Passive By [0.375]
    | recipient "was" Participle.dative theme.thing By [0.075]
VP -> Verb.unergative | Verb.optional | Verb.optional theme | Verb.transitive theme | Verb.alternating theme
    | Verb.control "to" xcomp | Verb.dative theme.thing "to" recipient | Verb.dative recipient theme.thing
Passive -> Participle.transitive | Participle.optional | Participle.alternating | Participle.dative "to" recipient
By -> | "by" agent
agent -> Det Noun.animate | Name
recipient -> Det Noun.animate | Name
theme -> Det Noun.thing [0.25] | Det Noun.thing PP [0.25] | Det Noun.animate [0.125] | Det Noun.animate PP [0.125]
    | Name [0.25]
theme.thing -> Det Noun.thing | Det Noun.thing PP
theme.subject -> Det Noun.thing [0.5] | Det Noun.animate [0.25] | Name [0.25]
theme.passive -> Det Noun.thing
xcomp -> Verb.bare
PP -> "on" nmod.on | "in" nmod.in | "beside" nmod.beside
nmod.on -> Det Noun.on [0.9] | Det Noun.on PP [0.1]
nmod.in -> Det Noun.in [0.9] | Det Noun.in PP [0.1]
nmod.beside -> Det Noun.beside [0.9] | Det Noun.beside PP [0.1]
Det -> "the" | "a"
"""
SUBJECT = "agent.target VP"
OBJECT = ('agent Verb.alternating theme.target | agent Verb.optional theme.target | agent Verb.transitive theme.target '
          '| agent Verb.dative theme.target "to" recipient | agent Verb.dative recipient theme.target')
ACTIVE = "agent Verb.target theme"
INCHOATIVE = "theme.changed Verb.alternating"
DOUBLE, DATIVE = "agent Verb.target recipient theme.thing", 'agent Verb.target theme.thing "to" recipient'


@dataclass(frozen=True)
class HeldOut:
    """word: as it stands in the sentences.  exposed, tested: of which kinds these are, right-hand sides of `Simple`;
    exposed is empty where the word stands by itself in training.  Structural cases have a name alone."""

    name: str
    word: str = ""
    exposed: str = ""
    tested: str = ""

    @property
    def group(self) -> str:
        """The name behind its kind, lexical or structural."""
        return f"{'lexical' if self.word else 'structural'}/{self.name}"


CASES = (
    HeldOut("subj_to_obj_common", "hedgehog", SUBJECT, OBJECT),
    HeldOut("subj_to_obj_proper", "Lina", SUBJECT, OBJECT),
    HeldOut("obj_to_subj_common", "cockroach", OBJECT, SUBJECT),
    HeldOut("obj_to_subj_proper", "Charlie", OBJECT, SUBJECT),
    HeldOut("prim_to_subj_common", "shark", "", SUBJECT),
    HeldOut("prim_to_subj_proper", "Paula", "", SUBJECT),
    HeldOut("prim_to_obj_common", "shark", "", OBJECT),
    HeldOut("prim_to_obj_proper", "Paula", "", OBJECT),
    HeldOut("prim_to_inf_arg", "crawl", "", 'agent Verb.control "to" xcomp.target'),
    HeldOut("active_to_passive", "blessed", ACTIVE, 'theme.passive "was" Verb.target By'),
    HeldOut("passive_to_active", "squeezed", 'theme.passive "was" Verb.target', ACTIVE),
    HeldOut("obj_omitted_transitive_to_transitive", "baked", "agent Verb.target", ACTIVE),
    HeldOut("unacc_to_transitive", "shattered", "theme.subject Verb.target", ACTIVE),
    HeldOut("do_dative_to_pp_dative", "teleported", DOUBLE, DATIVE),
    HeldOut("pp_dative_to_do_dative", "shipped", DATIVE, DOUBLE),
    HeldOut("only_seen_as_transitive_subj_as_unacc_subj", "cobra", "agent.target Verb.transitive theme", INCHOATIVE),
    HeldOut("only_seen_as_unacc_subj_as_obj_omitted_transitive_subj", "hippo", INCHOATIVE,
            "agent.target Verb.optional"),
    HeldOut("only_seen_as_unacc_subj_as_unerg_subj", "hippo", INCHOATIVE, "agent.target Verb.unergative"),
    HeldOut("obj_pp_to_subj_pp"),
    HeldOut("pp_recursion"),
    HeldOut("cp_recursion"),
)
PRIMITIVES = (  # as many as are published, of the kinds that these are of
    *(primitive("1", lemma) for lemma in ("crawl", *(lemma for lemma, *_ in FORMS["unergative"]))),
    *(primitive("2", lemma) for lemma, *_ in FORMS["transitive"]),
    *(primitive("Noun", noun) for noun in ("shark", *NOUNS["animate"].split()[:25], *NOUNS["thing"].split()[:25])),
    *(primitive("Name", name) for name in ("Paula", *NAMES.split()[:50])),
)


MODIFIED = """
Simple -> agent.more VP [0.41258] | theme.more Verb.alternating [0.06] | theme.thing.more "was" Passive By [0.375]
    | recipient.more "was" Participle.dative theme.thing By [0.075]
agent.more -> Det Noun.animate PP
recipient.more -> Det Noun.animate PP
theme.more -> Det Noun.thing PP | Det Noun.animate PP
theme.thing.more -> Det Noun.thing PP
"""


def derivations(changes: str = "") -> Derivations:
    """The grammar of training, in which these rules are in the place of those of the same left-hand sides."""
    old, new = (rules.strip().replace("\n    |", " |").splitlines() for rules in (RULES, changes))
    changed = {line.split()[0] for line in new}
    lines = new + [line for line in [*old, *lexical_rules()] if line.split()[0] not in changed]
    return Derivations(read_rules(sorted(lines, key=lambda line: not line.startswith("S "))).grammar)


def with_word(word: str, simple: str) -> str:
    """Rules by which simple sentences are of these kinds, with the word as target."""
    lines = [f"Simple -> {simple}"]
    if word in LEMMAS:
        return "\n".join([*lines, f'Verb.target -> "{word}"', "xcomp.target -> Verb.target"])
    proper = word[0].isupper()
    lines += [f'Name.target -> "{word}"', "Target -> Name.target"] if proper else [
        f'Noun.target -> "{word}"', "Target -> Det Noun.target"]
    modified = "" if proper else " | Target PP"
    return "\n".join([*lines, "agent.target -> Target", "theme.changed -> Target", f"theme.target -> Target{modified}"])


def nested_modifiers(times: int) -> str:
    """Rules by which the object has a modifier, with one inside it and so on, `times` in all."""
    lines = [f"Simple -> {OBJECT}", "theme.target -> Det Noun.thing PP.1 | Det Noun.animate PP.1"]
    for i in range(1, times + 1):
        more = f" PP.{i + 1}" if i < times else ""
        lines.append(f"PP.{i} -> " + " | ".join(f'"{p}" nmod.{p}.{i}' for p in ("on", "in", "beside")))
        lines += [f"nmod.{p}.{i} -> Det Noun.{p}{more}" for p in ("on", "in", "beside")]
    return "\n".join(lines)


def nested_clauses(times: int) -> str:
    """Rules by which a sentence has a sentential complement, with one inside it and so on, `times` in all."""
    lines = ["S -> Embedding.1"]
    for i in range(1, times + 1):
        lines.append(f'Embedding.{i} -> agent Verb.clausal "that" ccomp.{i}')
        lines.append(f"ccomp.{i} -> " + (f"Embedding.{i + 1}" if i < times else "Simple"))
    return "\n".join(lines)


NESTED = {"pp_recursion": (nested_modifiers, ("ccomp",)), "cp_recursion": (nested_clauses, ("nmod",))}


def draw(source: Derivations, count: int, generator: random.Random, seen: set[str], *, root: str = "S",
         limited: Sequence[str] = RECURSIVE) -> Iterator[Pair]:
    """Sentences as they come, drawn again where one is in `seen` already, which holds those that came, or where phrases
    of the roles `limited` are deeper than `DEPTH`.  root: the symbol that is drawn."""
    while count:
        derivation = source.sample(generator, nonterminal(root))
        if all(depth(derivation, role) <= DEPTH for role in limited):
            found = pair(derivation)
            if found[0] not in seen:
                seen.add(found[0])
                count -= 1
                yield found


def sentences_of(case: HeldOut, count: int, generator: random.Random) -> list[Pair]:
    """Different sentences of a case; of `DEEPER` as many of each depth, or one more of the lesser ones."""
    seen: set[str] = set()
    if case.name not in NESTED:
        rules = with_word(case.word, case.tested) if case.word else MODIFIED
        return list(draw(derivations(rules), count, generator, seen))
    nested, limited = NESTED[case.name]
    shares = {times: len(range(i, count, len(DEEPER))) for i, times in enumerate(DEEPER)}
    return [
        found for times, share in shares.items() if share
        for found in draw(derivations(nested(times)), share, generator, seen, limited=limited)
    ]


def exposures(generator: random.Random) -> list[Pair]:
    """One sentence for each word that has one in training, without sentential complements."""
    kinds = {case.word: case.exposed for case in CASES if case.exposed}
    return [
        found for word, kind in kinds.items()
        for found in draw(derivations(with_word(word, kind)), 1, generator, set(), root="Simple")
    ]
