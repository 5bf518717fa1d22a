"""Words and subwords, there and back: Moses tokenisation, byte-pair encoding, SentencePiece, words and characters.

Sources: Moses tokeniser and detokeniser as ported by sacremoses; byte-pair encoding as in Sennrich et al. (2016,
sec. 3.2), by subword-nmt; unigram language model segmentation as in Kudo (2018) and byte-pair encoding of text with its
spaces, by sentencepiece (Kudo and Richardson 2018); mixed words and characters as in Wu et al. (2016, sec. 4.2).
Everything here is deterministic: the same lines give the same model, byte for byte.

All but "words" are lossless: tokens, or for SentencePiece and characters the text, come back whole.  The exceptions are
U+2581, which SentencePiece and characters take for a space, and "@@" at the end of a token, which byte-pair encoding
takes for its own mark.

Deviations from the Moses defaults: no XML entities are written for special characters, so that subwords see the
characters themselves; no punctuation is normalised, so that what is trained on is what is scored against.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr
from functools import partial
from tempfile import TemporaryDirectory

from seqstruct.data.files import atomic_write, write_text

# by kind: whether it cuts Moses tokens, not the text itself, and the file of what is learnt ("%s" may be a language)
KINDS = {
    "bpe": (True, "codes%s.bpe"),
    "sentencepiece": (False, "sentencepiece%s.model"),
    "sentencepiece-bpe": (False, "sentencepiece%s.model"),
    "words": (True, "words%s.txt"),
    "mixed": (True, "words%s.txt"),
    "characters": (False, ""),
}
UNKNOWN_WORD = "<unk>"  # as fairseq's dictionaries write it
BEGIN, MIDDLE, END = "<B>", "<M>", "<E>"  # before the characters of a word that is spelled out
BPE_MARKER = "@@"
SENTENCEPIECE_SPACE = "\u2581"
LONGEST_LINE = 4192  # bytes that SentencePiece learns from

_COMMAS = str.maketrans("ŞşŢţ", "ȘșȚț")
_CONTROLS = dict.fromkeys([*range(32), *range(127, 160)], " ")
_ESCAPES = {"&bar;": "|", "&#124;": "|", "&#91;": "[", "&#93;": "]", "&lt;": "<", "&gt;": ">", "&quot;": '"',
            "&apos;": "'", "&amp;": "&"}
_ESCAPE = re.compile("|".join(_ESCAPES))
# "&amp;" alone is no proof: it is what remains of HTML in text that no tokeniser has seen
MOSES_ESCAPE = re.compile("|".join(escape for escape in _ESCAPES if escape != "&amp;"))


def normalize_spaces(line: str) -> str:
    """The line with each run of Unicode white space as one space and none at its ends."""
    return " ".join(line.split())


def tidy(line: str) -> str:
    """The line with each run of white space and control characters, which Moses deletes, as one space and none at its
    ends; empty where there is nothing to tokenise."""
    return normalize_spaces(line.translate(_CONTROLS))


def deescape(line: str) -> str:
    """The line with the characters that Moses's tokeniser writes as XML entities (`&apos;` and the like)."""
    return _ESCAPE.sub(lambda found: _ESCAPES[found[0]], line)


def with_commas(line: str) -> str:
    """The line with Romanian letters as they should be, with a comma, where it has them with a cedilla."""
    return line.translate(_COMMAS)


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


def learn_truecase(lines: Iterable[str], path: str | os.PathLike) -> Callable[[str], str]:
    """Learn how words are written where no sentence begins and write it, as Moses does (Koehn et al. 2007); a function
    from a line of tokens to the same line, truecased.

    The first word of a sentence gets its most frequent form, and so does a word elsewhere that was never seen as it is
    written.  A line stays as it is where sacremoses would take words apart, for angle brackets.
    """
    from sacremoses import MosesTruecaser

    truecaser = MosesTruecaser()
    with TemporaryDirectory() as scratch:  # the library's own file is for its owner's eyes alone
        truecaser.train((line.split() for line in lines), save_to=os.path.join(scratch, "model"))
        with open(os.path.join(scratch, "model"), encoding="utf-8") as model, atomic_write(path) as stream:
            stream.writelines(model)

    return load_truecase(path)


def load_truecase(path: str | os.PathLike) -> Callable[[str], str]:
    """What `learn_truecase` gave, from the file that it wrote."""
    from sacremoses import MosesTruecaser

    truecaser = MosesTruecaser(os.fspath(path))

    def truecase(line: str) -> str:
        words = truecaser.truecase(line, use_known=True)
        return " ".join(words) if len(words) == len(line.split()) else line

    return truecase


def undo_truecase(line: str) -> str:
    """Tokens with a capital where a sentence begins, after ".", ":", "?" and "!" too, as Moses has it."""
    from sacremoses import MosesDetruecaser

    return MosesDetruecaser().detruecase(line, return_str=True)


def learn_bpe(lines: Iterable[str], path: str | os.PathLike, vocabulary: int) -> None:
    """Learn merges from tokenised lines and write them as a subword-nmt codes file.

    vocabulary: the number of subword types aimed at: the characters, inside and at the end of words, plus one for each
    merge.  Learning stops earlier when no pair of symbols occurs twice; standard error then says how many there are.
    Raises ValueError if the characters alone exceed it, or if there is nothing to learn from.
    """
    from subword_nmt import learn_bpe as learner
    from tqdm import tqdm

    # a bar on a terminal alone: elsewhere each step of it is a line
    learner.tqdm = partial(tqdm, disable=None, file=sys.stderr)
    words = Counter(word for line in lines for word in line.split())
    characters = {(c, i + 1 == len(word)) for word in words for i, c in enumerate(word)}
    if all(len(word) == 1 for word in words):
        raise ValueError("byte-pair encoding has nothing to learn from: expected words of two characters or more")
    if vocabulary <= len(characters):
        raise ValueError(f"vocabulary: expected more than the text's {len(characters)} characters, got {vocabulary}")
    codes, counted = io.StringIO(), (f"{word} {count}" for word, count in words.items())
    with redirect_stderr(io.StringIO()):  # where learning stops is said below, with the numbers
        learner.learn_bpe(counted, codes, vocabulary - len(characters), is_dict=True)
    merges = codes.getvalue().count("\n") - 1  # the first line is a version
    if not merges:  # subword-nmt does not read such a file
        raise ValueError("byte-pair encoding has nothing to learn from: no pair of symbols occurs twice in words")
    with atomic_write(path) as stream:
        stream.write(codes.getvalue())
    found = len(characters) + merges
    if found < vocabulary:
        print(f"subwords: {found:,} of {vocabulary:,}: no other pair of symbols occurs twice", file=sys.stderr)


def load_bpe(path: str | os.PathLike) -> Callable[[str], str]:
    """A function from a tokenised line to its subwords; "@@" ends each that does not end a word."""
    from subword_nmt.apply_bpe import BPE

    with open(path, encoding="utf-8") as codes:
        return BPE(codes, separator=BPE_MARKER).process_line


def learn_sentencepiece(
    lines: Iterable[str], path: str | os.PathLike, vocabulary: int, algorithm: str = "unigram"
) -> None:
    """Learn a model of exactly `vocabulary` pieces from lines of text and write it.

    algorithm: "unigram" or "bpe".  The text is taken as it is (no Unicode normalisation); lines that are longer than
    SentencePiece reads are left out, and told of.
    Raises ValueError if so many pieces cannot be made of it.
    """
    import sentencepiece

    model, long = io.BytesIO(), 0

    def counted() -> Iterator[str]:
        nonlocal long
        for line in lines:
            long += len(line.encode()) > LONGEST_LINE
            yield line

    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=counted(), model_writer=model, vocab_size=vocabulary, model_type=algorithm,
            character_coverage=1.0, normalization_rule_name="identity", num_threads=1, minloglevel=2,
        )
    except RuntimeError as error:
        reason = normalize_spaces(str(error))
        raise ValueError(f"SentencePiece cannot make {vocabulary} pieces of this text: {reason}") from None
    if long:
        print(f"subwords: not learned from {long:,} lines of more than {LONGEST_LINE:,} bytes", file=sys.stderr)
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
    return normalize_spaces(line.replace(" ", "").replace(SENTENCEPIECE_SPACE, " "))


def learn_words(lines: Iterable[str], path: str | os.PathLike, size: int) -> None:
    """Write the `size` most frequent words, one a line; of equally frequent ones the first in the alphabet.

    Raises ValueError if there are no words.
    """
    counts = Counter(word for line in lines for word in line.split())
    if not counts:
        raise ValueError("a list of words has nothing to learn from: expected words")
    kept = sorted(counts, key=lambda word: (-counts[word], word))[:size]
    write_text(path, kept)


def _listed(path: str | os.PathLike) -> set[str]:
    with open(path, encoding="utf-8", newline="\n") as stream:
        return {line.rstrip("\n") for line in stream}


def load_words(path: str | os.PathLike) -> Callable[[str], str]:
    """A function from a tokenised line to the same with "<unk>" for each word that is not in a list."""
    known = _listed(path)
    return lambda line: " ".join(word if word in known else UNKNOWN_WORD for word in line.split())


def load_mixed(path: str | os.PathLike) -> Callable[[str], str]:
    """A function from a tokenised line to words of a list and the characters of all others.

    The first character has "<B>" before it, the last "<E>", those between "<M>"; a single one "<B>".  A word that
    itself begins with such a mark is spelled out, so that nothing is ambiguous.
    """
    known = {word for word in _listed(path) if not word.startswith((BEGIN, MIDDLE, END))}

    def spell(word: str) -> str:
        marks = [BEGIN, *[MIDDLE] * (len(word) - 2), END]
        return " ".join(mark + character for mark, character in zip(marks, word, strict=False))

    return lambda line: " ".join(word if word in known else spell(word) for word in line.split())


def undo_mixed(line: str) -> str:
    """Words and characters joined to tokens; characters after what is no beginning of a word begin one."""
    words, spelled = [], False
    for piece in line.split():
        if piece.startswith((MIDDLE, END)) and spelled:
            words[-1] += piece[len(MIDDLE) :]
        elif piece.startswith((BEGIN, MIDDLE, END)):
            words.append(piece[len(BEGIN) :])
        else:
            words.append(piece)
        spelled = piece.startswith((BEGIN, MIDDLE))
    return " ".join(words)


def cut_characters(line: str) -> str:
    """Each character by itself, spaces as U+2581, one of which begins the line; `undo_sentencepiece` undoes it."""
    return " ".join(f"{SENTENCEPIECE_SPACE}{line.replace(' ', SENTENCEPIECE_SPACE)}")


# by kind: from the file of what was learnt to what cuts a line; and what undoes the cuts
LOAD: dict[str, Callable[[str | os.PathLike], Callable[[str], str]]] = {
    "bpe": load_bpe, "sentencepiece": load_sentencepiece, "sentencepiece-bpe": load_sentencepiece, "words": load_words,
    "mixed": load_mixed, "characters": lambda _: cut_characters,
}
UNDO: dict[str, Callable[[str], str]] = {
    "bpe": undo_bpe, "sentencepiece": undo_sentencepiece, "sentencepiece-bpe": undo_sentencepiece,
    "mixed": undo_mixed, "characters": undo_sentencepiece,
}
