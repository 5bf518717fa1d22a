"""SDP 2015: graphs read and written; what does not fit is named by file and line."""

import pytest

from seqstruct.data.text.sdp import format_sdp, parse_sdp, read_sdp

TEXT = """\
#SDP 2015
#7
1\tIt\tit\tPRP\t-\t-\t_\tARG1\t_
2\thelps\thelp\tVBZ\t+\t+\tv:e-i\t_\t_
3\tmuch\tmuch\tRB\t-\t+\ta:e\t_\t_

"""


def graphs(text):
    return list(parse_sdp(text.splitlines(), "f.sdp"))


def test_graph_and_back():
    (graph,) = graphs(TEXT)
    assert graph.forms == ("It", "helps", "much")
    assert graph.lemmas == ("it", "help", "much")
    assert graph.tags == ("PRP", "VBZ", "RB")
    assert (graph.tops, graph.arcs, graph.name) == ((2,), ((2, 1, "ARG1"),), "7")
    assert list(parse_sdp(format_sdp([graph]), "again")) == [graph]


def test_a_sentence_without_a_comment_is_named_by_its_line():
    assert [graph.name for graph in graphs(TEXT + TEXT[TEXT.index("1\tIt") :])] == ["7", "f.sdp, line 7"]


def test_the_written_format_has_seven_columns_before_the_arguments():
    assert list(format_sdp(graphs(TEXT))) == [
        "#SDP 2015", "#7", "1\tIt\tit\tPRP\t-\t-\t_\tARG1", "2\thelps\thelp\tVBZ\t+\t+\t_\t_",
        "3\tmuch\tmuch\tRB\t-\t-\t_\t_", "",
    ]


@pytest.mark.parametrize("trees", [("2\tnsubj", "0\troot", "2\tadvmod"), ("_\t_",) * 3])
def test_a_tree_that_was_merged_in_is_passed_over(trees):
    header, name, *rows = TEXT.splitlines()[:-1]
    merged = [header, name]
    for row, tree in zip(rows, trees, strict=True):
        fields = row.split("\t")
        merged.append("\t".join([*fields[:4], tree, *fields[4:]]))
    assert list(parse_sdp(merged, "f.sdp")) == graphs(TEXT)


def test_the_format_of_2014_has_no_frame():
    (graph,) = graphs("#1\n1\ta\ta\tX\t+\t+\t_\n2\tb\tb\tX\t-\t-\tARG\n")
    assert graph.arcs == ((1, 2, "ARG"),)
    assert graph.tops == (1,)


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("2\thelps", "4\thelps", "line 4: expected word 2 and 7 fields or more, got '4' and 9"),
        ("3\tmuch\tmuch\tRB\t-\t+\ta:e\t_\t_", "3\tmuch", "line 5: expected word 3 and 7 fields .* and 2"),
        ("VBZ\t+\t+", "VBZ\tx\t+", "line 4: expected \\+ or - for top and predicate, got 'x', '\\+'"),
        ("ARG1\t_", "ARG1", "line 3: expected 2 arguments, one for each predicate, got 1"),
    ],
)
def test_refused(old, new, message):
    with pytest.raises(ValueError, match=f"f.sdp, {message}"):
        graphs(TEXT.replace(old, new, 1))


def test_the_sample(reference):
    first, second = read_sdp(reference / "data" / "samples" / "dm.sdp")
    assert (first.name, second.name) == ("20001001", "20001002")
    assert (len(first.forms), len(second.forms)) == (18, 13)
    assert (first.tops, second.tops) == ((9,), (3,))
    assert (1, 2, "compound") in first.arcs and (16, 9, "loc") not in first.arcs
    assert (9, 2, "ARG1") in first.arcs and (3, 4, "ARG2") in second.arcs
    assert list(parse_sdp(format_sdp([first, second]), "again")) == [first, second]
