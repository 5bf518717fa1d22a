"""Single sentences for language modeling, with unknown words in classes, as Dyer et al. (2016) made them of the PTB.

    ptb              .mrg trees of the Penn Treebank: sections 02-21, 24 (or 22) and 23 to train, validate and test
    treebank-sample  the part of them that nltk distributes: files 1-159, 160-179 and 180-199
    brown            brown.zip of nltk, dealt out by document
    wikitext2        WikiText-2 raw, paragraphs cut into sentences after each ".", "!" or "?"
    wikitext2-part   its validation file in place of its training file: the last tenth of the articles to validate on

Of trees, empty elements (-NONE-) are dropped and the words stay as written: case, numbers, -LRB-.  A word that training
has once, or never, becomes a class such as UNK-LC-ing: `unknown_class`.  The vocabulary is what then stands in the
training set.  Where the source is silent: validation is section 24, as in Dyer et al.

The result holds text/, bin/0, bin/1 ... (see `shards`; for fairseq's task language_modeling with --sample-break-mode
eos) and corpus.json.
"""

from __future__ import annotations

import argparse
import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from seqstruct.data import shards
from seqstruct.data.arguments import at_least
from seqstruct.data.checked import SPLITS, check_counts
from seqstruct.data.corpora import language_modeling as corpora
from seqstruct.data.files import atomic_write, new_folder, sha256, write_json
from seqstruct.data.text.trees import Tree, read_sample, read_sections, remove_empty, trees_of, words

CORPORA = ("ptb", "treebank-sample", "brown", "wikitext2", "wikitext2-part")
VALIDATE_EVERY = 20_000  # training sentences in a shard, appendix F.2
TRAINING = dict.fromkeys(range(2, 22), "train")  # sections
VALIDATION_SECTIONS = {24: 1346, 22: 1700}  # and their sentences
SENTENCE_ENDS = frozenset(".!?")
# endings of words of five letters or more, first match
SUFFIXES = ("ed", "ing", "ion", "er", "est", "ly", "ity", "y", "al")


def unknown_class(word: str, known: Collection[str]) -> str:
    """The class of a word that is not known: the signature of the Berkeley parser (Petrov et al. 2006), as used by
    Dyer et al. (2016, sec. 5).

    UNK, then by capitals: -INITC for a word with one, its first letter (and -KNOWNLC if it is known in lower case);
    -CAPS for one that begins with a capital and has more, or has one and does not begin with a letter; -LC for others
    with a small letter.  Then -NUM and -DASH where there is a digit or a hyphen.  Last -s for three characters or more
    (none for ss, is or us), or one of `SUFFIXES` for five or more without hyphen and without digits beside capitals.
    Raises ValueError on the empty word.
    """
    if not word:
        raise ValueError("expected a word, got an empty one")
    lower, first = word.lower(), word[0]
    capitals = sum(c.isalpha() and c.isupper() for c in word)
    digit, dash = any(map(str.isdigit, word)), "-" in word
    name = "UNK"
    if first.isupper():
        name += ("-INITC-KNOWNLC" if lower in known else "-INITC") if capitals == 1 else "-CAPS"
    elif not first.isalpha() and capitals:
        name += "-CAPS"
    elif any(c.isalpha() and c.islower() for c in word):
        name += "-LC"
    name += "-NUM" * digit + "-DASH" * dash
    if lower.endswith("s") and len(lower) >= 3:
        return name if lower[-2] in "siu" else f"{name}-s"
    if len(lower) >= 5 and not dash and not (digit and capitals):
        name += next((f"-{suffix}" for suffix in SUFFIXES if lower.endswith(suffix)), "")
    return name


def full_sentences(splits: Mapping[str, Iterable[Tree]]) -> dict[str, list[list[str]]]:
    """The words of trees without empty elements; trees that have nothing else are left out."""
    full = {split: map(remove_empty, trees) for split, trees in splits.items()}
    return {split: [words(tree) for tree in trees if tree is not None] for split, trees in full.items()}


def cut_sentences(line: str) -> Iterator[list[str]]:
    """A line of words cut after each ".", "!" or "?"; what closes a quotation or bracket goes to the next sentence."""
    sentence: list[str] = []
    for word in line.split():
        sentence.append(word)
        if word in SENTENCE_ENDS:
            yield sentence
            sentence = []
    if sentence:
        yield sentence


def read_sentences(
    corpus: str, source: Path, scratch: Path, validation: int = 24, checked: bool = True
) -> dict[str, list[list[str]]]:
    """Sentences by split, words as they stand in the corpus.

    source: of trees, a folder or .zip; else a folder as of `corpora.read_lines`.  scratch, checked: as there.
    corpus: of `CORPORA`.  validation: of `VALIDATION_SECTIONS`, of ptb.  Raises ValueError as its reader does.
    """
    if corpus == "ptb":
        return full_sentences(read_sections(source, {**TRAINING, validation: "valid", 23: "test"}))
    if corpus == "treebank-sample":
        return full_sentences(read_sample(source))
    if corpus == "wikitext2-part":
        lines = _part(corpora.read_lines("wikitext2", source, scratch, checked, ("valid", "test")))
    else:
        lines = corpora.read_lines(corpus, source, scratch, checked)
    if corpus == "brown":
        return {split: [line.split() for line in lines[split] if line] for split in SPLITS}
    text = {split: [line for line in lines[split] if line and not line.startswith("=")] for split in SPLITS}
    return {split: [s for line in text[split] for s in cut_sentences(line)] for split in SPLITS}


def _part(lines: Mapping[str, Iterable[str]]) -> dict[str, Iterable[str]]:
    """The articles of the validation file, nine tenths to train on and at least one to validate on; the test file."""
    articles: list[list[str]] = [[]]
    for line in lines["valid"]:
        if re.fullmatch("= [^=].* =", line):
            articles.append([])
        articles[-1].append(line)
    kept = len(articles) - max(1, len(articles) // 10)
    chain = itertools.chain.from_iterable
    return {"train": list(chain(articles[:kept])), "valid": list(chain(articles[kept:])), "test": lines["test"]}


def write_text(splits: Mapping[str, list[list[str]]], folder: Path) -> dict[str, int]:
    """SPLIT.txt with unknown words in classes; how many types stand in training, the classes among them.

    A class that training does not have is UNK, the plainest one, or fairseq's unknown word where that is not there.
    Raises ValueError if a split is empty.
    """
    for split in SPLITS:
        if not splits[split]:
            raise ValueError(f"no sentence in the {split} set")
    counts = Counter(word for sentence in splits["train"] for word in sentence)
    known = {word for word, count in counts.items() if count > 1}
    vocabulary: set[str] = set()
    for split in SPLITS:
        with atomic_write(folder / f"{split}.txt") as stream:
            for sentence in splits[split]:
                classed = [word if word in known else unknown_class(word, known) for word in sentence]
                if split == "train":
                    vocabulary.update(classed)
                stream.write(" ".join(word if word in vocabulary else "UNK" for word in classed) + "\n")
    return {"words": len(known & vocabulary), "classes": len(vocabulary - known)}


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument("--corpus", choices=CORPORA, default="ptb", help="which text (default %(default)s)")
    parser.add_argument("--validation-section", type=int, choices=VALIDATION_SECTIONS, default=24,
                        help="of the Penn Treebank (default 24)")
    parser.add_argument("--train-sentences", type=int, default=0, metavar="N",
                        help="take the first N sentences of training alone (default 0: all)")


def run(args: argparse.Namespace) -> None:
    trees = args.corpus in ("ptb", "treebank-sample")
    if not trees and args.source is None:
        raise ValueError(f"nothing is downloaded, --from FOLDER is needed: the one with the files of {args.corpus}")
    source = trees_of(args.source) if trees else Path(args.source)
    at_least(args, train_sentences=0)
    with new_folder(args.out) as folder:
        scratch, checked = folder.parent / "unpacked", not args.unchecked
        splits = read_sentences(args.corpus, source, scratch, args.validation_section, checked)
        if args.corpus == "ptb" and checked:
            published = {"train": 39_832, "valid": VALIDATION_SECTIONS[args.validation_section], "test": 2416}
            check_counts("ptb", {split: len(found) for split, found in splits.items()}, published, "sentences", 0.001)
        if args.train_sentences:
            splits["train"] = splits["train"][: args.train_sentences]
        types = write_text(splits, folder / "text")
        count = shards.shard_count(len(splits["train"]), VALIDATE_EVERY)
        shards.binarise(folder / "text", folder / "bin", count)
        counts = {s: {"sentences": len(splits[s]), "words": sum(map(len, splits[s]))} for s in SPLITS}
        sums = {f"{split}.txt": sha256(folder / "text" / f"{split}.txt") for split in SPLITS}
        write_json(folder / "corpus.json", {
            "corpus": args.corpus, "types": types, "shards": count, "counts": counts, "sha256": sums,
        })
    for split, found in counts.items():
        print(f"{split}: {found['sentences']} sentences, {found['words']} words")
    print(f"vocabulary: {types['words']} words and {types['classes']} classes of unknown words")
