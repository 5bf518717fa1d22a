"""Tags by a hidden Markov model: the best of all sequences, words never seen, and the Brown corpus's base tags."""

import itertools
import zipfile

import numpy as np
import pytest

from seqstruct.cli import main
from seqstruct.data.parsing.folder import read_meta, read_split
from seqstruct.data.parsing.tagger import Tagger, read_brown

TEXT = [
    [("The", "at"), ("dog", "nn"), ("barks", "vbz"), (".", ".")],
    [("the", "at"), ("barks", "nns"), ("stop", "vb"), (".", ".")],
    [("dogs", "nns"), ("walking", "vbg"), ("talking", "vbg")],
]
BROWN = "\n\n\tThe/at Fulton/np-tl jury's/nn$-hl don't/do* that's/dt+bez ,/, fw/fw-nn --/--\n\n\ta/b/nn */*-hl\n"


def written(folder, text=BROWN):
    with zipfile.ZipFile(folder / "brown.zip", "w") as archive:
        archive.writestr("brown/ca01", text)
        archive.writestr("brown/README", "not/a text/at all/x")
    return folder / "brown.zip"


def test_the_best_of_all_sequences_is_found():
    tagger = Tagger(TEXT)
    assert len(tagger.tags) == 7 and abs(tagger.prior.sum() - 1) < 1e-12
    for words in (["the", "barks", "barks"], ["dogs", "stop"], ["barks"], ["unseen", "dog", "THE"]):
        given = [tagger.words.get(word.lower(), tagger._of_ending(word.lower())) for word in words]
        unary = np.log(np.stack(given) / tagger.prior)

        def score(path, unary=unary):
            steps = sum(float(tagger.transitions[i, j]) for i, j in itertools.pairwise(path))
            return float(tagger.first[path[0]]) + steps + sum(unary[n, i] for n, i in enumerate(path))

        best = max(itertools.product(range(7), repeat=len(words)), key=score)
        assert tagger.tag(words) == [tagger.tags[i] for i in best]
    assert tagger.tag([]) == []


def test_a_word_never_seen_has_the_tags_of_its_ending():
    tagger = Tagger(TEXT)
    found = tagger._of_ending("balking")
    assert tagger.tags[found.argmax()] == "vbg" and abs(found.sum() - 1) < 1e-12
    assert np.array_equal(tagger._of_ending("xyzq"), tagger.prior)
    # an ending as long as the word counts its occurrences once
    assert tagger.endings["."][tagger.tags.index(".")] == pytest.approx((2 + 10 * 2 / 11) / 12)


def test_without_tagged_sentences_there_is_no_tagger():
    with pytest.raises(ValueError, match="expected sentences with tags"):
        Tagger([[]])


def test_brown_s_tags_are_cut_to_their_base(tmp_path):
    assert read_brown(written(tmp_path)) == [
        [("The", "at"), ("Fulton", "np"), ("jury's", "nn$"), ("don't", "do"), ("that's", "dt"), (",", ","),
         ("fw", "nn"), ("--", "-")],
        [("a/b", "nn"), ("*", "*")],
    ]
    with pytest.raises(ValueError, match="brown.zip: no document of the Brown corpus"):
        read_brown(written(tmp_path, "\n"))
    with pytest.raises(ValueError, match="absent.zip: no such file"):
        read_brown(tmp_path / "absent.zip")
    (tmp_path / "brown.zip").write_text("no archive")
    with pytest.raises(ValueError, match="brown.zip: truncated or altered"):
        read_brown(tmp_path / "brown.zip")


def test_corpora_without_tags_are_prepared_with_them(tmp_path):
    (tmp_path / "sst").write_text("1 the Fulton jury's\n0 the fw\n")
    files = [f"{split}={tmp_path / 'sst'}" for split in ("train", "valid")]
    words = ["--classes", *files, "--tagger", str(written(tmp_path)), "--out", str(tmp_path / "data")]
    assert main(["prepare", "parsing", *words]) == 0
    sentences = read_split(tmp_path / "data", "classes", "train", read_meta(tmp_path / "data"))
    assert [len(s.tags) for s in sentences] == [3, 2] and sentences[0].tags[0] == "at"
    assert (tmp_path / "data" / "dict.tags.txt").read_text().startswith("at 2\n")
