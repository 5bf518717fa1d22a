"""Skip-gram vectors of text of your own, by the package gensim, where GloVe's are out of reach.

Skip-gram with negative sampling is of Mikolov et al. (2013, Distributed Representations of Words, secs. 2 and 2.2).

Texts are files, plain or .gz, or .zip archives whose .txt files are read: words that spaces separate, as they stand; a
line is a sentence, or several of at most 10,000 words.  OUT/vectors.txt has a line for each word, the most frequent
first, as `--vectors` of other commands reads it; OUT/vectors.json says of what it was made.  A word is told from five
drawn ones (negative sampling) within `--window` words of each other.  One thread, so that the same text and seed have
the same vectors.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from seqstruct.data.arguments import add_numbers, at_least
from seqstruct.data.downloads import DAMAGE, members
from seqstruct.data.files import existing, new_folder, sha256, undamaged, write_json, write_text
from seqstruct.data.text.aligned import read_lines

NEGATIVE = 5
LONGEST = 10_000  # words of a sentence: gensim trains on no more of one, and does not say so


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument("texts", nargs="+", type=Path, metavar="TEXT", help="files, plain or .gz, or .zip of .txt ones")
    add_numbers(parser, {"--size": (64, "numbers of a vector"), "--window": (5, "words to either side"),
                         "--epochs": (10, "passes over the text"), "--seed": (1, "of draws"),
                         "--min-count": (3, "occurrences that a word needs")})


def sentences(path: Path) -> Iterator[list[str]]:
    """The words of each line of a text, `LONGEST` at most together.

    Raises ValueError if it is missing, damaged or not UTF-8.
    """
    for words in map(str.split, _lines(path)):
        yield from (words[start : start + LONGEST] for start in range(0, len(words), LONGEST))


def _lines(path: Path) -> Iterator[str]:
    if existing(path).suffix != ".zip":
        yield from read_lines(path)
        return
    with undamaged(path, UnicodeDecodeError, *DAMAGE):
        for name, opened in members(path):
            if name.endswith(".txt"):
                with opened() as stream:
                    text = stream.read().decode("utf-8-sig")
                yield from text.split("\n")


def run(args: argparse.Namespace) -> None:
    from tqdm import tqdm

    at_least(args, command=True, size=1, window=1, epochs=1, min_count=1, seed=0)
    try:
        from gensim.models import Word2Vec
        from gensim.models.callbacks import CallbackAny2Vec
    except ImportError:
        raise ValueError("word-vectors needs gensim: pip install 'seqstruct[vectors]'") from None
    text = [sentence for path in args.texts for sentence in sentences(path)]
    settings = {name: getattr(args, name) for name in ("window", "epochs", "min_count", "seed")}
    model = Word2Vec(vector_size=args.size, sg=1, negative=NEGATIVE, workers=1, **settings)
    model.build_vocab(text)
    found = model.wv
    if not len(found):
        raise ValueError(f"no word stands {args.min_count} times in the text")
    bar = tqdm(total=args.epochs, unit="pass", disable=None, file=sys.stderr)

    class Advance(CallbackAny2Vec):
        def on_epoch_end(self, model: Word2Vec) -> None:
            bar.update()

    with bar:
        model.train(text, total_examples=model.corpus_count, epochs=args.epochs, callbacks=[Advance()])
    with new_folder(args.out) as folder:
        write_text(folder / "vectors.txt", (
            f"{word} {' '.join(f'{number:.6g}' for number in found[word])}" for word in found.index_to_key
        ))
        about = {"texts": [[path.name, sha256(path)] for path in args.texts], "size": args.size, **settings}
        write_json(folder / "vectors.json", {**about, "words": len(found)})
    print(f"{sum(map(len, text))} words of text: vectors of {len(found)} words")
