"""Small annotated corpora for tests."""

import random

from seqstruct.data.parsing.folder import Annotated
from seqstruct.data.parsing.sentence import TOP, AnnotatedSentence

NOUNS, VERBS = ["dog", "cat", "bird", "tree"], ["sees", "likes", "finds"]


def sentence(generator, kind):
    """Determiner, noun, verb, determiner, noun, sometimes an adverb: tree and graph follow from the words."""
    words = ["the", generator.choice(NOUNS), generator.choice(VERBS), "a", generator.choice(NOUNS)]
    tags = ["DET", "NOUN", "VERB", "DET", "NOUN"]
    heads = [2, 3, 0, 5, 3]
    arcs = [(0, 3, TOP), (1, 2, "BV"), (3, 2, "ARG1"), (3, 5, "ARG2"), (4, 5, "BV")]
    if generator.random() < 0.5:
        words, tags, heads = [*words, "often"], [*tags, "ADV"], [*heads, 3]
        arcs.append((6, 3, "ARG1"))
    label = "yes" if "dog" in words else "no"
    return AnnotatedSentence(
        tuple(words), tuple(words), tuple(tags),
        heads=tuple(heads) if kind != "classes" else None,
        arcs=tuple(sorted(arcs)) if kind == "graphs" else None, label=label if kind == "classes" else None,
    )


def corpus(kind, seed=1, sizes=(40, 7, 5)):
    """Training, validation and test sentences."""
    generator = random.Random(seed)
    counts = zip(("train", "valid", "test"), sizes, strict=True)
    return Annotated(kind, {split: [sentence(generator, kind) for _ in range(n)] for split, n in counts})
