"""Words and subwords, there and back: Moses tokenisation, byte-pair encoding, SentencePiece.

Sources: Moses tokeniser and detokeniser as ported by sacremoses; byte-pair encoding as in Sennrich et al. (2016,
sec. 3.2), by subword-nmt; unigram language model segmentation as in Kudo (2018) and byte-pair encoding of text with its
spaces, by sentencepiece (Kudo and Richardson 2018).  Everything here is deterministic: the same lines give the same
model, byte for byte.

Deviations from the Moses defaults: no XML entities are written for special characters, so that subwords see the
characters themselves; no punctuation is normalised, so that what is trained on is what is scored against.
"""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Callable, Iterable

from seqstruct.data.files import atomic_write

KINDS = ("bpe", "sentencepiece", "sentencepiece-bpe")
BPE_MARKER = "@@"
SENTENCEPIECE_SPACE = "\u2581"


def normalize_spaces(line: str) -> str:
    """The line with each run of Unicode white space as one space and none at its ends."""
    return " ".join(line.split())


def moses_tokenizer(language: str) -> Callable[[str], str]:
    """A function from a line of text to its tokens, separated by single spaces.

    language: two-letter code; it decides where a full stop or an apostrophe belongs to its word.
    """
    from sacremoses import MosesTokenizer

    tokenizer = MosesTokenizer(lang=language)
    return lambda line: tokenizer.tokenize(line, escape=False, return_str=True)


def moses_detokenizer(language: str) -> Callable[[str], str]:
    """A function from tokens separated by single spaces to a line of text, the inverse up to ambiguous spacing."""
    from sacremoses import MosesDetokenizer

    detokenizer = MosesDetokenizer(lang=language)
    return lambda line: detokenizer.detokenize(line.split(), unescape=False)


def learn_bpe(lines: Iterable[str], path: str | os.PathLike, vocabulary: int) -> None:
    """Learn merges from tokenised lines and write them as a subword-nmt codes file.

    vocabulary: the number of subword types aimed at: the characters, inside and at the end of words, plus one for each
    merge.  Learning stops earlier when no pair of symbols occurs twice.
    Raises ValueError if the characters alone exceed it, or if there is nothing to learn from.
    """
    from subword_nmt.learn_bpe import learn_bpe as learn_merges

    words = Counter(word for line in lines for word in line.split())
    characters = {(c, i + 1 == len(word)) for word in words for i, c in enumerate(word)}
    if all(len(word) == 1 for word in words):
        raise ValueError("byte-pair encoding has nothing to learn from: expected words of two characters or more")
    if vocabulary <= len(characters):
        raise ValueError(f"vocabulary: expected more than the text's {len(characters)} characters, got {vocabulary}")
    with atomic_write(path) as codes:
        counted = (f"{word} {count}" for word, count in words.items())
        learn_merges(counted, codes, vocabulary - len(characters), is_dict=True)


def load_bpe(path: str | os.PathLike) -> Callable[[str], str]:
    """A function from a tokenised line to its subwords; "@@" ends each that does not end a word."""
    from subword_nmt.apply_bpe import BPE

    with open(path, encoding="utf-8") as codes:
        return BPE(codes, separator=BPE_MARKER).process_line


def learn_sentencepiece(
    lines: Iterable[str], path: str | os.PathLike, vocabulary: int, algorithm: str = "unigram"
) -> None:
    """Learn a model of exactly `vocabulary` pieces from lines of text and write it.

    algorithm: "unigram" or "bpe".  The text is taken as it is (no Unicode normalisation).
    Raises ValueError if so many pieces cannot be made of it.
    """
    import sentencepiece

    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=model, vocab_size=vocabulary, model_type=algorithm,
            character_coverage=1.0, normalization_rule_name="identity", num_threads=1, minloglevel=2,
        )
    except RuntimeError as error:
        reason = normalize_spaces(str(error))
        raise ValueError(f"SentencePiece cannot make {vocabulary} pieces of this text: {reason}") from None
    with atomic_write(path, "wb") as stream:
        stream.write(model.getvalue())


def load_sentencepiece(path: str | os.PathLike) -> Callable[[str], str]:
    """A function from a line of text to its pieces; U+2581 begins each that begins a word."""
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return lambda line: " ".join(processor.encode(line, out_type=str))


def drop_rare_pieces(lines: Iterable[str], path: str | os.PathLike, least: int) -> None:
    """Mark the pieces that a sentencepiece model uses fewer than `least` times for these lines as unused.

    The model is written anew.  It then cuts words into the other pieces and into single characters, which all stay, as
    subword-nmt does with its vocabulary threshold (Sennrich et al. 2017).
    """
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

    cut = load_sentencepiece(path)
    counts = Counter(piece for line in lines for piece in cut(line).split())
    with open(path, "rb") as stream:
        model = ModelProto.FromString(stream.read())
    for piece in model.pieces:
        if piece.type == piece.NORMAL and len(piece.piece) > 1 and counts[piece.piece] < least:
            piece.type = piece.UNUSED
    with atomic_write(path, "wb") as stream:
        stream.write(model.SerializeToString())


def undo_bpe(line: str) -> str:
    """Subwords joined to tokens; a marker at the very end, of a word cut off, goes too."""
    return f"{line} ".replace(f"{BPE_MARKER} ", "").rstrip()


def undo_sentencepiece(line: str) -> str:
    """Pieces joined to text."""
    return normalize_spaces(line.replace(" ", "").replace(SENTENCEPIECE_SPACE, " "))
