import pytest

from seqstruct.scoring.hypotheses import check_targets, read_generate, to_text

OUTPUT = """\
S-2\tdrei
T-2\tthree
H-2\t-0.25\tthr@@ ee
D-2\t-0.25\tthr@@ ee
P-2\t-0.1 -0.2
H-0\t-0.5\tone
H-0\t-0.9\ta
D-0\t-0.5\tone
H-1\t-0.5\t
Generate test with beam=4: BLEU4 = 1.0
"""


def test_order_is_restored_and_the_best_is_taken():
    assert read_generate(OUTPUT.splitlines(True), "out", 3) == ["one", "", "thr@@ ee"]


@pytest.mark.parametrize(("text", "expected", "match"), [
    (OUTPUT, 5, r"out: 2 of 5 sentences have no hypothesis \(ids 3, 4\)"),
    (OUTPUT.replace("H-1\t", "X-1\t"), 3, r"1 of 3 .*\(ids 1\)"),
    (OUTPUT, 2, "sentence id 2, expected ids up to 1"),
    (OUTPUT, 0, "out: 3 sentences, but the references are empty"),
    ("one\ntwo\n", 2, "no H- line"),
    (OUTPUT + "H-3\t-0.2", 4, "line 11: expected H-id, score and tokens"),
    (OUTPUT + OUTPUT, 3, "line 13: the hypotheses of sentence 2 do not stand together"),
])
def test_incomplete_output_is_refused(text, expected, match):
    with pytest.raises(ValueError, match=match):
        read_generate(text.splitlines(True), "out", expected)


@pytest.mark.parametrize(("line", "subwords", "language", "text"), [
    ("Two dog@@ s , one b@@ all .", "bpe", "en", "Two dogs, one ball."),
    ("Two dog@@ s , one b@@ all .", "bpe", None, "Two dogs , one ball ."),
    ("\u2581Two \u2581dog s , \u2581one \u2581ball .", "sentencepiece", None, "Two dogs, one ball."),
    ("does n't", "none", None, "does n't"),
    ("a @-@ b", "none", "en", "a-b"),
    ("", "bpe", "en", ""),
])
def test_subwords_become_text(line, subwords, language, text):
    assert to_text([line], subwords, language) == [text]


def test_unknown_subwords_are_refused():
    with pytest.raises(ValueError, match="bpe, sentencepiece, mixed, none"):
        to_text(["a"], "characters")


TARGETS = ["T-1\tein@@ s &apos; zwei\n", "T-0\tgu@@ te <<unk>>\n", "T-2\tdrei , vier\n", "H-0\t-1\tx\n", "T-3\tfünf\n"]
RIGHT = ["Gute Nacht", "Eins' zwei", "Wer ist es? Drei, vier", "FÜNF!"]


def test_targets_that_are_the_references_but_for_their_spaces_and_case():
    check_targets(TARGETS, "out", [RIGHT], "bpe")
    check_targets(TARGETS, "out", [RIGHT[::-1], RIGHT], "bpe")
    check_targets(TARGETS, "out", [[*RIGHT[:3], "sechs"]], "none")
    check_targets(["H-0\t-1\tx\n"], "out", [["y"]], "none")


def test_other_references_are_refused():
    message = r"out: made for other references: its target 1 is .*, the reference 'Gute Nacht' \(2 of 3 differ\)"
    with pytest.raises(ValueError, match=message):
        check_targets(TARGETS, "out", [[RIGHT[1], *RIGHT[:2], RIGHT[3]]], "bpe")
