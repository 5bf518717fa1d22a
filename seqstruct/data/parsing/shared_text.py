"""What corpora of the same text lend one another: lemmas of graphs to trees, trees to graphs that are evaluated.

SDP 2015 annotates sentences of the Penn Treebank (Peng 2022, sections 2.4.1 and 2.5): its files have lemmas and no
trees, trees that are converted from brackets have no lemmas.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace

from seqstruct.data.parsing.sentence import Annotated, AnnotatedSentence, changed

NO_LEMMA = "_"
_ESCAPES = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}", "\u201c": "``",
            "\u201d": "''", "\u2018": "`", "\u2019": "'"}


def lend(corpora: Mapping[str, Annotated]) -> dict[str, Annotated]:
    """The corpora, with what is lent.

    A tree all of whose lemmas are "_" gets those that training sentences of graphs have most often for a word with its
    tag; a word that they lack keeps "_".  A graph without a tree that is not to train on gets that of the same words
    in the same split of the trees; one that has no such sentence stays without.
    """
    kinds = {kind: [corpus for corpus in corpora.values() if corpus.kind == kind] for kind in ("graphs", "trees")}
    lemmas: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for corpus in kinds["graphs"]:
        for sentence in corpus.splits.get("train", ()):
            for word, lemma, tag in zip(sentence.words, sentence.lemmas, sentence.tags, strict=False):
                lemmas[word, tag][lemma] += 1
    heads = {
        (split, plain(sentence.words)): sentence.heads
        for corpus in kinds["trees"] for split, sentences in corpus.splits.items() if split != "train"
        for sentence in sentences
    }

    def lent(kind: str, split: str, sentence: AnnotatedSentence) -> AnnotatedSentence:
        if kind == "trees" and sentence.lemmas and set(sentence.lemmas) == {NO_LEMMA}:
            pairs = zip(sentence.words, sentence.tags, strict=True)
            found = (lemmas[pair].most_common(1)[0][0] if pair in lemmas else NO_LEMMA for pair in pairs)
            return replace(sentence, lemmas=tuple(found))
        if kind == "graphs" and sentence.heads is None:
            return replace(sentence, heads=heads.get((split, plain(sentence.words))))
        return sentence

    return changed(corpora, lent)


def plain(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words without the treebank's escapes of brackets and slashes, and with its quotes."""
    return tuple(_ESCAPES.get(word, word.replace("\\/", "/").replace("\\*", "*")) for word in words)
