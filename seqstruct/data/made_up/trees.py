"""Trees in brackets, under the names of the Penn Treebank's files."""

from __future__ import annotations

import random
from pathlib import Path

from seqstruct.data.files import write_text


def clause(generator: random.Random, depth: int = 3) -> str:
    """A bracketed sentence: a noun phrase with relative clauses, a verb that agrees with it, an object perhaps."""
    def noun_phrase(left: int) -> tuple[str, str]:
        number = generator.choice(("", "s"))
        noun = generator.choice(("dog", "bird", "tree", "child")) + number
        phrase = f"(NP (DT the) (NN {noun}))"
        if left and generator.random() < 0.4:
            inner, inner_number = noun_phrase(left - 1)
            phrase = f"(NP {phrase} (SBAR (WHNP (IN that)) (S {inner} (VP {verb(inner_number)} (NP (-NONE- *T*))))))"
        return phrase, number

    def verb(number: str) -> str:
        return f"(VBZ {generator.choice(('sees', 'likes'))})" if number == "" else "(VBP see)"

    subject, number = noun_phrase(depth)
    return f"( (S {subject} (VP {verb(number)} {noun_phrase(depth - 1)[0]}) (. .)) )"


def ptb_sentences(folder: Path) -> None:
    """30 sentences with relative clauses in each section."""
    generator = random.Random(1)
    for section in (*range(2, 22), 23, 24):
        write_text(folder / f"wsj_{section:02}01.mrg", (clause(generator) for _ in range(30)))


def made_up_tree(generator: random.Random) -> str:
    """One bracketed sentence such as (S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (DT a) (NN cat))) (. .))."""

    def phrase(depth: int) -> str:
        noun = generator.choice(["dog", "cat", "tree", "bird", "house", "man"])
        plain = f"(NP (DT {generator.choice(['the', 'a'])}) (NN {noun}))"
        if depth == 0 or generator.random() < 0.6:
            return plain
        return f"(NP {plain} (PP (IN {generator.choice(['on', 'with', 'near'])}) {phrase(depth - 1)}))"

    verb = generator.choice(["saw", "had", "liked", "found"])
    return f"( (S {phrase(1)} (VP (VBD {verb}) {phrase(2)} (NP-TMP (-NONE- *T*-1))) (. .)) )"


def ptb_trees(folder: Path) -> None:
    """For the treebank's sample 120 sentences to train, 20 to validate, 20 to test; for the treebank 6 in each other
    section, which the sample does not have."""
    generator = random.Random(1)
    for number, count in ((1, 120), (160, 20), (180, 20), *((100 * section + 1, 6) for section in range(2, 25))):
        write_text(folder / f"wsj_{number:04}.mrg", (made_up_tree(generator) for _ in range(count)))
