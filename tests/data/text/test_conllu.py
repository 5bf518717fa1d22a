"""CoNLL-U: words, trees and enhanced graphs; what does not fit is named by file and line."""

import pytest

from seqstruct.data.text.conllu import parse_conllu, read_conllu

TEXT = """\
# sent_id = first
1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tdo\tdo\tAUX\tVBP\t_\t2\taux\t2:aux\t_
2\tgo\tgo\tVERB\tVB\t_\t0\troot\t0:root\t_
2.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t2:conj\t_
3\tthere\tthere\tADV\tRB\t_\t2\tadvmod\t2:advmod|2.1:advmod|3:x\t_

1\tYes\tyes\tINTJ\tUH\t_\t_\t_\t_\t_
"""


def sentences(text):
    return list(parse_conllu(text.splitlines(), "f.conllu"))


def test_words_trees_and_graphs():
    first, second = sentences(TEXT)
    assert [token.form for token in first.tokens] == ["do", "go", "there"]
    assert first.heads == (2, 0, 2)
    assert (first.name, first.line, second.name, second.line) == ("first", 2, "f.conllu, line 8", 8)
    assert first.tokens[0].deps == ((2, "aux"),)
    assert first.tokens[2].deps == ((2, "advmod"),)  # once from the word, once through the empty node; no loop
    assert (first.tokens[1].lemma, first.tokens[1].upos, first.tokens[1].xpos) == ("go", "VERB", "VB")
    with pytest.raises(ValueError, match="line 8: word 1, 'Yes', has no head"):
        second.heads  # noqa: B018


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("\t2\taux", "\taux", "line 3: expected 10 fields parted by tabs, got 9"),
        ("1\tdo", "4\tdo", "line 3: expected word 1, got '4'"),
        ("\t2\taux\t", "\t7\taux\t", "line 3: expected a head from 0 to 3, got '7'"),
        ("\t2\taux\t", "\t1\taux\t", "line 3: word 1 is its own head"),
        ("2.1:advmod", "2.2:advmod", "line 6: there is no empty node 2.2"),
        ("2:aux\t", "2\t", "line 3: expected HEAD:RELATION, got '2'"),
        ("2:aux\t", "x:aux\t", "line 3: expected a head from 0 to 3, got 'x'"),
    ],
)
def test_refused(old, new, message):
    with pytest.raises(ValueError, match=f"f.conllu, {message}"):
        sentences(TEXT.replace(old, new, 1))


def test_real_files(reference):
    counts = {}
    for name in ("ud-partut/en_partut-ud-train", "ud-ewt/en_ewt-ud-dev"):
        found = list(read_conllu(reference / "data" / f"{name}.conllu"))
        counts[name] = len(found), max(len(s.tokens) for s in found)
        assert all(len(s.heads) == len(s.tokens) for s in found)
    assert counts == {"ud-partut/en_partut-ud-train": (1781, 209), "ud-ewt/en_ewt-ud-dev": (2001, 75)}
    several = sum(len(t.deps) > 1 for s in found for t in s.tokens)
    assert several > 1000
