import pytest

from seqstruct.scoring.alignment import alignment_error_rate, read_alignments, read_gold


def test_error_rate_by_hand():
    gold = read_gold(["0-0 1-1 2p1", "0-1 1?0", ""], "gold")
    found = read_alignments(["0-0 2-1 3-3", "1-0", ""], "found")
    score = alignment_error_rate(found, gold)
    # |A| = 4, |S| = 3, A & S = {0-0}, A & P = {0-0, 2-1, 1-0}.
    assert score.error_rate == pytest.approx(1 - (1 + 3) / (4 + 3))
    assert score.precision == 3 / 4
    assert score.recall == pytest.approx(1 / 3)
    assert (score.sentences, score.links, score.sure, score.possible) == (3, 4, 3, 5)


def test_best_and_worst():
    gold = read_gold(["0-0 1p1"], "gold")
    assert alignment_error_rate(read_alignments(["0-0"], "a"), gold).error_rate == 0
    assert alignment_error_rate(read_alignments(["0-0 1-1"], "a"), gold).error_rate == 0
    assert alignment_error_rate(read_alignments(["5-5"], "a"), gold).error_rate == 1
    assert alignment_error_rate(read_alignments([""], "a"), read_gold([""], "gold")).error_rate == 0


def test_words_counted_from_one():
    assert read_gold(["1-1 2p3"], "gold", one_based=True) == read_gold(["0-0 1p2"], "gold")


@pytest.mark.parametrize(("line", "one_based"), [("0:0", False), ("0-", False), ("-1-2", False), ("0-1", True)])
def test_bad_links_are_refused(line, one_based):
    with pytest.raises(ValueError, match=r"gold: line 2: expected links .*, got"):
        read_gold(["1-1", line], "gold", one_based)


def test_bad_calls_are_refused():
    with pytest.raises(ValueError, match="found: line 1: expected links i-j alone"):
        read_alignments(["0p1"], "found")
    with pytest.raises(ValueError, match="2 sentences with alignments, but 1"):
        alignment_error_rate([frozenset()] * 2, read_gold([""], "gold"))
    with pytest.raises(ValueError, match="0 sentences"):
        alignment_error_rate([], [])
