"""What docs/reproduction/nmt_lectures.md says of subwords, words and characters is what the records carry."""

from __future__ import annotations

import pytest

from seqstruct.harness.paper import read_tables
from tests.recipes.test_findings import RECIPES, finding, lines


def test_ways_to_cut_words_are_told_as_recorded():
    item = finding("nmt_lectures", "*Corpus statistics")
    found = {(line.row, line.metric): line.mean for line in lines("nmt_lectures", "bpe-statistics-stand-in")}
    (paper,) = [table for table in read_tables(RECIPES / "nmt_lectures") if table.name == "bpe-statistics"]
    theirs = {(entry.row, entry.metric): entry.value for entry in paper.published}

    def unknown(*rows):
        return [number[row, "unknown"] for number in (found, theirs) for row in rows]

    told = "characters and BPE leave next to no word of the test set unknown ({:.0f} and {:.0f}; {:.0f} and {:.0f})"
    assert told.format(*unknown("characters", "BPE")) in item
    told = "joint BPE a few ({:.0f}; {:.0f}), character bigrams too ({:.0f}; {:.0f}), and whole words by far the most"
    pairs = [number for row in ("BPE (joint)", "character bigrams", "none") for number in unknown(row)]
    assert (told + " ({:.0f}; {:,.0f})").format(*pairs) in item
    most = max(number for (_, metric), number in found.items() if metric == "unknown")
    assert most == found["none", "unknown"]
    longer = [number[row, "tokens"] / number["none", "tokens"] for row in ("BPE", "character bigrams")
              for number in (found, theirs)]
    more = [100 * (times - 1) for times in longer[:2]]
    assert "BPE's text is {:.0f} % longer than that of words ({:.0f} %)".format(*more) in item
    assert "bigrams {:.1f} times as long ({:.1f})".format(*longer[2:]) in item
    told = "Morfessor leaves fewer than trigrams and hyphenation ({:.0f}; {:.0f} and {:.0f}), where it has more there ("
    rows = unknown("morfessor", "character trigrams", "hyphenation")
    assert (told + "{:.0f}; {:.0f} and {:.0f})").format(*rows) in item and rows[0] < min(rows[1:3])


def test_subwords_that_are_drawn_are_told_with_trainings_that_go_on():
    found = {(line.row, line.metric): line for line in lines("nmt_lectures", "lineage")}
    item, of = finding("nmt_lectures", "*Subword regularization*"), {}
    for kind in ("BPE", "unigram"):
        names = "bleu_difference", "bleu_p", "chrf_difference", "chrf_p"
        of[kind] = [abs(found[f"Transformer, {kind} sampled", f"test_{name}"].values[2]) for name in names]
        assert found[f"Transformer, {kind} sampled", "test_bleu_difference"].mean < 0
    assert "has {:.1f} less (p {:.3f}; in chrF {:.1f}, p {:.3f}), and unigram".format(*of["BPE"]) in item
    assert "drawn {:.1f} (p {:.3f}; in chrF {:.1f}, p {:.3f}).".format(*of["unigram"]) in item
    plain = [found["Transformer, unigram", f"test_{name}"].values[2] for name in names]
    assert "as they are have {:.1f} BLEU more (p {:.2f}; in chrF {:.1f}, p {:.3f}), BPE that".format(*plain) in item
    curves = [found[f"Transformer, {kind} sampled", "validation_perplexity"].runs[2].points("validation_perplexity")
              for kind in of]
    ends = [curve[epoch][1] for curve in curves for epoch in (-6, -1)]
    assert "in the last five epochs from {:.1f} to {:.1f} and from {:.1f} to {:.1f},".format(*ends) in item


def test_subwords_that_are_drawn_until_validation_stands_still_are_told_beside_as_long_a_training():
    found = {(line.row, line.metric): line for line in lines("nmt_lectures", "lineage")}
    item = finding("nmt_lectures", "*Subword regularization*")
    assert "**Not shown**: trained on a quarter of the pairs" in item

    def of(kind, *metrics):
        return [found[f"Transformer{kind}, a quarter", f"test_{metric}"].values[2] for metric in metrics]

    def ends(kind):
        (run,) = found[f"Transformer{kind}, a quarter", "validation_perplexity"].runs.values()
        curve = run.points("validation_perplexity")
        return min(value for _, value in curve), int(curve[-1][0]) - 5  # the patience of all

    metrics = "bleu", "bleu_difference", "bleu_p", "chrf_difference", "chrf_p"
    bleu, more, p, of_chrf, chrf_p = of(", unigram sampled", *metrics)
    told = f"{bleu:.1f} BLEU, {more:.1f} more than fixed ones (p {p:.2f}; in chrF {of_chrf:.1f} "
    assert f"{told}more, p {chrf_p:.3f})" in item and p > 0.025 > chrf_p
    (fixed,) = of(", unigram", "bleu")
    assert more == pytest.approx(bleu - fixed)
    bleu, less, p, more, chrf_p = of(", BPE sampled", *metrics)
    told = f"{bleu:.1f}, {-less:.1f} less than BPE as it is (p {p:.2f}; in chrF less than 0.1 more, p {chrf_p:.2f})"
    assert told in item and less < 0 < more < 0.1 and min(p, chrf_p) > 0.025
    told = "are lower: {:.1f} after {} epochs, where fixed unigram pieces end at {:.1f} after {}, and "
    told += "{:.1f} after {}, where BPE as it is ends at {:.1f} after {}."
    kinds = ", unigram sampled", ", unigram", ", BPE sampled", ""
    assert told.format(*(number for kind in kinds for number in ends(kind))) in item
    bleu, p, chrf, chrf_p = of(", unigram", "bleu_difference", "bleu_p", "chrf_difference", "chrf_p")
    told = "are {:.1f} BLEU behind BPE there (p {:.3f}; in chrF {:.1f}, p {:.3f})"
    assert told.format(-bleu, p, -chrf, chrf_p) in item and max(bleu, chrf) < 0


def test_whole_words_are_told_as_recorded():
    found = {(line.row, line.metric): line.values for line in lines("nmt_lectures", "lineage")}
    (bleu, chrf), (mixed, of_mixed), (least, of_least) = (
        [[found[row, f"test_{name}{part}"][2] for part in ("", "_difference", "_p")] for name in ("bleu", "chrf")]
        for row in ("Transformer, words", "Transformer, words and characters", "Transformer, characters"))
    text = finding("nmt_lectures", "*Words and characters*")
    told = "the Transformer has {:.1f} BLEU and {:.1f} chrF, {:.1f} and {:.1f} behind that of its seed with as many "
    assert told.format(bleu[0], chrf[0], -bleu[1], -chrf[1]) + "types" in text and bleu[1] < 0 and chrf[1] < 0
    assert f"of BPE (p {bleu[2]:.3f} and {chrf[2]:.3f})." in text and least[0] < bleu[0] < mixed[0]
    told = "instead it has {:.1f} and {:.1f}, {:.1f} and {:.1f} behind (p {:.3f} and {:.3f});"
    assert told.format(mixed[0], of_mixed[0], -mixed[1], -of_mixed[1], mixed[2], of_mixed[2]) in text
    told = f"alone it has {least[0]:.1f} and {of_least[0]:.1f}, {-least[1]:.1f} and {-of_least[1]:.1f} behind (p "
    assert f"{told}{least[2]:.3f} and {of_least[2]:.3f}), below" in text
    symbols = [found[f"Transformer, {kind}", "validation_perplexity"][2] for kind in ("words", "words and characters")]
    assert "Perplexities, {:.1f} of words and {:.1f} of words with characters, are of other".format(*symbols) in text
    (paper,) = [table for table in read_tables(RECIPES / "nmt_lectures") if table.name == "subword-regularization"]
    theirs = {entry.row: entry.value for entry in paper.published}
    rows = "BPE", "Mixed Word/Character", "Word", "Character (512 nodes)"
    assert "The source has {:.1f}, {:.1f}, {:.1f} and {:.1f} BLEU".format(*(theirs[row] for row in rows)) in text


def test_characters_with_less_dropout_are_told_as_recorded():
    (run,) = (line.runs[2] for line in lines("nmt_lectures", "characters") if line.row == "dropout 0.1"
              and line.metric == "test_bleu")
    curve = [value for _, value in run.points("validation_perplexity")]
    found = {(line.row, line.metric): line.values for line in lines("nmt_lectures", "lineage")}
    end, text = found["Transformer, characters", "validation_perplexity"][2], finding("nmt_lectures", "*Words and")
    assert [value < end for value in curve] == [False] * 9 + [True] * 31
    assert f"after forty, {end:.1f}, and after" in text
    told = "after forty it has {:.1f} BLEU, {:.1f} chrF and a perplexity of {:.2f}, its least"
    assert told.format(run.value("test_bleu"), run.value("test_chrf"), min(curve)) in text and curve[-1] == min(curve)
    plain = [found["RNN encoder-decoder", f"test_{metric}"][2] for metric in ("bleu", "chrf")]
    assert "which has {:.1f} and {:.1f} with subwords by that seed.".format(*plain) in text
    assert all(run.value(f"test_{metric}") > value for metric, value in zip(("bleu", "chrf"), plain, strict=True))
