"""Moses phrase tables with one more score: what a model gives to each phrase pair (Cho et al. 2014, sec. 3.1).

A line is `source ||| target ||| scores ||| alignment ||| counts`, with at least the first three fields; whatever stands
behind the scores is left as it is.  Moses takes the logarithm of every score itself, so a table for Moses needs
probabilities.
"""

from __future__ import annotations

import gzip
import io
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO

from seqstruct.data.text.aligned import UNPACKING_ERRORS
from seqstruct.scoring.forced import EncodedPair, ForcedScorer, TooLong
from seqstruct.scoring.resumable import ResumableFile, fingerprint

SCALES = ("log", "probability")
WINDOW = 20000  # lines held at a time; pairs of like length are found among them
SHOWN = 10  # lines left out that are reported one by one


def find_table(path: str) -> str:
    """The path, or that of the phrase table in it where it is a folder.  Raises ValueError if a folder has none."""
    if not os.path.isdir(path):
        return path
    for name in ("phrase-table", "phrase-table.gz"):
        if os.path.isfile(found := os.path.join(path, name)):
            return found
    raise ValueError(f"{path}: expected phrase-table or phrase-table.gz in it")


@dataclass
class Report:
    """Lines read, scored, malformed and beyond the models' limit; symbols unknown to the models; scores of a line."""

    lines: int = 0
    scored: int = 0
    malformed: int = 0
    too_long: int = 0
    unknown: int = 0
    columns: int | None = None


def parse(line: bytes, columns: int | None) -> list[str]:
    """The fields of a line, spaces left as they are.  columns: how many scores it must have, None for any number.

    Raises ValueError that says what is wrong.
    """
    try:
        fields = line.decode("utf-8").split("|||")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8: {error.reason}") from None
    if len(fields) < 3:
        raise ValueError(f"expected source ||| target ||| scores, got {len(fields)} fields")
    for name, text in zip(("source", "target"), fields, strict=False):
        if not text.strip():
            raise ValueError(f"the {name} is empty")
    scores = fields[2].split()
    for score in scores:
        try:
            float(score)
        except ValueError:
            raise ValueError(f"expected numbers as scores, got {score!r}") from None
    if columns is not None and len(scores) != columns:
        raise ValueError(f"expected {columns} scores, as in the lines before, got {len(scores)}")
    return fields


def score_blocks(
    lines: Iterable[bytes],
    scorer: ForcedScorer,
    say: Callable[[str], None],
    report: Report,
    scale: str = "log",
    keep: bool = False,
    window: int = WINDOW,
) -> Iterator[bytes]:
    """The lines with one more score, in order, in blocks of whole lines; a score has six significant digits.

    scale: "log" for log P(target | source) in nats, "probability" for P.  keep: malformed lines, and those beyond the
    models' limit, come out unchanged instead of being left out; the first of them are told to `say`, with their number.
    report: counted on; at each block, of the lines up to its end.  Memory: `window` lines.
    Raises ValueError on another scale.
    """
    if scale not in SCALES:
        raise ValueError(f"expected a scale among {', '.join(SCALES)}, got {scale!r}")
    held: list[tuple[bytes, list[str] | None]] = []
    pairs: list[EncodedPair] = []
    for line in lines:
        report.lines += 1
        line = line.rstrip(b"\r\n")
        fields = _read(line, scorer, pairs, report, say)
        if fields is not None or keep:
            held.append((line, fields))
        if len(held) >= window:
            yield b"".join(_finished(held, scorer.log_probabilities(pairs), scale))
            held, pairs = [], []
    yield b"".join(_finished(held, scorer.log_probabilities(pairs), scale))


def _read(
    line: bytes, scorer: ForcedScorer, pairs: list[EncodedPair], report: Report, say: Callable[[str], None]
) -> list[str] | None:
    """The fields of a line, whose pair is added; None, reported, if it cannot be scored."""
    try:
        fields = parse(line, report.columns)
        pair = scorer.encode(fields[0], fields[1])
    except ValueError as error:
        report.too_long += isinstance(error, TooLong)
        report.malformed += not isinstance(error, TooLong)
        count = report.malformed + report.too_long
        if count <= SHOWN:
            say(f"line {report.lines}: {error}" + ("; further ones are counted only" if count == SHOWN else ""))
        return None
    report.columns = len(fields[2].split())
    report.scored += 1
    report.unknown += pair.unknown
    pairs.append(pair)
    return fields


def _finished(held: list[tuple[bytes, list[str] | None]], scores: list[float], scale: str) -> Iterator[bytes]:
    found = iter(scores)
    for line, fields in held:
        if fields is None:
            yield line + b"\n"
            continue
        score = next(found)
        value = f"{score if scale == 'log' else math.exp(score):.6g}"
        fields[2] = f" {' '.join([*fields[2].split(), value])}" + " " * (len(fields) > 3)
        yield "|||".join(fields).encode() + b"\n"


def table_lines(path: str, raw: BinaryIO) -> Iterator[bytes]:
    """The lines of an open file, plain or .gz.  Raises ValueError with the line's number if it is truncated."""
    number = 0
    try:
        for line in io.BufferedReader(gzip.GzipFile(fileobj=raw)) if path.endswith(".gz") else raw:
            yield line
            number += 1
    except UNPACKING_ERRORS as error:
        raise ValueError(f"{path}: the compressed file is truncated or altered after line {number}: {error}") from None


def score_table(
    path: str | os.PathLike,
    out: str | os.PathLike,
    scorer: ForcedScorer,
    say: Callable[[str], None],
    progress: Callable[[int, int, str], None],
    identity: dict[str, Any],
    scale: str = "log",
    keep: bool = False,
    window: int = WINDOW,
) -> Report:
    """Score a whole table into the file `out`, which appears when it is done; see `score_blocks`.

    A run that was interrupted goes on at its last window.  progress: told bytes read, bytes there are, and a note,
    every few seconds.  identity: what the scores depend on beside the table and the options here, in JSON's types.
    Raises ValueError if input and output are one file, or no line of a table can be scored; OSError if a file cannot
    be read or written.
    """
    if os.path.exists(out) and os.path.samefile(path, out):
        raise ValueError(f"{out}: expected another file than the table that is read")
    identity = {**identity, "table": fingerprint(path), "scale": scale, "keep": keep}
    with open(path, "rb") as raw, ResumableFile(out, identity) as file:
        size = os.fstat(raw.fileno()).st_size
        lines, report = table_lines(os.fspath(path), raw), Report(**file.state or {})
        if report.lines:
            say(f"line {report.lines + 1}: going on where an earlier run was interrupted")
        for _ in range(report.lines):
            next(lines, None)
        before = report.scored
        told = start = time.monotonic()
        for block in score_blocks(lines, scorer, say, report, scale, keep, window):
            file.append(block, asdict(report))
            now = time.monotonic()
            if now > told + 5:
                told = now
                progress(raw.tell(), size, f"{(report.scored - before) / (now - start):.0f} pairs/s")
        if report.lines and not report.scored:
            raise ValueError(f"{path}: none of {report.lines} lines could be scored")
    return report
