"""Text, spans and gold trees made of a treebank, and what is refused."""

import json
import random

import numpy as np
import pytest
from fairseq.data import Dictionary

from seqstruct.data.corpora.parsed_text import gold_tree, read_bits, read_splits, span_bits, split_bits
from seqstruct.data.text.trees import parse_trees, read_trees, spans, words
from tests.data import scripts

NESTED = "(S (NP (DT The) (NN dog) (, ,) (PP (IN of) (NP (CD 3,000) (NNS Men)))) (VP (VBZ barks)) (. .))"


def write_sample(folder, trees=NESTED):
    folder.mkdir(exist_ok=True)
    for number in (1, 160, 199):
        (folder / f"wsj_{number:04}.mrg").write_text(f"{trees}\n({trees})\n")
    return folder


def prepared(corpus, source, out, *more):
    return scripts.prepared("ptb-trees", "--corpus", corpus, "--from", source, "--out", out, *more)


def test_bits_are_the_spans_that_end_at_each_word():
    generator = random.Random(3)
    for _ in range(50):
        length = generator.randint(1, 13)
        some = {tuple(sorted(generator.choices(range(length), k=2))) for _ in range(generator.randint(0, 9))}
        bits = span_bits(some, length)
        found = {(end - back, end) for end in range(length) for back in range(64) if int(bits[end]) >> back & 1}
        assert found == {(a, b) for a, b in some if a < b and (a, b) != (0, length - 1)}


def test_the_longest_span_has_63_words():
    assert int(span_bits([(1, 63)], 70)[63]) == 1 << 62
    with pytest.raises(ValueError, match=r"\[1, 64\] has 64 words, more than the maximum of 63"):
        span_bits([(1, 64)], 70)
    with pytest.raises(ValueError, match="maximum of 2"):
        span_bits([(1, 3)], 5, longest=2)
    with pytest.raises(ValueError, match="not within"):
        span_bits([(1, 5)], 5)
    with pytest.raises(ValueError, match="1 to 63, got 64"):
        span_bits([], 5, longest=64)


def test_long_spans_are_refused_by_tree_unless_left_out():
    trees = [gold_tree(tree) for tree in parse_trees([NESTED, NESTED])]
    with pytest.raises(ValueError, match=r"train: tree 1: the span \[0, 4\] has 5 words"):
        split_bits(trees, 4, False, "train")
    bits, left_out = split_bits(trees, 4, True, "train")
    assert left_out == 2
    assert bits.tolist() == [0, 0, 0, 0, 0b110, 0, 0] * 2


def test_the_folder_has_text_spans_and_trees_of_the_same_words(tmp_path):
    summary = prepared("treebank-sample", write_sample(tmp_path / "trees"), tmp_path / "out", "--vocabulary", 100)
    out = tmp_path / "out"
    assert (out / "text" / "train.txt").read_text() == "the dog of N men barks\n" * 2
    gold = list(read_trees(out / "trees" / "test.mrg"))
    assert [words(tree) for tree in gold] == [["The", "dog", "of", "3,000", "Men", "barks"]] * 2
    assert spans(gold[0]) == {(0, 5), (0, 4), (2, 4), (3, 4)}
    bits = read_bits(out / "bin", "train", 14)
    assert bits.tolist() == [0, 0, 0, 0, 0b10110, 0, 0] * 2
    assert len(Dictionary.load(str(out / "bin" / "dict.txt"))) == 4 + 6
    assert summary == json.loads((out / "corpus.json").read_text())
    assert summary["counts"]["valid"] == {"sentences": 2, "words": 12, "spans_left_out": 0}


def test_parses_keep_their_words(tmp_path):
    folder = tmp_path / "parses"
    folder.mkdir()
    for split in ("train", "valid", "test"):
        (folder / f"{split}.mrg").write_text(f"{NESTED}\n" * 3)
    prepared("parses", folder, tmp_path / "out")
    assert (tmp_path / "out" / "text" / "valid.txt").read_text() == "The dog , of 3,000 Men barks .\n" * 3


def test_parses_without_words_are_no_split(tmp_path):
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.mrg").write_text("(S (-NONE- *))\n" if split == "valid" else NESTED)
    with pytest.raises(ValueError, match="no file SPLIT.mrg with trees for valid"):
        read_splits("parses", tmp_path)


def script(*arguments):
    return scripts.prepare("ptb-trees", *arguments)


def test_bad_input_is_refused_and_leaves_nothing(tmp_path, capsys):
    folder = write_sample(tmp_path / "trees")
    (folder / "wsj_0160.mrg").write_text(f"{NESTED}\n(S (A a)\n")
    assert script("--corpus", "treebank-sample", "--from", folder, "--out", tmp_path / "out") == 1
    assert "wsj_0160.mrg: line 2: a bracket opens here" in capsys.readouterr().err
    (folder / "wsj_0160.mrg").write_text("(S (. .))")
    assert script("--corpus", "treebank-sample", "--from", folder, "--out", tmp_path / "out") == 1
    assert "no file wsj_NNNN.mrg with trees for valid" in capsys.readouterr().err
    assert script("--from", folder, "--out", tmp_path / "out") == 1
    assert "sections 02, 03" in capsys.readouterr().err
    for section in range(25):
        (folder / f"wsj_{section:02}98.mrg").write_text(NESTED)
    assert script("--from", folder, "--out", tmp_path / "out") == 1
    assert "ptb: the train set has 25 sentences, expected 42068: truncated or altered" in capsys.readouterr().err
    assert script("--corpus", "treebank-sample", "--from", write_sample(folder), "--out", tmp_path / "out",
                  "--max-span", 3) == 1
    assert "train: tree 1: the span [0, 4] has 5 words, more than the maximum of 3" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_damaged_spans_are_refused(tmp_path):
    with pytest.raises(ValueError, match="no such file"):
        read_bits(tmp_path, "train", 3)
    (tmp_path / "train.spans.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(ValueError, match="truncated"):
        read_bits(tmp_path, "train", 3)
    np.save(tmp_path / "train.spans.npy", np.zeros(4, dtype=np.int64))
    with pytest.raises(ValueError, match="expected 3 integers"):
        read_bits(tmp_path, "train", 3)
