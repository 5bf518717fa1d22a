from __future__ import annotations

import math

import pytest

from seqstruct.cli import main
from seqstruct.scoring.forced import load_scorer
from seqstruct.scoring.nbest import read_generate, read_moses, rescore
from tests.models.front_door import fairseq

pytestmark = pytest.mark.training  # all score by a trained model

MOSES = [
    "0 ||| haus ein ||| LM0= -3 WordPenalty0= -2 ||| -1.5",
    "0 ||| ein haus ||| LM0= -4 WordPenalty0= -2 ||| -2.5 ||| 0-1",
    "0 ||| am am am ||| LM0= -4 ||| -2.75",
    "1 ||| tag ||| LM0= -1 ||| -0.5",
    "1 ||| und tag und ||| LM0= -1 ||| -0.75",
]
SOURCE = ["ein haus", "tag und"]


@pytest.fixture(scope="module")
def scorer(models):
    return load_scorer([models["rnn"], models["other"]], cpu=True)


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("window", [1, 100])
def test_the_weighted_mean_orders_the_list(weight, window, scorer):
    sentences = rescore(read_moses(MOSES, "n"), scorer, "n", dict(enumerate(SOURCE)), weight, window=window)
    found = {s.id: s.hypotheses for s in sentences}
    for number, source in enumerate(SOURCE):
        lines = [line.split(" ||| ") for line in MOSES if line.startswith(str(number))]
        log_p = scorer.log_probabilities([scorer.encode(source, line[1]) for line in lines])
        total = [(1 - weight) * float(line[3]) + weight * p for line, p in zip(lines, log_p, strict=True)]
        order = sorted(range(len(lines)), key=lambda i: -total[i])
        assert [h.text for h in found[number]] == [lines[i][1] for i in order]
        assert [h.score for h in found[number]] == pytest.approx([total[i] for i in order], rel=1e-5)
        assert [h.features for h in found[number]] == [f"{lines[i][2]} Neural0= {log_p[i]:.6g}" for i in order]


def test_fairseqs_output_is_an_nbest_list(models, reversals, tmp_path, capsys):
    """Rescored by the model that made it, s is log P."""
    printed = fairseq(
        "generate", reversals / "bin", "--path", models["rnn"], "--beam", 4, "--nbest", 4, "--batch-size", 7,
        "--max-len-b", 8, "--results-path", tmp_path,
    )
    assert "H-0" not in printed
    output = tmp_path / "generate-test.txt"
    scorer = load_scorer([models["rnn"]], cpu=True)
    sentences = list(read_generate(output.read_text().splitlines(), "g"))
    assert sorted(s.id for s in sentences) == list(range(60))
    (sentence, *_) = rescore(sentences[:1], scorer, "g", weight=1.0)
    before = {h.text: h.score for h in sentences[0].hypotheses}
    assert len(sentence.hypotheses) == 4
    for hypothesis in sentence.hypotheses:
        assert hypothesis.score == pytest.approx(before[hypothesis.text], abs=2e-3)
    best, nbest = tmp_path / "best", tmp_path / "list"
    assert main(["rescore", "--from-generate", str(output), "--checkpoint", str(models["transformer"]), "--cpu",
                 "--out", str(best), "--out-nbest", str(nbest)]) == 0
    assert capsys.readouterr().out == "60 sentences rescored\n"
    again = {s.id: s.hypotheses for s in read_moses(nbest.read_text().splitlines(), "l")}
    assert best.read_text().splitlines() == [again[i][0].text for i in range(60)]
    for hypotheses in again.values():
        assert len(hypotheses) == 4
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)
        own, other = (float(x) for x in hypotheses[0].features.split()[1::2])
        assert hypotheses[0].score == pytest.approx((own + other) / 2, abs=1e-4)


@pytest.mark.parametrize(("lines", "message"), [
    (["0 ||| a ||| x"], "n: line 1: expected id ||| hypothesis ||| features ||| score"),
    ([*MOSES[:1], "zero ||| a ||| x ||| 1"], "n: line 2: expected id"),
    (["0 ||| a ||| x ||| one"], "n: line 1: expected a number, got 'one'"),
    ([*MOSES[:1], "0 ||| a ||| x ||| nan"], "n: line 2: expected a finite number, got 'nan'"),
    ([*MOSES, MOSES[0]], "n: the hypotheses of sentence 0 do not stand together"),
    ([*MOSES, "2 ||| a ||| x ||| 1"], "n: sentence 2 has no source sentence"),
    ([*MOSES, "1 |||  ||| x ||| 1"], "n: line 6: the target is empty"),
    ([*MOSES, f"1 ||| {'a ' * 30} ||| x ||| 1"], "n: line 6: the target has 31 symbols"),
    (MOSES[:3], "n: 1 of 2 sentences have no hypothesis (ids 1)"),
    ([], "n: no hypotheses"),
])
def test_bad_lists_are_one_sentence_and_leave_nothing(lines, message, models, tmp_path, refused, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "n").write_text("".join(line + "\n" for line in lines))
    (tmp_path / "s").write_text("".join(line + "\n" for line in SOURCE))
    command = ["rescore", "--nbest", "n", "--source", "s", "--checkpoint", str(models["rnn"]), "--cpu"]
    assert message in refused(*command, "--out", "o", "--out-nbest", "p")
    assert {path.name for path in tmp_path.iterdir()} == {"n", "s"}


@pytest.mark.parametrize(("lines", "message"), [
    (["H-0\t-1\ta"], "line 1: H-0 does not follow its sentence"),
    (["S-0\tx", "H-1\t-1\ta"], "line 2: H-1 does not follow its sentence"),
    (["S-0\tx", "P-0\t-1"], "line 2: P-0 does not follow its sentence"),
    (["S-0\tx", "H-0\ta"], "line 2: expected H-id and its fields"),
    (["S-0\tx", "H-0\t-1\ta", "P-0\t-1 x"], "line 3: expected a number, got 'x'"),
    (["S-0\tx", "H-0\t-1\ta", "P-0\t-1 -inf"], "line 3: expected a finite number, got '-inf'"),
    (["S-0\tx", "H-0\t-1\ta", "P-0\t"], "line 3: expected a number, got ''"),
    (["S-0\tx", "H-0\t-1\ta", "H-0\t-2\tb", "P-0\t-2"], "line 3: expected P-0"),
    (["S-0\tx", "H-0\t-1\ta", "S-1\ty"], "line 3: expected P-0"),
    (["S-0\tx", "H-0\t-1\ta", "P-0\t-1", "H-0\t-2\tb"], "g: truncated: its last line H- has no P-0"),
])
def test_bad_output_of_generate(lines, message):
    with pytest.raises(ValueError, match=message):
        list(read_generate(lines, "g"))


def test_scores_of_generate_are_turned_into_nats():
    (sentence,) = read_generate(["S-3\tx y", "T-3\tz", "H-3\t-0.75\ta", "D-3\t-0.75\ta", "P-3\t-1.0 -0.5"], "g")
    assert (sentence.id, sentence.source, sentence.hypotheses[0].text) == (3, "x y", "a")
    assert sentence.hypotheses[0].score == pytest.approx(-1.5 * math.log(2))


def test_options_that_do_not_go_together(models, capsys, refused):
    checkpoint = ["--checkpoint", str(models["rnn"])]
    assert "expected --out, --out-nbest or both" in refused("rescore", "--nbest", "n", "--source", "s", *checkpoint)
    assert "expected --source with it" in refused("rescore", "--nbest", "n", "--out", "o", *checkpoint)
    assert main(["rescore", "--nbest", "n", "--source", "s", "--out", "o", "--out-nbest", "./o", *checkpoint]) == 1
    assert "expected two files, got o as --out and ./o as --out-nbest" in capsys.readouterr().err


def test_a_weight_outside_of_its_range(scorer):
    with pytest.raises(ValueError, match="between 0 and 1, got 2"):
        list(rescore(read_moses(MOSES, "n"), scorer, "n", dict(enumerate(SOURCE)), 2))
