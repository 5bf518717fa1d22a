import random

import pytest
from sacrebleu.metrics import BLEU, CHRF

from seqstruct.scoring.translation import compare, score

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


@pytest.mark.parametrize(("arguments", "match"), [
    ((GOOD[:-1], [REFERENCE]), "40 lines, but reference 1 has 41"),
    ((GOOD, [REFERENCE, REFERENCE[:3]]), "41 lines, but reference 2 has 3"),
    (([], [[]]), "references"), ((GOOD, []), "references"),
    ((GOOD, [REFERENCE], ["ter"]), "bleu, chrf"), ((GOOD, [REFERENCE], []), "bleu, chrf"),
    ((GOOD, [REFERENCE], ["bleu"], False, "moses"), "13a"),
])
def test_bad_calls_are_refused(arguments, match):
    with pytest.raises(ValueError, match=match):
        score(*arguments)


def test_bad_comparisons_are_refused():
    with pytest.raises(ValueError, match="baseline: 40 lines"):
        compare(GOOD, BAD[:-1], [REFERENCE])
    with pytest.raises(ValueError, match="resamples"):
        compare(GOOD, BAD, [REFERENCE], resamples=0)
