"""Hypotheses and references: read, put back into order, and turned from subwords into text."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from seqstruct.data.text.subwords import (
    BPE_MARKER,
    SENTENCEPIECE_SPACE,
    UNKNOWN_WORD,
    deescape,
    moses_detokenizer,
    undo_truecase,
)
from seqstruct.data.text.subwords import UNDO as UNDO_KIND

UNDO = {**{kind: UNDO_KIND[kind] for kind in ("bpe", "sentencepiece", "mixed")}, "none": str.strip}


def read_generate(lines: Iterable[str], name: str, expected: int) -> list[str]:
    """The best hypothesis of each sentence in the output of `fairseq-generate` or `fairseq-interactive`.

    lines: the whole output; `H-id<TAB>score<TAB>tokens` is read, the first of each id (with --nbest the best comes
    first).  The post-processed `D-` lines hold nothing more unless fairseq was told to detokenise, and are not read.
    name: what to call the output in an error.  expected: the number of sentences.
    Returns token strings in the order of the corpus, ids 0 to expected - 1.
    Raises ValueError if a sentence is missing, an id is outside the range, an H- line is cut off, or hypotheses of a
    sentence do not stand together, as in the outputs of two runs.
    """
    found: dict[int, str] = {}
    last: int | None = None
    for number, line in enumerate(lines, 1):
        if not line.startswith("H-"):
            continue
        fields = line.rstrip("\r\n").split("\t")
        if len(fields) != 3 or not fields[0][2:].isdecimal():
            raise ValueError(f"{name}: line {number}: expected H-id, score and tokens separated by tabs")
        sentence = int(fields[0][2:])
        if sentence in found and sentence != last:
            raise ValueError(f"{name}: line {number}: the hypotheses of sentence {sentence} do not stand together; "
                             "expected the output of one run")
        found.setdefault(sentence, fields[2])
        last = sentence
    if not found:
        raise ValueError(f"{name}: no H- line: expected the output of fairseq-generate")
    if not expected:
        raise ValueError(f"{name}: {len(found)} sentences, but the references are empty")
    ordered = in_order(found, expected, name)
    if len(found) > expected:
        raise ValueError(f"{name}: sentence id {max(found)}, expected ids up to {expected - 1}, as in the references")
    return ordered


def in_order(found: Mapping[int, str], expected: int, name: str) -> list[str]:
    """Hypotheses by id in the order of the ids 0 to expected - 1.  Raises ValueError if one is missing."""
    missing = [i for i in range(expected) if i not in found]
    if missing:
        shown = ", ".join(map(str, missing[:5])) + (", ..." if len(missing) > 5 else "")
        raise ValueError(f"{name}: {len(missing)} of {expected} sentences have no hypothesis (ids {shown})")
    return [found[i] for i in range(expected)]


def check_targets(
    lines: Iterable[str], name: str, references: Sequence[Sequence[str]], subwords: str = "none"
) -> None:
    """Refuse the output of fairseq-generate for other references than those at hand, by the targets that it prints.

    references: one list or several, of which one has to be that of the targets.  Compared are the targets (T- lines)
    without unknown words: most of them must hold the text of their reference, or be held by it, whatever the case and
    the spaces.  name, subwords: as of `read_generate` and `to_text`.  Raises ValueError if they do not.
    """
    targets = dict(line[2:].rstrip("\r\n").split("\t", 1) for line in lines if line.startswith("T-") and "\t" in line)
    known = {int(number): text for number, text in targets.items() if number.isdecimal() and UNKNOWN_WORD not in text}
    ours = dict(zip(known, map(_bare, to_text(known.values(), subwords)), strict=True))

    def strange(found: Sequence[str]) -> list[int]:
        pairs = ((number, text, _bare(found[number])) for number, text in ours.items() if number < len(found))
        return [number for number, text, other in pairs if text not in other and other not in text]

    wrong = min(map(strange, references), key=len)
    if 2 * len(wrong) > len(ours):
        raise ValueError(f"{name}: made for other references: its target {wrong[0]} is {known[wrong[0]]!r}, the "
                         f"reference {references[0][wrong[0]]!r} ({len(wrong)} of {len(ours)} differ)")


def _bare(text: str) -> str:
    """Without spaces, case and what tokenisers may change."""
    plain = unicodedata.normalize("NFKC", deescape(text)).replace(SENTENCEPIECE_SPACE, "").replace(BPE_MARKER, "")
    return "".join(plain.casefold().split())


def to_text(
    lines: Iterable[str], subwords: str = "none", detokenize: str | None = None, truecased: bool = False
) -> list[str]:
    """Lines of subwords as text.

    subwords: "bpe", "sentencepiece" (characters too), "mixed" or "none".  detokenize: two-letter language code for the
    Moses detokeniser, None for none; SentencePiece needs none.  truecased: whether sentences get their capitals back.
    Raises ValueError for another kind of subwords.
    """
    if subwords not in UNDO:
        raise ValueError(f"subwords: expected one of {', '.join(UNDO)}, got {subwords!r}")
    undo = UNDO[subwords]
    finish = moses_detokenizer(detokenize) if detokenize else str
    capitals = undo_truecase if truecased else str
    return [finish(capitals(undo(line))) for line in lines]
