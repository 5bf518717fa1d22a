import random
from statistics import NormalDist

import pytest
from sacrebleu.metrics import BLEU, CHRF, TER

from seqstruct.data.text.subwords import moses_tokenizer
from seqstruct.scoring.gleu import ngrams, sentence_gleu
from seqstruct.scoring.translation import METRICS, compare, score, score_by_group, score_by_length

WORDS = "the a man dog snow street plays runs in on with red two small ball tree".split()


def sentences(seed, count=41, length=9):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=length)) + "." for _ in range(count)]


def noisy(lines, share, seed):
    rng = random.Random(seed)
    return [" ".join(rng.choice(WORDS) if rng.random() < share else w for w in line.split()) for line in lines]


REFERENCE = sentences(1)
GOOD, BAD = noisy(REFERENCE, 0.1, 2), noisy(REFERENCE, 0.4, 3)


@pytest.mark.parametrize("references", [[REFERENCE], [REFERENCE, noisy(REFERENCE, 0.2, 4)]])
def test_the_numbers_are_sacrebleus(references):
    bleu, chrf = score(GOOD, references)
    assert (bleu.metric, chrf.metric) == ("bleu", "chrf")
    assert bleu.value == BLEU().corpus_score(GOOD, references).score
    assert chrf.value == CHRF().corpus_score(GOOD, references).score
    assert bleu.signature.startswith(f"nrefs:{len(references)}|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert "|nc:6|nw:0|" in chrf.signature


def test_the_reference_scores_100_and_an_empty_system_0():
    assert score(REFERENCE, [REFERENCE])[0].value == pytest.approx(100, abs=1e-9)
    assert score([""] * 41, [REFERENCE])[0].value == 0


def test_case_and_tokeniser_are_in_the_signature():
    upper = [line.upper() for line in REFERENCE]
    assert score(upper, [REFERENCE], ["bleu"])[0].value < 10
    found = score(upper, [REFERENCE], ["bleu"], lowercase=True, tokenize="char")[0]
    assert found.value == pytest.approx(100, abs=1e-9)
    assert "case:lc" in found.signature
    assert "tok:char" in found.signature


def test_bootstrap_tells_a_better_system_from_an_equal_one():
    bleu, chrf = compare(GOOD, BAD, [REFERENCE], resamples=200)
    assert bleu.value == BLEU().corpus_score(GOOD, [REFERENCE]).score
    assert bleu.baseline == BLEU().corpus_score(BAD, [REFERENCE]).score
    assert chrf.value == CHRF().corpus_score(GOOD, [REFERENCE]).score
    assert bleu.p_value < 0.01
    assert bleu.interval > 0
    assert "bs:200|seed:12345" in bleu.signature
    assert compare(GOOD, BAD, [REFERENCE], resamples=200) == [bleu, chrf]
    equal = compare(GOOD, GOOD, [REFERENCE], ["chrf"], resamples=200)
    assert [c.metric for c in equal] == ["chrf"]
    assert equal[0].value == equal[0].baseline
    assert equal[0].p_value == 1


def test_the_p_value_of_the_bootstrap_is_of_one_side():
    better, worse = 440, 380  # sentences that one of two systems has right and the other has not
    ours, theirs = ["a"] * better + ["b"] * worse, ["b"] * better + ["a"] * worse
    (found,) = compare(ours, theirs, [["a"] * (better + worse)], ["exact_match"], resamples=4000)
    one_side = NormalDist().cdf(-(better - worse) / (better + worse) ** 0.5)
    assert found.p_value == pytest.approx(one_side, rel=0.25) and one_side < 0.025 < 2 * one_side


def test_systems_that_differ_where_the_metric_does_not_look_are_equal():
    cased = [line.upper() for line in GOOD]
    found = compare(GOOD, cased, [REFERENCE], ["bleu", "chrf"], lowercase=True, resamples=50)
    found += compare(["a", "x"], ["a", "y"], [["a", "b"]], ["exact_match"], resamples=50)
    assert [c.value - c.baseline for c in found] == [0.0, 0.0, 0.0]
    assert [c.p_value for c in found] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(("arguments", "match"), [
    ((GOOD[:-1], [REFERENCE]), "40 lines, but reference 1 has 41"),
    ((GOOD, [REFERENCE, REFERENCE[:3]]), "41 lines, but reference 2 has 3"),
    (([], [[]]), "references"), ((GOOD, []), "references"),
    ((GOOD, [REFERENCE], ["meteor"]), "bleu, chrf"), ((GOOD, [REFERENCE], []), "bleu, chrf"),
    ((GOOD, [REFERENCE], ["bleu"], False, "moses"), "13a"), ((GOOD, [REFERENCE], ["gleu"], False, "moses"), "13a"),
    ((GOOD, [REFERENCE], ["tokenized_bleu"]), "tokenized_bleu: expected the language"),
])
def test_bad_calls_are_refused(arguments, match):
    with pytest.raises(ValueError, match=match):
        score(*arguments)


def test_a_tokeniser_whose_package_is_missing_is_refused(monkeypatch):
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ja_mecab.MeCab", None)
    with pytest.raises(ValueError, match="tokenize: ja-mecab: Japanese tokenization requires extra .*sacrebleu"):
        score(GOOD, [REFERENCE], ["bleu"], tokenize="ja-mecab")


def test_bad_comparisons_are_refused():
    with pytest.raises(ValueError, match="baseline: 40 lines"):
        compare(GOOD, BAD[:-1], [REFERENCE])
    with pytest.raises(ValueError, match="resamples"):
        compare(GOOD, BAD, [REFERENCE], resamples=0)


def test_edit_rate_is_sacrebleus_and_minds_case_unless_told():
    found = score(GOOD, [REFERENCE], ["ter"])[0]
    assert found.value == TER(case_sensitive=True).corpus_score(GOOD, [REFERENCE]).score
    assert "case:mixed" in found.signature
    assert found.details.endswith("edits for 369 words)")
    upper = [line.upper() for line in REFERENCE]
    assert score(upper, [REFERENCE], ["ter"], lowercase=True)[0].value == 0
    assert score(upper, [REFERENCE], ["ter"])[0].value > 50


@pytest.mark.parametrize("lowercase", [False, True])
def test_tokenized_bleu_is_bleu_of_moses_tokens(lowercase):
    cut = moses_tokenizer("en")
    hypotheses, reference = (
        [line.capitalize().replace("red", "don't") for line in lines] for lines in (BAD, REFERENCE)
    )
    tokens = [[cut(line).lower() if lowercase else cut(line) for line in lines] for lines in (hypotheses, reference)]
    found = score(hypotheses, [reference], ["tokenized_bleu"], lowercase, language="en")[0]
    plain = BLEU(tokenize="none", smooth_method="none", force=True).corpus_score(tokens[0], [tokens[1]])
    assert found.value == plain.score
    assert f"case:{'lc' if lowercase else 'mixed'}|eff:no|tok:moses-en|smooth:none" in found.signature
    assert score(["a b"], [["a b"]], ["tokenized_bleu"], language="en")[0].value == 0


def test_exact_matches_are_of_words_against_any_reference():
    references = [["a b", "c", "d e", "f"], ["x", "C", "d e f", "g"]]
    found = score(["a  b ", "c", "d", "g"], references, ["exact_match"])[0]
    assert (found.value, found.details) == (75.0, "")
    assert score(["A b", "c", "d", ""], references, ["exact_match"])[0].value == 25.0
    assert score(["A b", "c", "d", ""], references, ["exact_match"], lowercase=True)[0].value == 50.0
    one, other = (compare(["a b"] * n + [""] * (9 - n), ["a b"] * 2 + [""] * 7, [["a b"] * 9], ["exact_match"],
                          resamples=200)[0] for n in (9, 2))
    assert one.value == 100 and one.baseline == pytest.approx(200 / 9) and one.p_value < 0.05
    assert other.p_value == 1


def test_gleu_of_a_corpus_sums_before_it_divides_over_sacrebleus_tokens():
    cut = BLEU().tokenizer
    hypotheses, reference = ([cut(line).split() for line in lines] for lines in (GOOD, REFERENCE))
    found = score(GOOD, [REFERENCE], ["gleu"])[0]
    pairs = [(ngrams(ours), ngrams(theirs)) for ours, theirs in zip(hypotheses, reference, strict=True)]
    matches, longest = (sum(of(*pair) for pair in pairs) for of in (
        lambda ours, theirs: (ours & theirs).total(), lambda ours, theirs: max(ours.total(), theirs.total())
    ))
    assert found.value == pytest.approx(100 * matches / longest, abs=1e-12)
    assert found.signature.startswith("nrefs:1|case:mixed|tok:13a|version:")
    several = score(["a b c"], [["a x y"], ["a b z"]], ["gleu"])[0]
    assert several.value == pytest.approx(100 * sentence_gleu(["a", "b", "c"], ["a", "b", "z"]))


def test_every_metric_goes_through_the_bootstrap():
    found = compare(GOOD, BAD, [REFERENCE], METRICS, resamples=50, language="en")
    assert [c.metric for c in found] == list(METRICS)
    assert [c.value for c in found] == [s.value for s in score(GOOD, [REFERENCE], METRICS, language="en")]
    assert all(c.p_value < 0.05 for c in found)
    assert found[2].value < found[2].baseline


def test_scores_by_length_are_those_of_the_groups():
    lengths = [i % 7 for i in range(41)]
    groups = score_by_length(GOOD, [REFERENCE], lengths, [2, 3, 9], ["bleu"])
    assert [(g.least, g.most) for g in groups] == [(0, 2), (3, 3), (4, 9), (10, None)]
    assert sum(g.sentences for g in groups) == 41
    for group in groups[:3]:
        chosen = [i for i in range(41) if group.least <= lengths[i] <= group.most]
        expected = BLEU().corpus_score([GOOD[i] for i in chosen], [[REFERENCE[i] for i in chosen]]).score
        assert [s.value for s in group.scores] == [expected]
    assert (groups[3].sentences, groups[3].scores) == (0, [])


def test_scores_by_group_are_those_of_its_sentences_and_means_those_of_groups():
    names = [("k/a", "k/b", "alone")[i % 3] for i in range(41)]
    *groups, mean = score_by_group(GOOD, [REFERENCE], names, ["bleu"])
    assert [(g.name, g.groups) for g in groups] == [("k/a", 1), ("k/b", 1), ("alone", 1)]
    for start, group in enumerate(groups):
        expected = BLEU().corpus_score(GOOD[start::3], [REFERENCE[start::3]]).score
        assert (group.sentences, group.values) == (len(GOOD[start::3]), {"bleu": expected})
    assert (mean.name, mean.groups, mean.sentences) == ("k", 2, groups[0].sentences + groups[1].sentences)
    assert mean.values["bleu"] == pytest.approx((groups[0].values["bleu"] + groups[1].values["bleu"]) / 2, rel=1e-12)
    with pytest.raises(ValueError, match="groups: expected 41"):
        score_by_group(GOOD, [REFERENCE], ["k"])


@pytest.mark.parametrize("edges", [[], [0, 3], [3, 3], [5, 2]])
def test_bad_edges_are_refused(edges):
    with pytest.raises(ValueError, match="edges: expected ascending"):
        score_by_length(GOOD, [REFERENCE], [1] * 41, edges)
    with pytest.raises(ValueError, match="lengths: expected 41"):
        score_by_length(GOOD, [REFERENCE], [1], [5])
