"""Hypotheses and references: read, put back into order, and turned from subwords into text."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from seqstruct.data.text.subwords import moses_detokenizer, undo_bpe, undo_mixed, undo_sentencepiece

UNDO: dict[str, Callable[[str], str]] = {
    "bpe": undo_bpe,
    "sentencepiece": undo_sentencepiece,
    "mixed": undo_mixed,
    "none": str.strip,
}


def read_generate(lines: Iterable[str], name: str, expected: int) -> list[str]:
    """The best hypothesis of each sentence in the output of `fairseq-generate` or `fairseq-interactive`.

    lines: the whole output; `H-id<TAB>score<TAB>tokens` is read, the first of each id (with --nbest the best comes
    first).  The post-processed `D-` lines hold nothing more unless fairseq was told to detokenise, and are not read.
    name: what to call the output in an error.  expected: the number of sentences.
    Returns token strings in the order of the corpus, ids 0 to expected - 1.
    Raises ValueError if a sentence is missing, an id is outside the range, or an H- line is cut off.
    """
    found: dict[int, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.startswith("H-"):
            continue
        fields = line.rstrip("\r\n").split("\t")
        if len(fields) != 3 or not fields[0][2:].isdecimal():
            raise ValueError(f"{name}: line {number}: expected H-id, score and tokens separated by tabs")
        found.setdefault(int(fields[0][2:]), fields[2])
    if not found:
        raise ValueError(f"{name}: no H- line: expected the output of fairseq-generate")
    missing = [i for i in range(expected) if i not in found]
    if missing:
        shown = ", ".join(map(str, missing[:5])) + (", ..." if len(missing) > 5 else "")
        raise ValueError(f"{name}: {len(missing)} of {expected} sentences have no hypothesis (ids {shown})")
    if len(found) > expected:
        raise ValueError(f"{name}: sentence id {max(found)}, expected ids up to {expected - 1}, as in the references")
    return [found[i] for i in range(expected)]


def to_text(lines: Iterable[str], subwords: str = "none", detokenize: str | None = None) -> list[str]:
    """Lines of subwords as text.

    subwords: "bpe", "sentencepiece" (characters too), "mixed" or "none".  detokenize: two-letter language code for the
    Moses detokeniser, None for none; SentencePiece needs none.  Raises ValueError for another kind of subwords.
    """
    if subwords not in UNDO:
        raise ValueError(f"subwords: expected one of {', '.join(UNDO)}, got {subwords!r}")
    undo = UNDO[subwords]
    finish = moses_detokenizer(detokenize) if detokenize else str
    return [finish(undo(line)) for line in lines]
