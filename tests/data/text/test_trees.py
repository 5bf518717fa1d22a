"""Trees read from brackets: what they hold, how they are cut down, and what is refused."""

import zipfile

import pytest

from seqstruct.data.text.trees import (
    Tree,
    binary_tree,
    bracketed,
    collapse_unary,
    drawn,
    leaves,
    parse_trees,
    read_sections,
    read_tree_files,
    read_trees,
    remove_empty,
    remove_punctuation,
    spans,
    words,
)
from tests.data.scripts import pack_damaged_zip

TEXT = """
( (S
    (NP-SBJ (NP (DT The) (NN fee) )
      (, ,)
      (ADJP (NP (QP (RB about) ($ $) (CD 5)) (-NONE- *U*) ) ))
    (VP (VBD rose) (NP-TMP (-NONE- *T*-1)))
    (. .) ))
( (INTJ (UH Yes)))
"""
SMALL = "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))"


def only(text):
    (tree,) = parse_trees(text.split("\n"))
    return tree


def test_trees_are_read_whatever_their_line_breaks():
    first, second = parse_trees(TEXT.split("\n"))
    assert words(first) == ["The", "fee", ",", "about", "$", "5", "*U*", "rose", "*T*-1", "."]
    assert [leaf.label for leaf in leaves(first)] == ["DT", "NN", ",", "RB", "$", "CD", "-NONE-", "VBD", "-NONE-", "."]
    assert second == Tree("INTJ", (Tree("UH", (), "Yes"),))
    assert only(bracketed(first)) == first
    assert only(TEXT.replace("\n", " ").split("( (INTJ")[0]) == first


def test_an_outer_bracket_of_several_trees_stays():
    assert only("( (A a) (B b))") == Tree("", (Tree("A", (), "a"), Tree("B", (), "b")))


def test_traces_and_punctuation_go_and_take_empty_constituents_along():
    tree, _ = parse_trees(TEXT.split("\n"))
    bare = remove_empty(tree)
    assert words(bare) == ["The", "fee", ",", "about", "$", "5", "rose", "."]
    assert bracketed(bare).endswith("(VP (VBD rose)) (. .))")
    assert words(remove_punctuation(bare)) == ["The", "fee", "about", "$", "5", "rose"]
    assert remove_punctuation(only("(S (. .) (NP (: --)))")) is None
    assert remove_empty(only("(S (NP (-NONE- *)))")) is None


def test_spans_are_those_of_two_words_or_more():
    tree = remove_punctuation(remove_empty(next(parse_trees(TEXT.split("\n")))))
    assert spans(tree) == {(0, 5), (0, 4), (0, 1), (2, 4)}
    assert spans(only(SMALL)) == {(0, 2), (0, 1)}


def test_unary_chains_collapse_to_the_upper_label():
    assert bracketed(collapse_unary(only("(S (VP (NP (A a) (B b))))"))) == "(S (A a) (B b))"
    assert bracketed(collapse_unary(only("(S (NP (NN it)) (VP (V is)))"))) == "(S (NP (NN it)) (VP (V is)))"


def test_a_deep_tree_needs_no_recursion():
    depth = 5000
    tree = only("(X (Y y) " * depth + "(Z z)" + ")" * depth)
    assert len(words(tree)) == depth + 1
    assert len(spans(remove_punctuation(collapse_unary(tree)))) == depth
    assert words(only(bracketed(tree))) == words(tree)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("(S\n(NP (A a))", 1, "nothing closes"),
        ("(S (A a))\n\n(S (A a)\n", 3, "nothing closes before line 4"),
        ("(S (A a)))", 1, "nothing opens"),
        ("(S (A a))\nword", 2, "'word' outside"),
        ("(S (A a) b)", 1, "expected a bracket"),
        ("(S\n(A a b))", 2, "expected a bracket"),
        ("(S\n())", 2, "expected \\(LABEL word\\)"),
        ("(S (A a) (NP))", 1, "got NP"),
        ("(A b (C c))", 1, "got A b"),
    ],
)
def test_bad_brackets_are_refused_with_file_and_line(tmp_path, text, line, what):
    file = tmp_path / "bad.mrg"
    file.write_text(text)
    with pytest.raises(ValueError, match=f"bad.mrg: line {line}: .*{what}"):
        list(read_trees(file))


def test_folders_and_archives_are_read_in_order_of_names(tmp_path):
    folder = tmp_path / "wsj"
    for name, word in (("01/b.mrg", "second"), ("00/a.mrg", "first"), ("01/c.txt", "other")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"(S (A {word}))")
    (folder / "empty.mrg").write_text("")
    assert [(n, [words(t) for t in ts]) for n, ts in read_tree_files(folder)] == [
        ("00/a.mrg", [["first"]]), ("01/b.mrg", [["second"]]), ("empty.mrg", []),
    ]
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("x/b.mrg", "(S (A second))")
        archive.writestr("x/a.mrg", "(S (A first))")
        archive.writestr("x/README", "(((")
    assert [words(t) for t in read_trees(tmp_path / "t.zip")] == [["first"], ["second"]]


def test_the_treebank_by_sections_whatever_lies_beside_it(tmp_path):
    """Names in capitals, as on the disc; files of other parts, which have marks that are no trees, are not read."""
    for name, text in (("WSJ/00/WSJ_0001.MRG", "( (A (B one)) )\n"), ("WSJ/01/wsj_0101.mrg", "( (A (B two)) )\n"),
                       ("WSJ/02/WSJ_0201.MRG", "( (A (B three)) )\n"), ("ATIS/ATIS3.MRG", "( END_OF_TEXT_UNIT )\n"),
                       ("__MACOSX/._wsj_0001.mrg", "\x00")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "WSJ/01/wsj_0101.mrg").write_bytes(b"\xef\xbb\xbf( (A (B two)) )\r\n")
    found = read_sections(tmp_path, {0: "train", 1: "valid"})
    assert {split: [words(tree) for tree in trees] for split, trees in found.items()} == {
        "train": [["one"]], "valid": [["two"]], "test": []
    }
    with pytest.raises(ValueError, match="no wsj_SSNN.mrg of the sections 03"):
        read_sections(tmp_path, {0: "train", 3: "valid"})
    (tmp_path / "wsj_0001.mrg").write_text("( (A (B one)) )\n")
    with pytest.raises(ValueError, match="expected each file once, found WSJ/00/WSJ_0001.MRG and wsj_0001.mrg"):
        read_sections(tmp_path, {0: "train"})


def test_what_holds_no_trees_is_refused(tmp_path):
    (tmp_path / "blank.mrg").write_text("\n\n")
    (tmp_path / "cut.zip").write_bytes(b"PK\x03\x04")
    (tmp_path / "latin.mrg").write_bytes(b"(S\n(A caf\xe9))")
    pack_damaged_zip(tmp_path / "damaged.zip", "a.mrg")
    for name, what in (("blank.mrg", "found none"), ("cut.zip", "truncated"), ("damaged.zip", "truncated or altered"),
                       ("latin.mrg", "not UTF-8 in line 2")):
        with pytest.raises(ValueError, match=f"{name}.*{what}"):
            list(read_trees(tmp_path / name))
    with pytest.raises(OSError):
        list(read_trees(tmp_path / "absent.mrg"))


def test_the_treebank_sample(reference):
    trees = list(read_trees(reference / "data" / "nltk" / "treebank.zip"))
    assert len(trees) == 3914
    assert sum(len(words(tree)) for tree in trees) == 100_676
    assert sum(len(words(remove_empty(tree))) for tree in trees) == 94_084


def test_binary_trees_from_splits():
    tree = binary_tree(["a", "b", "c", "d"], [(0, 2, 3), (0, 1, 1), (2, 3, 3)])
    assert bracketed(tree) == "((a b) (c d))"
    assert spans(tree) == {(0, 3), (0, 1), (2, 3)}
    assert bracketed(binary_tree(["a"], [])) == "a"
    long = [str(i) for i in range(3000)]
    assert len(spans(binary_tree(long, [(i, i + 1, 2999) for i in range(2999)]))) == 2999
    with pytest.raises(ValueError, match="empty"):
        binary_tree([], [])
    with pytest.raises(ValueError, match=r"\[0, 1\] has no split"):
        binary_tree(["a", "b", "c"], [(0, 2, 2)])


def test_drawings_have_a_line_for_each_word():
    assert drawn(only(SMALL)).split("\n") == ["S─┬─NP─┬─ DT the", "  │    └─ NN dog", "  └─VP─── VBZ barks"]
    tree = binary_tree(["a", "b", "c", "d"], [(0, 1, 3), (1, 3, 3), (1, 2, 2)])
    assert drawn(tree).split("\n") == ["┬─ a", "└─┬─┬─ b", "  │ └─ c", "  └─ d"]
    assert drawn(only("(X (A a) (B b) (C c))")).split("\n") == ["X─┬─ A a", "  ├─ B b", "  └─ C c"]
