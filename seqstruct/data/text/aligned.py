"""Aligned text: two files, plain or .gz, line N of one being the translation of line N of the other; and checksums."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import zip_longest
from pathlib import Path

from seqstruct.data.checked import SPLITS
from seqstruct.data.files import atomic_write, open_text
from seqstruct.data.text.subwords import MOSES_ESCAPE, deescape, tidy

UNPACKING_ERRORS = (EOFError, gzip.BadGzipFile, zlib.error)
NAMED = 5  # lines in an error


def find_text(prefix: str | os.PathLike, language: str) -> Path:
    """The file `prefix.language` or `prefix.language.gz`.  Raises ValueError if there is neither."""
    plain = Path(f"{prefix}.{language}")
    for path in (plain, Path(f"{plain}.gz")):
        if path.is_file():
            return path
    raise ValueError(f"{plain}: no such file, nor {plain.name}.gz")


def find_pairs(
    prefixes: Mapping[str, str | os.PathLike], languages: Sequence[str]
) -> tuple[dict[str, list[Path]], dict[str, str]]:
    """Both files of each split by its prefix, and the SHA-256 of their texts by name, as of `checksums`."""
    files = {split: [find_text(prefixes[split], language) for language in languages] for split in SPLITS}
    named = [(path.name.removesuffix(".gz"), split, path) for split, pair in files.items() for path in pair]
    return files, checksums([(name, f"{split}/{name}", path) for name, split, path in named])


def read_lines(path: str | os.PathLike) -> Iterator[str]:
    """The lines of a UTF-8 file, plain or .gz, without their newlines.

    Raises ValueError naming file and line if the file is truncated, is no gzip file or is not UTF-8.
    """
    number = 0
    try:
        with open_text(path) as stream:
            for line in stream:
                number += 1
                yield line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 after line {number}: {error.reason}") from None
    except UNPACKING_ERRORS as error:
        raise ValueError(f"{path}: the compressed file is truncated or altered after line {number}: {error}") from None


def read_pairs(
    source: str | os.PathLike, target: str | os.PathLike, empty: bool = False
) -> Iterator[tuple[str, str]]:
    """The aligned lines of two files, in order.

    empty: whether a line may be, having no more than white space and control characters.  Raises ValueError naming file
    and line where one is and may not, or has no counterpart, and what `read_lines` raises.
    """
    paths, number = (source, target), 0
    for number, pair in enumerate(zip_longest(*map(read_lines, paths)), 1):
        for here, there, line in zip(paths, reversed(paths), pair, strict=True):
            if line is None:
                raise ValueError(f"{there}: line {number} has no counterpart: {here} ends after line {number - 1}")
            if not (empty or tidy(line)):
                raise ValueError(f"{here}: line {number} is empty")
        yield pair
    if not number:
        raise ValueError(f"{source}: the file is empty")


@contextmanager
def pair_writer(
    prefix: str | os.PathLike, languages: Sequence[str]
) -> Iterator[Callable[[tuple[str, str]], None]]:
    """What writes a pair to two aligned files, prefix.LANGUAGE, which appear when the block ends."""
    with ExitStack() as stack:
        streams = [stack.enter_context(atomic_write(f"{prefix}.{language}")) for language in languages]

        def write(pair: tuple[str, str]) -> None:
            for line, stream in zip(pair, streams, strict=True):
                stream.write(f"{line}\n")

        yield write


def write_pairs(prefix: str | os.PathLike, languages: Sequence[str], pairs: Iterable[tuple[str, str]]) -> None:
    """Two aligned files, as of `pair_writer`."""
    with pair_writer(prefix, languages) as write:
        for pair in pairs:
            write(pair)


def survey(files: Mapping[str, Sequence[Path]], drop_empty: bool, escaped_too: bool) -> dict[str, int]:
    """How many pairs of each split have an empty side: no more than white space and control characters.

    files: both sides by split.  Raises ValueError that names the files, how many of their lines are empty, unless
    `drop_empty`, or hold escapes of Moses's tokeniser, unless `escaped_too`, and the first of them; if a split has no
    other pairs; and what `read_pairs` raises.
    """
    counts, empty, escaped = {}, {}, {}
    for split, paths in files.items():
        counts[split] = 0
        for number, pair in enumerate(read_pairs(*paths, empty=True), 1):
            lacking = [path for path, line in zip(paths, pair, strict=True) if not tidy(line)]
            counts[split] += bool(lacking)
            for path in lacking:
                empty.setdefault(path, []).append(number)
            for path, line in zip(paths, pair, strict=True):
                if MOSES_ESCAPE.search(line):
                    escaped.setdefault(path, []).append(number)
        if drop_empty and counts[split] == number:
            raise ValueError(f"{paths[0]}: each of the {number} pairs has an empty side")
    if empty and not drop_empty:
        raise ValueError(f"{_lines(empty, 'empty')}; --drop-empty leaves out such pairs")
    if escaped and not escaped_too:
        raise ValueError(f"{_lines(escaped, 'with escapes of Moses such as &apos;')}; --deescape undoes them")
    return counts


def _lines(found: Mapping[Path, Sequence[int]], what: str) -> str:
    """x.de: 7 lines empty (1, 2, 3, 4, 5 ...), x.en: ..."""
    return ", ".join(
        f"{path}: {len(numbers)} line{'s' * (len(numbers) > 1)} {what} "
        f"({', '.join(map(str, numbers[:NAMED]))}{' ...' * (len(numbers) > NAMED)})"
        for path, numbers in found.items()
    )


def clean_pairs(paths: Sequence[Path], undo_escapes: bool) -> Iterator[tuple[str, str]]:
    """The pairs of two files that have no empty side, their escapes undone if wanted."""
    for pair in read_pairs(*paths, empty=True):
        if all(map(tidy, pair)):
            yield tuple(map(deescape, pair)) if undo_escapes else pair


def content_sha256(path: str | os.PathLike) -> str:
    """Hexadecimal SHA-256 of a file's text, after unpacking if it ends in .gz, so that both forms agree."""
    digest, number = hashlib.sha256(), 0
    try:
        with open_text(path) as stream:
            while block := stream.buffer.read1(1 << 16):
                digest.update(block)
                number += block.count(b"\n")
    except UNPACKING_ERRORS as error:
        raise ValueError(f"{path}: the compressed file is truncated or altered after line {number}: {error}") from None
    return digest.hexdigest()


def checksums(files: Sequence[tuple[str, str, str | os.PathLike]]) -> dict[str, str]:
    """`content_sha256` of each file by its name; files: name, longer name where another file has the first, path."""
    named = defaultdict(set)
    for name, _, path in files:
        named[name].add(os.fspath(path))
    return {name if len(named[name]) == 1 else longer: content_sha256(path) for name, longer, path in files}


def check_content(paths: Iterable[Path], checksums: Mapping[str, str]) -> None:
    """Raise ValueError unless the text of each file, plain or .gz, has the SHA-256 of its name without .gz.

    checksums: as of `read_checksums`.
    """
    for path in paths:
        name = path.name.removesuffix(".gz")
        full = path.absolute().with_name(name)
        names = [full.as_posix(), *("/".join(full.parts[at:]) for at in range(1, len(full.parts)))]
        expected, digest = next((checksums[each] for each in names if each in checksums), None), content_sha256(path)
        if expected != digest:
            raise ValueError(f"{name}: SHA-256 {digest}, expected {expected}: truncated or altered")


def read_checksums(path: str | os.PathLike) -> dict[str, str]:
    """SHA-256 by file name, without its folder, from lines of `checksum  name`, the format of sha256sum; of unlike
    files of one name by the names as they stand there."""
    found = []
    for number, line in enumerate(read_lines(path), 1):
        digest, _, name = line.strip().partition(" ")
        if len(digest) != 64 or not name:
            raise ValueError(f"{path}: line {number}: expected a SHA-256 and a file name, got {line!r}")
        found.append((Path(name.lstrip(" *")), digest))  # a "*" where it was read as binary
    several = defaultdict(set)
    for file, digest in found:
        several[file.name].add(digest)
    return {file.name if len(several[file.name]) == 1 else file.as_posix(): digest for file, digest in found}
