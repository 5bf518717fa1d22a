"""Segmentations of text drawn at random, for training on many of them: subword regularization and BPE dropout.

Unigram models (Kudo 2018, sec. 3.3 and 3.4): a segmentation x of a sentence is drawn with probability proportional to
P(x) ** alpha, out of the l best or out of all of them, the latter by filtering forward and sampling backward.
Byte-pair encoding, by SentencePiece or subword-nmt (Provilkov et al. 2020, sec. 3): in each step every merge that
could be made is left out with probability `dropout`, and the foremost of the others is made, until none is left.

The draws come from a generator handed in, where the libraries' own samplers draw from a state of their process: a
sentence's segmentation is then the same whichever data loader asks for it, and in whatever order.

Deviations: pieces that the dictionary lacks are not drawn.  It was usually counted on the best segmentations alone;
with a dictionary of all the model's pieces nothing is left out.  In byte-pair encoding a word is drawn again if its
draw holds such a piece, and keeps its best segmentation if that does not help.  Of several places for one merge, one
is merged in a step.
"""

from __future__ import annotations

import math
import os
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any

from numpy.random import Generator

from seqstruct.data.text.subwords import BPE_MARKER, SENTENCEPIECE_SPACE, undo_bpe, undo_sentencepiece

WORD = re.compile(f"{SENTENCEPIECE_SPACE}[^{SENTENCEPIECE_SPACE}]*|[^{SENTENCEPIECE_SPACE}]+")
# How much less probable than the least piece a character is that the model does not know: SentencePiece's figure.
UNKNOWN_PENALTY = 10.0
CACHED_WORDS = 1 << 16
TRIES = 8


@dataclass(frozen=True)
class Sampling:
    """How segmentations are drawn, with the defaults that the papers recommend for small corpora.

    alpha: exponent on the probabilities of a unigram model, 0 or more; 0 makes all segmentations alike, and the greater
    it is, the more often the best one comes.  nbest: a sentence's best segmentations to draw from, 1 or more, or -1 for
    all there are.  dropout: probability that byte-pair encoding leaves a merge out, 0 to 1.
    """

    alpha: float = 0.2
    nbest: int = -1
    dropout: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.alpha < math.inf:
            raise ValueError(f"alpha: expected a number of 0 or more, got {self.alpha}")
        if self.nbest != -1 and self.nbest < 1:
            raise ValueError(f"nbest: expected 1 or more, or -1 for all segmentations, got {self.nbest}")
        if not 0 <= self.dropout <= 1:
            raise ValueError(f"dropout: expected a probability, 0 to 1, got {self.dropout}")


def load_sampler(path: str | os.PathLike, dictionary: Collection[str], sampling: Sampling) -> Sampler:
    """The sampler for a model of SentencePiece (unigram or byte-pair encoding) or a codes file of subword-nmt.

    Its `text` is that of a line which may be in the model's subwords already, `best` has the pieces of the one best
    segmentation, `sample` those of one drawn at random.  dictionary: the pieces that may be drawn.
    Raises ValueError if the file is neither, or a model whose segmentations cannot be drawn word by word.
    """
    with open(path, "rb") as stream:
        start = stream.read(9)
    if start.startswith(b"#version:"):
        return SubwordNMTSampler(path, dictionary, sampling)
    model = read_sentencepiece(path)
    kind = model.trainer_spec.model_type
    if kind == model.trainer_spec.UNIGRAM:
        return UnigramSampler(path, model, dictionary, sampling)
    if kind == model.trainer_spec.BPE:
        return SentencePieceBPESampler(path, model, dictionary, sampling)
    raise ValueError(f"{path}: expected a unigram or a byte-pair encoding model of SentencePiece")


def read_sentencepiece(path: str | os.PathLike) -> Any:
    """The ModelProto in a SentencePiece file.

    Raises ValueError if it is none, has pieces that cross spaces, or falls back to bytes.
    """
    from google.protobuf.message import DecodeError
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

    with open(path, "rb") as stream:
        data = stream.read()
    try:
        model = ModelProto.FromString(data)
    except DecodeError:
        model = None
    if model is None or not model.pieces:
        raise ValueError(f"{path}: expected a SentencePiece model or a codes file of subword-nmt")
    if not model.normalizer_spec.add_dummy_prefix:
        raise ValueError(f"{path}: expected a model that puts a space before the first word")
    for piece in model.pieces:
        if piece.type == piece.BYTE:
            raise ValueError(f"{path}: expected a model without byte fallback")
        if SENTENCEPIECE_SPACE in piece.piece[1:]:
            raise ValueError(f"{path}: expected pieces with a space at their beginning only, got {piece.piece!r}")
    return model


def draw_merges(
    symbols: Sequence[str], rank: Callable[[str, str], float | None], dropout: float, generator: Generator | None
) -> tuple[list[str], dict[str, tuple[str, str]]]:
    """Merge adjacent symbols, the pair of least rank first and the leftmost of equals, each left out at random.

    rank: of a pair, None if the two never merge.  generator: may be None if dropout is 0.
    Returns the symbols that remain, and the two parts of each that was made.
    Cost: quadratic in the number of symbols, which are a word's.
    """
    symbols, parts = list(symbols), {}
    while len(symbols) > 1:
        ranked = ((rank(*pair), i) for i, pair in enumerate(zip(symbols, symbols[1:], strict=False)))
        open_to = [(r, i) for r, i in ranked if r is not None and (not dropout or generator.random() >= dropout)]
        if not open_to:
            break
        _, i = min(open_to)
        pair = (symbols[i], symbols[i + 1])
        parts["".join(pair)] = pair
        symbols[i : i + 2] = ["".join(pair)]
    return symbols, parts


class _SentencePiece:
    """What both kinds of SentencePiece models share: the processor, and words as units."""

    def __init__(self, path: str | os.PathLike, model: Any, dictionary: Collection[str]):
        import sentencepiece

        self.known = {p.piece for p in model.pieces}
        self.processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
        self.dictionary = dictionary

    def text(self, line: str) -> str:
        return undo_sentencepiece(line) if SENTENCEPIECE_SPACE in line else line

    def best(self, line: str) -> list[str]:
        return self.processor.encode(line, out_type=str)

    def words(self, line: str) -> list[str]:
        """The normalised text, cut before each space; SentencePiece says what it makes of the text by its pieces."""
        return WORD.findall("".join(self.best(line)))

    def joined(self, pieces: list[str]) -> list[str]:
        """With each run of characters that the model does not know as one piece, as SentencePiece has it."""
        runs = groupby(pieces, self.known.__contains__)
        return [piece for known, run in runs for piece in (run if known else ["".join(run)])]


class UnigramSampler(_SentencePiece):
    """Segmentations under a unigram language model over pieces."""

    def __init__(self, path: str | os.PathLike, model: Any, dictionary: Collection[str], sampling: Sampling):
        super().__init__(path, model, dictionary)
        self.sampling = sampling
        normal = [p for p in model.pieces if p.type == p.NORMAL]
        self.scores = {p.piece: p.score for p in normal}
        greatest = max(self.scores.values())
        # A symbol that the user defined is never cut: SentencePiece scores it above anything made of other pieces.
        self.scores |= {p.piece: len(p.piece) * greatest - 0.1 for p in model.pieces if p.type == p.USER_DEFINED}
        self.unknown = min(p.score for p in normal) - UNKNOWN_PENALTY
        self.longest = max(map(len, self.scores))
        self.lattices: dict[str, list] = {}

    def sample(self, line: str, generator: Generator) -> list[str]:
        if self.sampling.nbest == -1:
            return [piece for word in self.words(line) for piece in self._word(word, generator)]
        found = self.processor.nbest_encode_as_pieces(line, self.sampling.nbest)
        found = [pieces for pieces in found if all(p in self.dictionary for p in pieces)]
        if not found:
            return self.best(line)
        scores = [self.sampling.alpha * sum(self.scores.get(p, self.unknown) for p in pieces) for pieces in found]
        return found[_draw(_cumulative(scores), generator)]

    def _word(self, word: str, generator: Generator) -> list[str]:
        """One word's pieces, drawn from its last backward."""
        if (lattice := self.lattices.get(word)) is None:
            if len(self.lattices) >= CACHED_WORDS:
                self.lattices.clear()
            lattice = self.lattices[word] = self._lattice(word)
        pieces, end = [], len(word)
        while end:
            starts, cumulative = lattice[end]
            if not starts:
                return self.best(word.removeprefix(SENTENCEPIECE_SPACE))
            start = starts[_draw(cumulative, generator)]
            pieces.append(word[start:end])
            end = start
        return self.joined(pieces[::-1])

    def _lattice(self, word: str) -> list[tuple[list[int], list[float]]]:
        """For each end of a piece its possible starts, and the cumulative probabilities of these given the end.

        forward[j] is the logarithm of the summed P(x) ** alpha over the segmentations x of the first j characters.
        """
        forward, lattice = [0.0], [([], [])]
        for end in range(1, len(word) + 1):
            starts, scores = [], []
            for start in range(max(0, end - self.longest), end):
                piece = word[start:end]
                score = self.scores.get(piece)
                if score is None and start == end - 1:
                    score = self.unknown
                elif score is None or piece not in self.dictionary:
                    continue
                if forward[start] > -math.inf:
                    starts.append(start)
                    scores.append(forward[start] + self.sampling.alpha * score)
            top = max(scores, default=-math.inf)
            forward.append(top + math.log(sum(math.exp(s - top) for s in scores)) if scores else -math.inf)
            lattice.append((starts, _cumulative(scores) if scores else []))
        return lattice


class _MergeSampler:
    """What both kinds of byte-pair encoding share: a word is drawn, or cut as it is best where the draw is unusable.

    `word` gives one word's pieces; each merge is left out with probability dropout.
    """

    dictionary: Collection[str]
    dropout: float

    def sample(self, line: str, generator: Generator) -> list[str]:
        return [piece for word in self.words(line) for piece in self._draw_word(word, generator)]

    def _draw_word(self, word: str, generator: Generator) -> list[str]:
        for _ in range(TRIES):
            pieces = self.word(word, self.dropout, generator)
            if all(p in self.dictionary for p in pieces):
                return pieces
        return self.word(word, 0.0, None)


class SentencePieceBPESampler(_MergeSampler, _SentencePiece):
    """Byte-pair encoding by SentencePiece, whose merges are ranked by the score of the piece that they make."""

    def __init__(self, path: str | os.PathLike, model: Any, dictionary: Collection[str], sampling: Sampling):
        super().__init__(path, model, dictionary)
        self.dropout = sampling.dropout
        self.ranks = {p.piece: -p.score for p in model.pieces if p.type in (p.NORMAL, p.UNUSED)}
        # Unused pieces are steps towards longer ones, and are taken apart again where they are all that was reached.
        self.unused = {p.piece for p in model.pieces if p.type == p.UNUSED}
        if any(p.type == p.USER_DEFINED for p in model.pieces):
            raise ValueError(f"{path}: expected a byte-pair encoding model without symbols that the user defined")

    def word(self, word: str, dropout: float, generator: Generator | None) -> list[str]:
        symbols, parts = draw_merges(word, lambda a, b: self.ranks.get(a + b), dropout, generator)
        return self.joined([piece for symbol in symbols for piece in self._take_apart(symbol, parts)])

    def _take_apart(self, symbol: str, parts: dict[str, tuple[str, str]]) -> list[str]:
        if symbol not in self.unused or symbol not in parts:
            return [symbol]
        return [piece for part in parts[symbol] for piece in self._take_apart(part, parts)]


class SubwordNMTSampler(_MergeSampler):
    """Byte-pair encoding by subword-nmt over words separated by spaces (tokenised text)."""

    def __init__(self, path: str | os.PathLike, dictionary: Collection[str], sampling: Sampling):
        from subword_nmt.apply_bpe import BPE

        with open(path, encoding="utf-8") as codes:
            for number, line in enumerate(codes, 1):
                if number > 1 and len(line.split()) != 2:
                    raise ValueError(f"{path}: line {number}: expected two symbols to merge, got {line.strip()!r}")
            self.bpe = BPE(codes, separator=BPE_MARKER)
        if self.bpe.version != (0, 2):
            raise ValueError(f"{path}: expected codes of version 0.2, got {'.'.join(map(str, self.bpe.version))}")
        self.dictionary, self.dropout = dictionary, sampling.dropout

    def text(self, line: str) -> str:
        return undo_bpe(line)

    def best(self, line: str) -> list[str]:
        return self.bpe.process_line(line).split()

    def words(self, line: str) -> list[str]:
        return line.split()

    def word(self, word: str, dropout: float, generator: Generator | None) -> list[str]:
        if not dropout:
            return self.best(word)
        ends = "</w>"
        symbols, _ = draw_merges([*word[:-1], word[-1] + ends], lambda *pair: self.bpe.bpe_codes.get(pair), dropout,
                                 generator)
        return [symbol + BPE_MARKER for symbol in symbols[:-1]] + [symbols[-1].removesuffix(ends)]


Sampler = UnigramSampler | SentencePieceBPESampler | SubwordNMTSampler


def _cumulative(scores: Sequence[float]) -> list[float]:
    """Cumulative weights, up to any factor, of logarithms of weights."""
    top = max(scores)
    return list(accumulate(math.exp(score - top) for score in scores))


def _draw(cumulative: Sequence[float], generator: Generator) -> int:
    """An index with probability proportional to its weight."""
    return min(bisect_right(cumulative, generator.random() * cumulative[-1]), len(cumulative) - 1)
