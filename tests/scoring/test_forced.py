from __future__ import annotations

import math
import re

import pytest
import torch

from seqstruct.data.text.subwords import learn_bpe, learn_sentencepiece
from seqstruct.scoring.forced import TooLong, batches, load_scorer, load_segmentation
from tests.models.front_door import fairseq

pytestmark = pytest.mark.training  # all score by a trained model


@pytest.mark.parametrize("names", [["rnn"], ["transformer"], ["rnn", "other", "transformer"]], ids="-".join)
def test_sums_are_those_of_fairseqs_score_reference(names, models, reversals):
    """Which divides by the length and takes bits."""
    paths = [str(models[name]) for name in names]
    printed = fairseq("generate", reversals / "bin", "--path", ":".join(paths), "--score-reference", "--batch-size", 7)
    scores = {int(i): float(s) for i, s in re.findall(r"^H-(\d+)\t(\S+)", printed, re.MULTILINE)}
    sides = [(reversals / "text" / f"test.{language}").read_text().splitlines() for language in ("de", "en")]
    scorer = load_scorer(paths, cpu=True)
    pairs = [scorer.encode(*pair) for pair in zip(*sides, strict=True)]
    found = scorer.log_probabilities(pairs, max_tokens=30)
    expected = [scores[i] * math.log(2) * len(pair.target) for i, pair in enumerate(pairs)]
    assert found == pytest.approx(expected, rel=1e-5)
    assert scorer.log_probabilities(pairs, max_tokens=10**6) == pytest.approx(found, rel=1e-5)
    assert scorer.log_probabilities([]) == []


def test_an_ensemble_averages_probabilities_of_symbols(models):
    scorers = [load_scorer([models[name]], cpu=True) for name in ("rnn", "other")]
    both = load_scorer([models["rnn"], models["other"]], cpu=True)
    pair = both.encode("ein haus am see", "tag")  # a word, then the end of the sentence
    before = torch.tensor([[2, int(pair.target[0])]])
    with torch.no_grad():
        each = [
            s.models[0](src_tokens=pair.source[None], src_lengths=None, prev_output_tokens=before)[0].softmax(2)[0]
            for s in scorers
        ]
    mean = (each[0] + each[1]) / 2
    expected = sum(math.log(mean[t, int(symbol)]) for t, symbol in enumerate(pair.target))
    assert both.log_probabilities([pair]) == pytest.approx([expected], rel=1e-5)


def test_what_cannot_be_encoded(models):
    scorer = load_scorer([models["rnn"]], cpu=True)
    assert scorer.encode("ein huhn", "am berg").unknown == 2
    with pytest.raises(ValueError, match="the target is empty"):
        scorer.encode("ein", "  ")
    scorer.encode("ein " * 19, "am " * 19)
    with pytest.raises(TooLong, match="the source has 21 symbols with its end, more than the limit of 20"):
        scorer.encode("ein " * 20, "am")


def test_unlike_dictionaries_are_refused(models, stranger, reordered):
    with pytest.raises(ValueError, match="was trained with another source dictionary than the data folder has"):
        load_scorer([models["rnn"], stranger])
    with pytest.raises(ValueError, match="was trained with another source dictionary than the data folder has"):
        load_scorer([models["rnn"]], data=reordered / "bin")
    load_scorer([stranger], data=reordered / "bin")


def test_text_is_cut_into_subwords_first(models, tmp_path):
    learn_bpe(["eine ei haus am am see see"] * 9, tmp_path / "codes", 13)
    segment = load_segmentation(tmp_path / "codes")
    scorer = load_scorer([models["rnn"]], segmentation=tmp_path / "codes", cpu=True)
    cut = segment("ein haus")
    assert cut.split() != ["ein", "haus"]
    pair = scorer.encode("ein haus", "am see")
    assert scorer.source.string(pair.source, unk_string="?").split() == [
        piece if piece in scorer.source.symbols else "?" for piece in cut.split()
    ]
    learn_sentencepiece(["ein haus am see", "am see ein haus ein"] * 9, tmp_path / "pieces", 14)
    assert "".join(load_segmentation(tmp_path / "pieces")("ein see").split()) == "\u2581ein\u2581see"
    (tmp_path / "no").write_text("no model")
    with pytest.raises(ValueError, match="neither codes of subword-nmt nor a SentencePiece model"):
        load_segmentation(tmp_path / "no")


def test_batches_hold_what_they_may():
    lengths = [(7, 2), (1, 1), (3, 9), (2, 2), (1, 1), (30, 1)]
    found = batches(lengths, 18)
    assert sorted(i for batch in found for i in batch) == list(range(6))
    for batch in found:
        assert len(batch) == 1 or len(batch) * max(max(lengths[i]) for i in batch) <= 18
        sources = [lengths[i][0] for i in batch]
        assert sources == sorted(sources, reverse=True), "as fairseq's LSTM packs them"
    assert batches([], 5) == []
