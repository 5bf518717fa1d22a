"""Question formation and tense reinflection: targets against a parser of the tests' own, what training leaves open and
gen does not, how often each construction comes, and the folder."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from dataclasses import replace

import pytest
from scipy.stats import binomtest, chisquare

from seqstruct.data.transformations import grammar
from seqstruct.data.transformations.folder import (
    SPLITS,
    PairsRequest,
    draw,
    read_meta,
    read_split,
    write_folder,
)
from seqstruct.data.transformations.grammar import TRANSFORMATIONS, agree_recent, move_first
from tests.data.scripts import prepare
from tests.data.transformations.parser import AGREES, NUMBER, parse, question

NAMES = list(TRANSFORMATIONS)
CUES = {"question-formation": ("decl", "quest"), "tense-reinflection": ("past", "present")}
SMALL = {"train": 1500, "valid": 101, "test": 503, "gen": 307}


@pytest.fixture(scope="module")
def drawn():
    """By transformation the pairs of each split."""
    return {name: draw(PairsRequest(name, **SMALL)) for name in NAMES}


def parsed(name, pair):
    """The cue's place among both, and the sentence's structure; source and target have their ends."""
    *words, stop, cue = pair.source
    assert stop == "."
    return CUES[name].index(cue), parse(words, name == "question-formation")


@pytest.mark.parametrize("name", NAMES)
def test_every_target_is_what_a_parser_derives(name, drawn):
    for split, pairs in drawn[name].items():
        assert len(pairs) == SMALL[split]
        for pair in pairs:
            change, clause = parsed(name, pair)
            right = question(clause) if name == "question-formation" else [*clause.text, "."]
            assert pair.target == (right if change else pair.source[:-1]), pair


@pytest.mark.parametrize("name", NAMES)
def test_training_leaves_the_rule_open_and_gen_does_not(name, drawn):
    kept = Counter()
    for split, pairs in drawn[name].items():
        for pair in pairs:
            change, clause = parsed(name, pair)
            words = pair.source[:-2]
            if name == "question-formation":
                clear = clause.subject.kind not in ("plain", "preposition")
                first = next(word for word in words if word in AGREES)
                assert split != "gen" or (clear and first != pair.target[0])
                assert clear or pair.target[0] == first or not change
            else:
                before = [word for word in words[: clause.place] if word in NUMBER]
                clear = NUMBER[before[-1]] != clause.subject.head
                both = zip(agree_recent(words), [*clause.text, "."], strict=True)
                differing = [place for place, (linear, right) in enumerate(both) if linear != right]
                assert differing == [clause.place] * clear, "no verb but the main one has a noun between"
            assert not change or clear == (split == "gen"), (split, pair)
            assert change or split != "gen"
            kept[split, clear] += not change
    assert kept["train", True] > 100, "sentences that would tell are repeated in training"


@pytest.mark.parametrize("name", NAMES)
def test_no_source_is_in_two_splits(name, drawn):
    sources = {split: {tuple(pair.source) for pair in pairs} for split, pairs in drawn[name].items()}
    for one, other in itertools.combinations(SPLITS, 2):
        assert not sources[one] & sources[other], (one, other)


def shapes(auxiliaries):
    """Tags of all sentences with their probabilities, multiplied out by hand."""
    verb = "av" if auxiliaries else "v"
    third = 1 / 3
    phrases = {"dn": third, "dnpdn": third, "dnr" + verb: third * third, "dnrdn" + verb: third * third,
               "dnr" + verb + "dn": third * third}
    found = {}
    for subject, p in phrases.items():
        found[subject + verb] = p / 2
        for other, q in phrases.items():
            found[subject + verb + other] = p * q / 2
    assert sum(found.values()) == pytest.approx(1) and len(found) == 30
    return found


@pytest.mark.parametrize("name", NAMES)
def test_constructions_come_as_often_as_the_grammar_says(name):
    generator, rule, count = random.Random(11), TRANSFORMATIONS[name], 12_000
    expected, found, words = shapes(name == "question-formation"), Counter(), Counter()
    for _ in range(count):
        sentence = rule.sample(generator)
        clause = parse(rule.given(sentence), name == "question-formation")
        assert (clause.place, clause.text) == (sentence.main, sentence.words)
        found[clause.tags] += 1
        words.update(sentence.words)
    assert set(found) <= set(expected)
    assert chisquare([found[tags] for tags in expected], [count * p for p in expected.values()]).pvalue > 1e-3
    for alike in (grammar.DETERMINERS, grammar.PREPOSITIONS, grammar.RELATIVES, sorted(NUMBER)):
        assert chisquare([words[word] for word in alike]).pvalue > 1e-3, alike


@pytest.mark.parametrize("name", NAMES)
def test_half_is_rewritten_and_the_rest_follows_the_grammar(name, drawn):
    pairs = drawn[name]["test"] + drawn[name]["train"]
    clauses = [parsed(name, pair) for pair in pairs]
    changed = [clause for change, clause in clauses if change]
    assert binomtest(len(changed), len(pairs)).pvalue > 1e-3
    kinds = Counter(clause.subject.kind for clause in changed)
    # of the phrases that do not tell: plain 3/9, a preposition 3/9 or half of that, relative clauses by their last noun
    weights = {"plain": 6, "preposition": 6} if name == "question-formation" else {
        "plain": 6, "preposition": 3, "alone": 2, "object": 1, "subject": 1}
    assert set(kinds) == set(weights)
    expected = [len(changed) * weight / sum(weights.values()) for weight in weights.values()]
    assert chisquare([kinds[kind] for kind in weights], expected).pvalue > 1e-3
    kept = Counter(clause.subject.kind for change, clause in clauses if not change)
    shares = {"plain": 3, "preposition": 3, "alone": 1, "object": 1, "subject": 1}
    expected = [kept.total() * share / 9 for share in shares.values()]
    assert chisquare([kept[kind] for kind in shares], expected).pvalue > 1e-3


def test_linear_rules():
    words = "the pilot that does laugh doesn't wait".split()
    assert move_first(words) == "does the pilot that laugh doesn't wait ?".split()
    assert agree_recent("the pilots by the nurse that waited thanked my judges".split()) == (
        "the pilots by the nurse that waits thanks my judges .".split())


@pytest.mark.parametrize("name", NAMES)
def test_the_dictionary_has_the_words_that_there_are(name, drawn):
    found = {word for pairs in drawn[name].values() for pair in pairs for word in pair.source + pair.target}
    assert sorted(found) == TRANSFORMATIONS[name].words
    assert len(found) == {"question-formation": 68, "tense-reinflection": 99}[name]


@pytest.mark.parametrize("name", NAMES)
def test_seeds_decide_all(name, drawn):
    request = PairsRequest(name, **SMALL)
    assert draw(request) == drawn[name]
    other = draw(replace(request, seed=2, train=700))
    assert other["test"] == drawn[name]["test"] and other["gen"] == drawn[name]["gen"]
    assert other["valid"] != drawn[name]["valid"] and other["train"][:50] != drawn[name]["train"][:50]
    more = draw(replace(request, train=1700))
    assert more["train"][:1500] == drawn[name]["train"] and more["valid"] == drawn[name]["valid"]
    assert draw(replace(request, test_seed=1))["gen"] != drawn[name]["gen"]


@pytest.mark.parametrize("setting", ["language-model", "translation"])
def test_a_folder_is_read_as_it_was_drawn(setting, tmp_path):
    from fairseq.data import Dictionary, data_utils

    request = PairsRequest("tense-reinflection", setting, 300, 7, 13, 5, seed=3)
    write_folder(request, tmp_path / "out")
    meta, splits = read_meta(tmp_path / "out"), draw(request)
    for split in SPLITS:
        assert read_split(tmp_path / "out", split, meta) == splits[split]
    alone = setting == "language-model"
    dictionary = Dictionary.load(str(tmp_path / "out" / "bin" / ("dict.txt" if alone else "dict.source.txt")))
    for split, name in {"test": "test", "gen": "test1"}.items():
        for side in range(2):
            end = "" if alone else f".source-target.{('source', 'target')[side]}"
            dataset = data_utils.load_indexed_dataset(str(tmp_path / "out" / "bin" / (name + end)), dictionary)
            lines = [pair.source + pair.target if alone else pair[side] for pair in splits[split]]
            assert [dictionary.string(item).split() for item in dataset] == lines
    with pytest.raises(ValueError, match="has no split 'dev'; there are: train, valid, test, gen"):
        read_split(tmp_path / "out", "dev", meta)
    (tmp_path / "out" / "text" / "gen.target").write_text("do\n")
    with pytest.raises(ValueError, match="truncated or altered"):
        read_split(tmp_path / "out", "gen", meta)
    described = json.loads((tmp_path / "out" / "meta.json").read_text())
    (tmp_path / "out" / "meta.json").write_text(json.dumps({**described, "transformation": "passive"}))
    with pytest.raises(ValueError, match="expected one of question-formation, tense-reinflection, got 'passive'"):
        read_meta(tmp_path / "out")


def test_by_the_command(tmp_path, capsys):
    sizes = ["--train", 50, "--valid", 5, "--test", 7, "--gen", 3]
    assert prepare("question_formation", *sizes, "--out", tmp_path / "out") == 0
    said = "question-formation for a language model, 50 train, 5 valid, 7 test, 3 gen"
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(("given", "said"), [
    (["--train", 0], "train is at least 1, not 0"), (["--gen", -1], "gen is at least 1, not -1"),
    (["--seed", -1], "seed is at least 0, not -1"), (["--test-seed", -2], "test-seed is at least 0, not -2"),
    (["--test", 1_000_001], "test is at most 1,000,000, not 1,000,001"),
])
def test_bad_numbers_are_one_sentence_and_leave_nothing(given, said, tmp_path, refused):
    assert said in refused("prepare", "question-formation", *given, "--out", tmp_path / "out")
    assert not list(tmp_path.iterdir())
