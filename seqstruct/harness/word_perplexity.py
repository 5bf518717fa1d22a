"""Perplexity of a word from what fairseq-eval-lm says of subwords, an end of line counted as a word.

`python -m seqstruct.harness.word_perplexity METRIC=LOG:TEXT ... --out FILE`: LOG is of fairseq-eval-lm, TEXT is what
was binarised, with pieces that end in "@@" where words are cut.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from seqstruct.command import module_parser, run_module
from seqstruct.data.text.aligned import read_lines
from seqstruct.scoring.measurement import Measurement, write


def word_perplexity(log: Path, text: Path) -> float:
    """2 to the bits of the whole text by the number of its words.

    Raises ValueError if the log has no loss, or is of another number of tokens than the text has.
    """
    said = log.read_text(encoding="utf-8")
    bits, tokens = re.findall(r"Loss \(base 2\): ([\d.]+)", said), re.findall(r"Evaluated ([\d,]+) tokens", said)
    if not bits or not tokens:
        raise ValueError(f"{log}: fairseq-eval-lm gave no loss")
    count, (expected, words) = int(tokens[-1].replace(",", "")), counts(text)
    if count != expected:
        raise ValueError(f"{log}: {count} tokens were evaluated, {text} has {expected}")
    return 2 ** (float(bits[-1]) * count / words)


def counts(text: Path) -> tuple[int, int]:
    """Tokens and words of a text in subwords, an end of line among both."""
    tokens = words = 0
    for line in read_lines(text):
        pieces = line.split()
        tokens += len(pieces) + 1
        words += sum(not piece.endswith("@@") for piece in pieces) + 1
    return tokens, words


def main(argv: Sequence[str] | None = None) -> int:
    parser = module_parser("seqstruct.harness.word_perplexity", __doc__)
    parser.add_argument("requests", nargs="+", metavar="METRIC=LOG:TEXT")
    parser.add_argument("--out", required=True, metavar="FILE", help="JSON, for `seqstruct record`")
    return run_module(parser, argv, lambda args: write(args.out, list(map(_measured, args.requests))))


def _measured(request: str) -> Measurement:
    parts = re.fullmatch(r"(\w+)=(.+):(.+)", request)
    if parts is None:
        raise ValueError(f"expected METRIC=LOG:TEXT, got {request!r}")
    return Measurement(parts[1], word_perplexity(Path(parts[2]), Path(parts[3])), "perplexity")


if __name__ == "__main__":
    raise SystemExit(main())
