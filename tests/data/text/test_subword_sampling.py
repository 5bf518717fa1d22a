import math
from collections import Counter

import numpy as np
import pytest
import sentencepiece

from seqstruct.data.text import subwords
from seqstruct.data.text.subword_sampling import Sampling, draw_merges, load_sampler

STEMS, ENDINGS = ("low", "new", "wide", "hand", "lang", "groß", "Haus", "tag"), ("", "er", "est", "en", "lich")
TEXT = ["low lower lowest", "new newer newest", "wide wider widest", "low new wide", "groß am größer"] + [
    f"{a}{x} {b}{y} {a}{y}" for a in STEMS for b in STEMS for x in ENDINGS for y in ENDINGS if a < b
]
DRAWN = ("bpe", "sentencepiece", "sentencepiece-bpe")


class Everything:
    """A dictionary that has each piece."""

    def __contains__(self, piece):
        return True


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """One model of each kind by name."""
    folder = tmp_path_factory.mktemp("models")
    subwords.learn_bpe(TEXT, folder / "bpe", 70)
    subwords.learn_sentencepiece(TEXT, folder / "sentencepiece", 60)
    subwords.learn_sentencepiece(TEXT, folder / "sentencepiece-bpe", 60, "bpe")
    return folder


def draws(sampler, line, count):
    generator = np.random.default_rng(5)
    return Counter(tuple(sampler.sample(line, generator)) for _ in range(count))


def segmentations(text, pieces):
    """All ways to cut a text into pieces."""
    if not text:
        return [()]
    return [(text[:i], *rest) for i in range(1, len(text) + 1) if text[:i] in pieces
            for rest in segmentations(text[i:], pieces)]


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("nbest", [-1, 4])
def test_unigram_draws_follow_the_powers_of_the_probabilities(models, alpha, nbest):
    path = models / "sentencepiece"
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    scores = {processor.id_to_piece(i): processor.get_score(i) for i in range(3, len(processor))}
    every = sorted(segmentations("▁new▁wide", scores), key=lambda x: -sum(scores[p] for p in x))
    every = every if nbest == -1 else every[:nbest]
    assert len(every) >= 4
    weights = [math.exp(alpha * sum(scores[p] for p in x)) for x in every]
    found = draws(load_sampler(path, Everything(), Sampling(alpha, nbest)), "new wide", 4000)
    assert set(found) <= set(every)
    for segmentation, weight in zip(every, weights, strict=True):
        expected = weight / sum(weights)
        assert abs(found[segmentation] / 4000 - expected) < 4 * math.sqrt(expected / 4000) + 1e-9


def test_a_great_exponent_gives_the_best_segmentation(models):
    for nbest in (-1, 1, 5):
        sampler = load_sampler(models / "sentencepiece", Everything(), Sampling(1000.0, nbest))
        for line in TEXT[:5]:
            assert set(draws(sampler, line, 3)) == {tuple(sampler.best(line))}


def test_bpe_dropout_of_a_small_word_by_hand(models):
    ranks = {("a", "b"): 0, ("b", "c"): 1, ("ab", "c"): 2}
    generator = np.random.default_rng(1)
    found = Counter(tuple(draw_merges("abc", lambda *p: ranks.get(p), 0.25, generator)[0]) for _ in range(4000))
    # The first step keeps a-b with 3/4, else b-c with 3/4; ab-c is then kept with 3/4, a-bc never merges.
    expected = {("abc",): 9 / 16, ("ab", "c"): 3 / 16, ("a", "bc"): 3 / 16, ("a", "b", "c"): 1 / 16}
    assert set(found) == set(expected)
    for pieces, share in expected.items():
        assert abs(found[pieces] / 4000 - share) < 0.03


@pytest.mark.parametrize("kind", ["bpe", "sentencepiece-bpe"])
def test_dropout_from_none_to_all(models, kind):
    lines = [*TEXT[:5], "unseen worldwide", "x", ""]
    none = load_sampler(models / kind, Everything(), Sampling(dropout=0.0))
    for line in lines:
        assert list(draws(none, line, 1)) == [tuple(none.best(line))]
        merged = [p for w in line.split() for p in none.word(w if kind == "bpe" else f"▁{w}", 1e-12,
                                                             np.random.default_rng(0))]
        assert merged == none.best(line)
    every = load_sampler(models / kind, Everything(), Sampling(dropout=1.0))
    expected = ["l@@", "o@@", "w"] if kind == "bpe" else ["▁", "l", "o", "w"]
    assert every.sample("low", np.random.default_rng(0)) == expected


@pytest.mark.parametrize("kind", DRAWN)
def test_every_draw_is_the_same_text_and_of_the_dictionary(models, kind):
    undo = subwords.undo_bpe if kind == "bpe" else subwords.undo_sentencepiece
    best = load_sampler(models / kind, Everything(), Sampling())
    # Without what is only a step towards longer pieces, which the best segmentations do not show.
    characters = {c + end for c in set("".join(TEXT)) for end in (["", "@@"] if kind == "bpe" else [""])} | {"▁"}
    dictionary = {piece for line in TEXT for piece in best.best(line)} | characters
    sampler = load_sampler(models / kind, dictionary, Sampling(alpha=0.1, dropout=0.5))
    lines = [*TEXT[:5], "lowest tag"]
    for line in lines:
        found = draws(sampler, line, 50)
        assert {undo(" ".join(pieces)) for pieces in found} == {line}
        assert {p for pieces in found for p in pieces} <= dictionary
        assert sampler.text(line) == sampler.text(" ".join(sampler.best(line))) == line
    assert sum(len(draws(sampler, line, 5)) > 1 for line in TEXT[:50]) > 20


def test_unknown_characters_stay(models):
    for kind in DRAWN:
        sampler = load_sampler(models / kind, Everything(), Sampling())
        assert "Q" in "".join(sampler.sample("low Q", np.random.default_rng(0)))


@pytest.mark.parametrize("kind", ["sentencepiece", "sentencepiece-bpe"])
def test_a_run_of_unknown_characters_is_one_piece_as_the_best_segmentation_has_it(models, kind):
    sampler = load_sampler(models / kind, {"▁", "QZ"} | set("".join(TEXT)), Sampling(dropout=1.0))
    assert sampler.best("QZ") == sampler.sample("QZ", np.random.default_rng(0)) == ["▁", "QZ"]
    assert sampler.sample("lQZo", np.random.default_rng(0)) == ["▁", "l", "QZ", "o"]


def test_unused_pieces_are_not_drawn(models, tmp_path):
    path = tmp_path / "model"
    path.write_bytes((models / "sentencepiece-bpe").read_bytes())
    subwords.drop_rare_pieces(TEXT[:2], path, 2)
    sampler = load_sampler(path, Everything(), Sampling(dropout=1e-12))
    for line in TEXT[:5]:
        assert sampler.sample(line, np.random.default_rng(0)) == sampler.best(line)
    several = load_sampler(path, Everything(), Sampling(dropout=0.4))
    assert not {p for line in TEXT for x in draws(several, line, 20) for p in x} & several.unused
    assert several.unused


def test_equal_generators_draw_alike(models):
    for kind in DRAWN:
        found = [load_sampler(models / kind, Everything(), Sampling(dropout=0.5)).sample(
            TEXT[0], np.random.default_rng((1, 2, 3))) for _ in range(2)]
        assert found[0] == found[1]


@pytest.mark.parametrize("options", [{"alpha": -1.0}, {"nbest": 0}, {"dropout": 1.5}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))}: expected"):
        Sampling(**options)


def test_other_files_are_refused(models, tmp_path):
    for content in (b"", b"hello\n", b"\x00\xff\xfe"):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(ValueError, match="file: expected a SentencePiece model or a codes file"):
            load_sampler(tmp_path / "file", Everything(), Sampling())
    (tmp_path / "codes").write_text("#version: 0.2\na b\na b c\n")
    with pytest.raises(ValueError, match="codes: line 3: expected two symbols"):
        load_sampler(tmp_path / "codes", Everything(), Sampling())
    (tmp_path / "codes").write_text("#version: 0.1\na b\n")
    with pytest.raises(ValueError, match="version 0.2, got 0.1"):
        load_sampler(tmp_path / "codes", Everything(), Sampling())
    subwords.learn_sentencepiece(TEXT, tmp_path / "characters", 30, "char")
    with pytest.raises(ValueError, match="a unigram or a byte-pair encoding model"):
        load_sampler(tmp_path / "characters", Everything(), Sampling())
