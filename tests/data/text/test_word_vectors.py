"""Word vectors in text form."""

import numpy as np
import pytest

from seqstruct.data.text.word_vectors import read_vectors, vectors_with_hashing


def written(folder, text):
    path = folder / "vectors.txt"
    path.write_text(text, encoding="utf-8")
    return path


def test_reads_what_is_wanted_and_words_with_spaces(tmp_path):
    path = written(tmp_path, "the 0.5 -1 2\n. . . 1 2 3\ncafé 1e-3 0 1\nthe 9 9 9\n")
    vectors = read_vectors(path)
    assert list(vectors) == ["the", ". . .", "café"]
    assert vectors["the"].tolist() == [0.5, -1.0, 2.0] and vectors["the"].dtype == np.float32
    assert vectors[". . ."].tolist() == [1.0, 2.0, 3.0]
    assert list(read_vectors(path, {"café", "absent"})) == ["café"]


def test_a_header_is_passed_over(tmp_path):
    for text in ("1 3\na 1 2 3\n", "2 3\n. a 1 2 3 \na 1 2 3 \n"):
        assert read_vectors(written(tmp_path, text))["a"].tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("first", ["0.5", "7"])
def test_a_first_line_of_a_word_and_a_number_is_a_vector(tmp_path, first):
    found = read_vectors(written(tmp_path, f"the {first}\n12 2\n"))
    assert {word: vector.tolist() for word, vector in found.items()} == {"the": [float(first)], "12": [2.0]}


@pytest.mark.parametrize(("text", "message"), [
    ("a 1 2\nb 1\n", "line 2: expected a word and 2 numbers"),
    ("a 1 2\nb 1 x\n", "line 2: expected 2 numbers after 'b'"),
    ("a 1 2\nb 1 nan\n", "line 2: the vector of 'b' is not finite"),
    ("2 3\na 1 2 3\nb 1 2\n", "line 3: expected a word and 3 numbers"),
    ("1 3\n", "expected word vectors, found none"),
    ("word\n", "line 1: expected a word and 1 numbers"),
    ("", "expected word vectors, found none"),
])
def test_refuses_with_file_and_line(tmp_path, text, message):
    with pytest.raises(ValueError, match="vectors.txt") as caught:
        read_vectors(written(tmp_path, text))
    assert message in str(caught.value)


def test_unknown_words_share_gaussian_vectors():
    known = {"a": np.array([3.0, 4.0], dtype=np.float32), "zero": np.zeros(2, dtype=np.float32)}
    words = ["a", "zero", *(f"w{i}" for i in range(50))]
    rows = vectors_with_hashing(words, known, 2, unknown=7)
    np.testing.assert_allclose(rows[0], [0.6, 0.8], rtol=1e-6)
    assert rows[1].tolist() == [0.0, 0.0]
    assert 2 <= len({tuple(row) for row in rows[2:].tolist()}) <= 7
    np.testing.assert_array_equal(rows[3], vectors_with_hashing(["w1"], {}, 2, unknown=7)[0])
    wide = vectors_with_hashing([f"w{i}" for i in range(2000)], {}, 300)
    assert len({row.tobytes() for row in wide}) == 100
    assert abs(wide.mean()) < 0.05 and abs(wide.std() - 1) < 0.05
    with pytest.raises(ValueError, match="has 2 numbers, expected 3"):
        vectors_with_hashing(["a"], known, 3)
