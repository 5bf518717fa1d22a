"""One annotated sentence, whatever file it came from, a corpus of them, and projectivity of a tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from seqstruct.data.text import conllu, sdp

TOP = "<top>"


@dataclass(frozen=True)
class AnnotatedSentence:
    """Words count from 1; 0 is the root.

    heads: of each word, or None without a tree.  arcs: (head, dependent, label), or None without a graph; the top words
    are the dependents of 0 with the label `TOP`, and no pair has two labels.  label: the class, or None.
    """

    words: tuple[str, ...]
    lemmas: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    heads: tuple[int, ...] | None = None
    arcs: tuple[tuple[int, int, str], ...] | None = None
    label: str | None = None


@dataclass(frozen=True)
class Annotated:
    """kind: trees, graphs or classes.  splits: train, and whatever else there is, each a list of sentences."""

    kind: str
    splits: Mapping[str, Sequence[AnnotatedSentence]]


def changed(
    corpora: Mapping[str, Annotated], change: Callable[[str, str, AnnotatedSentence], AnnotatedSentence]
) -> dict[str, Annotated]:
    """The corpora with each sentence changed; change: from the kind of its corpus, its split and the sentence."""
    return {
        name: Annotated(corpus.kind, {
            split: [change(corpus.kind, split, sentence) for sentence in sentences]
            for split, sentences in corpus.splits.items()
        })
        for name, corpus in corpora.items()
    }


def tree_of(sentence: conllu.ParsedSentence, column: str = "upos") -> AnnotatedSentence:
    """The tree of a CoNLL-U sentence; column: the tags, "upos" or "xpos".

    Raises ValueError, naming the sentence, if a word has no head or the heads have a cycle.
    """
    heads = sentence.heads
    cycle = find_cycle(heads)
    if cycle:
        raise ValueError(f"{sentence.name}: the heads have a cycle, {' -> '.join(map(str, cycle))}")
    return replace(_words(sentence, column), heads=heads)


def graph_of(sentence: conllu.ParsedSentence, column: str = "upos", coarse: bool = False) -> AnnotatedSentence:
    """The enhanced graph and the tree of a CoNLL-U sentence, those that it has; the roots are the top words.

    coarse: whether a relation is cut to its universal part ("nmod:of" to "nmod").  Of two relations between the same
    words the first is kept.
    """
    labels: dict[tuple[int, int], str] = {}
    for dependent, token in enumerate(sentence.tokens, 1):
        for head, relation in token.deps:
            label = TOP if head == 0 else relation.partition(":")[0] if coarse else relation
            labels.setdefault((head, dependent), label)
    arcs = tuple((head, dependent, label) for (head, dependent), label in sorted(labels.items()))
    has_tree = all(token.head is not None for token in sentence.tokens)
    without = None if sentence.tokens else ()
    return replace(_words(sentence, column), arcs=arcs or without, heads=sentence.heads if has_tree else None)


def graph_of_sdp(graph: sdp.Graph) -> AnnotatedSentence:
    """A semantic dependency graph; its tops are dependents of 0."""
    arcs = (*((0, top, TOP) for top in graph.tops), *graph.arcs)
    return AnnotatedSentence(graph.forms, graph.lemmas, graph.tags, arcs=tuple(sorted(arcs)))


def _words(sentence: conllu.ParsedSentence, column: str) -> AnnotatedSentence:
    tokens = sentence.tokens
    return AnnotatedSentence(
        tuple(t.form for t in tokens), tuple(t.lemma for t in tokens), tuple(getattr(t, column) for t in tokens)
    )


def find_cycle(heads: Sequence[int]) -> list[int]:
    """The words of a cycle, the first one again at its end, or [] if every word reaches 0; heads[m - 1] is m's."""
    safe = {0}
    for start in range(1, len(heads) + 1):
        path: list[int] = []
        word = start
        while word not in safe:
            if word in path:
                return [*path[path.index(word) :], word]
            path.append(word)
            word = heads[word - 1]
        safe.update(path)
    return []


def crossing_arc(heads: Sequence[int]) -> int | None:
    """The dependent of the shortest arc that is not projective, the first of equals; None if the tree is projective.

    An arc is projective if its head is an ancestor of every word between the two.
    """
    found = None
    for dependent, head in enumerate(heads, 1):
        low, high = sorted((head, dependent))
        for between in range(low + 1, high):
            above = between
            while above != head and above != 0:
                above = heads[above - 1]
            if above != head and (found is None or high - low < abs(found - heads[found - 1])):
                found = dependent
    return found


def lift(heads: Sequence[int]) -> tuple[int, ...]:
    """A projective tree: the shortest arc that is not projective is hung one step higher, until there is none.

    The first step of Nivre and Nilsson (2005); the labels that would undo it are not kept.
    """
    lifted = list(heads)
    while (dependent := crossing_arc(lifted)) is not None:
        lifted[dependent - 1] = lifted[lifted[dependent - 1] - 1]
    return tuple(lifted)
