"""COGS: logical forms against a reader of sentences of its own, and what training shows of each held-out case."""

import json
import random
import re
from collections import Counter
from itertools import chain

import pytest

from seqstruct.data.cogs.cases import CASES, DEEPER, PRIMITIVES, derivations, sentences_of
from seqstruct.data.cogs.lexicon import BARE, FORMS, LEMMAS, NAMES, NOUNS, zipf
from seqstruct.data.cogs.meaning import pair
from seqstruct.data.cogs.prepare import sets
from tests.data.scripts import prepare

SETS = sets(1500, 40, 60, 30, 1)
SENTENCES = [pair for split in SETS.values() for pair in split if pair not in PRIMITIVES]
TESTED = {case.name: SETS["gen"][30 * i : 30 * i + 30] for i, case in enumerate(CASES)}
EXPOSED = dict(zip(dict.fromkeys(case.word for case in CASES if case.exposed), SETS["train"][-12:], strict=True))
NOUN_WORDS = {noun for words in NOUNS.values() for noun in words.split()} | {"hedgehog", "cockroach", "shark", "cobra",
                                                                             "hippo"}
PLACES = ("on", "in", "beside")


class Reader:
    """Reads a sentence from left to right by its surface alone: what verb it is, is what stands around it."""

    def __init__(self, sentence):
        *words, stop = sentence.split()
        assert stop == "." and words[0][0].isupper()
        self.words = [words[0].lower() if words[0] in ("A", "The") else words[0], *words[1:]]
        self.at, self.definite, self.facts = 0, [], []
        self.clause()
        assert self.at == len(words)

    def form(self):
        facts = [text for _, _, text in sorted(self.facts, key=lambda fact: fact[:2])]
        return "".join(f"* {noun} ( x _ {i} ) ; " for i, noun in self.definite) + " AND ".join(facts)

    def next(self, *wanted):
        """The next word, taken if it is one of these."""
        if self.at < len(self.words) and self.words[self.at] in wanted:
            self.at += 1
            return self.words[self.at - 1]
        return None

    def noun_phrase(self):
        """A referent, or None where there is no noun phrase; its modifiers nest."""
        article = self.next("a", "the")
        if article is None:
            named = self.at < len(self.words) and self.words[self.at][0].isupper()
            self.at += named
            return self.words[self.at - 1] if named else None
        noun, place = self.words[self.at], self.at
        assert noun in NOUN_WORDS
        self.at += 1
        if article == "the":
            self.definite.append((place, noun))
        else:
            self.facts.append((place, 0, f"{noun} ( x _ {place} )"))
        if preposition := self.next(*PLACES):
            inner = self.noun_phrase()
            self.facts.append((place, 1, f"{noun} . nmod . {preposition} ( x _ {place} , {inner} )"))
        return f"x _ {place}"

    def clause(self):
        """The place of a clause's verb."""
        subject, passive = self.noun_phrase(), self.next("was")
        verb, place = self.words[self.at], self.at
        self.at += 1
        if passive:
            other, goal = self.noun_phrase(), self.next("to") and self.noun_phrase()
            roles = [("recipient", subject), ("theme", other)] if other else [("theme", subject), ("recipient", goal)]
            roles.append(("agent", self.next("by") and self.noun_phrase()))
        elif self.next("that"):
            roles = [("agent", subject), ("ccomp", f"x _ {self.clause()}")]
        elif self.next("to"):
            roles = [("agent", subject), ("xcomp", f"x _ {self.at}")]
            self.facts.append((self.at, 0, f"{self.words[self.at]} . agent ( x _ {self.at} , {subject} )"))
            self.at += 1
        elif (first := self.noun_phrase()) is None:
            changes = verb == "shattered" or any(verb == past for _, past, _ in FORMS["alternating"])
            roles = [("theme" if changes else "agent", subject)]
        elif (second := self.noun_phrase()) is not None:
            roles = [("agent", subject), ("recipient", first), ("theme", second)]
        else:
            roles = [("agent", subject), ("theme", first), ("recipient", self.next("to") and self.noun_phrase())]
        for order, (role, referent) in enumerate(roles):
            if referent:
                self.facts.append((place, order, f"{LEMMAS[verb]} . {role} ( x _ {place} , {referent} )"))
        return place


def test_every_form_is_that_of_the_reader():
    assert len(SENTENCES) == 1500 - 143 + 100 + 30 * 21
    for sentence, form in SENTENCES:
        assert Reader(sentence).form() == form, sentence


@pytest.mark.parametrize(
    ("sentence", "form"),
    [
        ("A rose was helped by a dog .",
         "rose ( x _ 1 ) AND help . theme ( x _ 3 , x _ 1 ) AND help . agent ( x _ 3 , x _ 6 ) AND dog ( x _ 6 )"),
        ("The girl wanted to walk .",
         "* girl ( x _ 1 ) ; want . agent ( x _ 2 , x _ 1 ) AND want . xcomp ( x _ 2 , x _ 4 ) AND walk . agent "
         "( x _ 4 , x _ 1 )"),
        ("Emma said that a cookie was given to Leo .",
         "say . agent ( x _ 1 , Emma ) AND say . ccomp ( x _ 1 , x _ 6 ) AND cookie ( x _ 4 ) AND give . theme "
         "( x _ 6 , x _ 4 ) AND give . recipient ( x _ 6 , Leo )"),
        ("Nora gave the lion a cake on the box .",
         "* lion ( x _ 3 ) ; * box ( x _ 8 ) ; give . agent ( x _ 1 , Nora ) AND give . recipient ( x _ 1 , x _ 3 ) "
         "AND give . theme ( x _ 1 , x _ 5 ) AND cake ( x _ 5 ) AND cake . nmod . on ( x _ 5 , x _ 8 )"),
    ],
)
def test_the_reader_itself_on_forms_written_by_hand(sentence, form):
    assert Reader(sentence).form() == form


@pytest.mark.parametrize(("word", "form"), [
    ("shark", "LAMBDA a . shark ( a )"), ("Paula", "Paula"), ("crawl", "LAMBDA a . LAMBDA e . crawl . agent ( e , a )"),
    ("touch", "LAMBDA a . LAMBDA b . LAMBDA e . touch . agent ( e , b ) AND touch . theme ( e , a )"),
])
def test_words_by_themselves(word, form):
    assert dict(PRIMITIVES)[word] == form and len(PRIMITIVES) == len(dict(PRIMITIVES)) == 143
    assert set(PRIMITIVES) < set(SETS["train"])


def shown(pair, word):
    """How a sentence has a word: the arguments of a verb in their order, or a noun's role with those of its verb."""
    words, form = pair[0].split(), pair[1]
    place = words.index(word) if word in words else None
    relations = re.findall(r"(\w+) \. (\w+) \( x _ (\d+) , (?:x _ )?(\w+) \)", form)
    if LEMMAS.get(word):
        return " ".join(role for _, role, verb, _ in relations if int(verb) == place)
    ((role, verb),) = {(r, v) for _, r, v, other in relations if other in (str(place), word)} - {
        (r, v) for _, r, v, _ in relations for _, s, w, other in relations if s == "xcomp" and other == v}
    return f"{role} of {' '.join(r for _, r, v, _ in relations if v == verb)}"


AGENT = {"agent of agent", "agent of agent theme", "agent of agent xcomp", "agent of agent theme recipient",
         "agent of agent recipient theme"}
THEME = {"theme of agent theme", "theme of agent theme recipient", "theme of agent recipient theme"}
KINDS = {
    "subj_to_obj_common": (AGENT, THEME), "subj_to_obj_proper": (AGENT, THEME),
    "obj_to_subj_common": (THEME, AGENT), "obj_to_subj_proper": (THEME, AGENT),
    "prim_to_subj_common": (None, AGENT), "prim_to_subj_proper": (None, AGENT),
    "prim_to_obj_common": (None, THEME), "prim_to_obj_proper": (None, THEME), "prim_to_inf_arg": (None, {"agent"}),
    "active_to_passive": ({"agent theme"}, {"theme", "theme agent"}), "passive_to_active": ({"theme"}, {"agent theme"}),
    "obj_omitted_transitive_to_transitive": ({"agent"}, {"agent theme"}),
    "unacc_to_transitive": ({"theme"}, {"agent theme"}),
    "do_dative_to_pp_dative": ({"agent recipient theme"}, {"agent theme recipient"}),
    "pp_dative_to_do_dative": ({"agent theme recipient"}, {"agent recipient theme"}),
    "only_seen_as_transitive_subj_as_unacc_subj": ({"agent of agent theme"}, {"theme of theme"}),
    "only_seen_as_unacc_subj_as_obj_omitted_transitive_subj": ({"theme of theme"}, {"agent of agent"}),
    "only_seen_as_unacc_subj_as_unerg_subj": ({"theme of theme"}, {"agent of agent"}),
}


@pytest.mark.parametrize("case", CASES[:18], ids=lambda case: case.name)
def test_training_has_the_word_once_and_as_it_is_not_tested(case):
    exposed, asked = KINDS[case.name]
    forms = {case.word, LEMMAS.get(case.word, case.word)}
    (found,) = [pair for split in ("train", "valid", "test") for pair in SETS[split] if forms & set(pair[0].split())]
    if exposed is None:
        assert found in PRIMITIVES and not case.exposed
    else:
        assert found == EXPOSED[case.word] and shown(found, case.word) in exposed
    assert exposed is None or exposed.isdisjoint(asked)
    found = Counter(shown(pair, case.word) for pair in TESTED[case.name])
    assert set(found) <= asked and (len(asked) == 1 or len(found) > 1)
    verbs = {"only_seen_as_unacc_subj_as_unerg_subj": "unergative",
             "only_seen_as_unacc_subj_as_obj_omitted_transitive_subj": "optional"}
    if kind := verbs.get(case.name):
        assert {sentence.split()[-2] for sentence, _ in TESTED[case.name]} <= {past for _, past, _ in FORMS[kind]}


def nesting(sentence):
    """Clauses inside the sentence; the longest run of modifiers, and whether a subject has one."""
    phrase = rf"(?:(?:a|the) \w+(?: (?:{'|'.join(PLACES)}) (?:a|the) \w+)*|[A-Z]\w*)"
    lower = re.sub("^(A|The) ", lambda match: match[0].lower(), sentence)
    runs = [sum(word in PLACES for word in run.split()) for run in re.findall(phrase, lower)]
    subjects = [re.match(phrase, clause)[0].split() for clause in lower.split(" that ")]
    return lower.split().count("that"), max(runs), any(set(PLACES) & set(subject) for subject in subjects)


def test_structures_that_training_has_and_those_that_are_tested():
    found = {split: [nesting(s) for s, _ in pairs if len(s.split()) > 1] for split, pairs in SETS.items()}
    common = [one for split in ("train", "valid", "test") for one in found[split]]
    assert {clauses for clauses, _, _ in common} == {runs for _, runs, _ in common} == {0, 1, 2}
    assert not any(subject for _, _, subject in common)
    cases = {name: [nesting(sentence) for sentence, _ in pairs] for name, pairs in TESTED.items()}
    assert all(subject and max(c, r) <= 2 for c, r, subject in cases["obj_pp_to_subj_pp"])
    assert Counter(runs for _, runs, _ in cases["pp_recursion"]) == dict.fromkeys(DEEPER, 3)
    assert Counter(clauses for clauses, _, _ in cases["cp_recursion"]) == dict.fromkeys(DEEPER, 3)
    assert not any(subject for name in ("pp_recursion", "cp_recursion") for _, _, subject in cases[name])
    assert max(clauses for clauses, _, _ in cases["pp_recursion"]) <= 2 >= max(r for _, r, _ in cases["cp_recursion"])
    assert max(max(c, r) for case in CASES[:18] for c, r, _ in cases[case.name]) <= 2
    assert len(sentences_of(CASES[-1], 13, random.Random(1))) == 13


def test_no_sentence_is_there_twice_and_seeds_count():
    sources = [sentence for split in ("train", "valid", "test") for sentence, _ in SETS[split]]
    assert len(sources) == len(set(sources)) and all(len(set(pairs)) == 30 for pairs in TESTED.values())
    assert set(sources).isdisjoint(sentence for sentence, _ in SETS["gen"])
    small = sets(160, 5, 7, 1, 3)
    assert small == sets(160, 5, 7, 1, 3) != sets(160, 5, 7, 1, 4)
    larger = sets(200, 13, 7, 1, 3)
    assert (larger["test"], larger["gen"]) == (small["test"], small["gen"]) and larger["valid"][:5] == small["valid"]


def test_the_lexicon():
    verbs = set(LEMMAS) | set(BARE.split())
    assert verbs.isdisjoint(NOUN_WORDS) and not any(noun[0] in "aeiou" for noun in NOUN_WORDS)
    assert set(BARE.split()) <= {lemma for name in ("optional", "unergative") for lemma, *_ in FORMS[name]}
    lists = [words.split() for words in (*NOUNS.values(), NAMES, BARE)] + [[v[0] for v in vs] for vs in FORMS.values()]
    assert all(len(words) == len(set(words)) for words in lists)
    assert [len(words) for words in lists] == [100, 100, 50, 50, 50, 100, *[20] * 8]
    lemmas = {form: {v[0] for vs in FORMS.values() for v in vs if form in v} for form in LEMMAS}
    assert all(len(each) <= 1 for each in lemmas.values())
    assert {case.word for case in CASES}.isdisjoint(chain(*lists))
    assert (LEMMAS["tried"], LEMMAS["given"], LEMMAS["hugged"], LEMMAS["read"]) == ("try", "give", "hug", "read")


def test_sentences_come_as_often_as_the_grammar_says():
    generator, source, draws = random.Random(1), derivations(), 3000
    emma = zipf(100)[0]
    shares = {"that": 0.07742, "passive": 0.375 + 0.075, "Emma": 0.41258 / 2 * emma + 0.06 / 4 * emma}
    counts = Counter()
    for _ in range(draws):
        words = pair(source.sample(generator))[0].split()
        kind = "that" if "that" in words else "passive" if "was" in words else words[0]
        counts[kind] += 1
    for name, share in shares.items():
        assert counts[name] / draws == pytest.approx(share, abs=4 * (share * (1 - share) / draws) ** 0.5), name
    assert sum(zipf(13)) == pytest.approx(1, abs=1e-12) and zipf(13) == sorted(zipf(13), reverse=True)
    assert zipf(5)[0] - zipf(5)[2] == pytest.approx((1 - 3**-1.4) / sum(n**-1.4 for n in range(1, 10**6)), rel=5e-3)


def test_from_the_command_line_to_the_task_and_its_baseline(tmp_path, capsys):
    out = tmp_path / "cogs"
    assert prepare("cogs", "--train", 400, "--valid", 7, "--test", 13, "--gen-per-case", 5, "--out", out) == 0
    assert "400 train, 7 valid, 13 test, 105 gen; 155 of" in " ".join(capsys.readouterr().out.split())
    assert json.loads((out / "meta.json").read_text())["counts"] == {"train": 400, "valid": 7, "test": 13, "gen": 105}
    read = {name: (out / "raw" / name).read_text().splitlines() for name in ("gen.sentence", "gen.form", "gen.case")}
    assert list(zip(read["gen.sentence"], read["gen.form"], strict=True)) == sets(400, 7, 13, 5, 1)["gen"]
    assert read["gen.case"] == [case.group for case in CASES for _ in range(5)]
    assert Counter(group.split("/")[0] for group in read["gen.case"]) == {"lexical": 90, "structural": 15}
    from fairseq.data import Dictionary, data_utils

    dictionary = Dictionary.load(str(out / "bin" / "dict.form.txt"))
    found = data_utils.load_indexed_dataset(str(out / "bin" / "test1.sentence-form.form"), dictionary)
    assert [dictionary.string(line) for line in found] == read["gen.form"]  # no unknown places of long sentences either
    from seqstruct.scoring.named_baselines import measure

    names = ("validation_exact_match", "test_exact_match", "gen_exact_match")
    assert {m.metric: m.value for m in measure("constant", out)} == dict.fromkeys(names, 0.0)
    forms = [str(out / "raw" / "gen.form")] * 2
    from seqstruct.cli import main

    assert main(["score", "--hypotheses", forms[0], "--references", forms[1], "--groups", str(out / "raw" / "gen.case"),
                 "--metrics", "exact_match"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == ["lexical, mean of 18: exact_match 100.00",
                                                         "structural, mean of 3: exact_match 100.00"]


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--train", "155"], "train is at least 156, not 155"), (["--valid", "0"], "valid is at least 1, not 0"),
     (["--gen-per-case", "5001"], "gen-per-case is at most 5,000, not 5,001"), (["--seed", "-1"], "seed is at least 0"),
     (["--test", "many"], "invalid int value")],
)
def test_wrong_options(options, message, tmp_path, refused):
    assert message in refused("prepare", "cogs", *options, "--out", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
