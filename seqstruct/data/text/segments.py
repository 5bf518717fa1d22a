"""Test sets of WMT and IWSLT: one <seg> element a sentence, one <doc> element a document; or plain text."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from seqstruct.data.downloads import Remote
from seqstruct.data.text.aligned import read_lines

_ELEMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>|<doc\b", re.IGNORECASE | re.DOTALL)


def read_segments(path: str | os.PathLike) -> Iterator[str | None]:
    """The sentences of a file, in order, and None where a document begins; plain text (neither .sgm nor .xml, perhaps
    .gz) has no documents.

    Raises ValueError if there are no <seg> elements, and as `read_lines` does.
    """
    if not str(path).removesuffix(".gz").endswith((".sgm", ".xml")):
        yield from read_lines(path)
        return
    number = 0
    for element in _ELEMENT.finditer("\n".join(read_lines(path))):
        number += element[1] is not None
        yield None if element[1] is None else html.unescape(element[1]).strip()
    if not number:
        raise ValueError(f"{path}: expected <seg> elements, found none")


def read_aligned_segments(
    files: Mapping[str, Path], name: str, languages: Sequence[str]
) -> Iterator[tuple[str, str] | None]:
    """The pairs of a test set, and None where a document begins.  files: by `name.LANGUAGE`.

    Raises ValueError if the sides have unlike numbers of sentences, or documents at other places.
    """
    sides = [list(read_segments(files[f"{name}.{language}"])) for language in languages]
    if [line is None for line in sides[0]] != [line is None for line in sides[1]]:
        told = [f"{files[f'{name}.{language}']} has {sum(line is not None for line in side)} sentences"
                for language, side in zip(languages, sides, strict=True)]
        raise ValueError(f"{', '.join(told)}, or documents at other places")
    for source, target in zip(*sides, strict=True):
        yield None if source is None or target is None else (source, target)


def news_archive(name: str) -> Remote:
    """The archive of a test set of WMT, with the address and the checksum that sacreBLEU has: wmt13, wmt14/full ..."""
    from sacrebleu.dataset import DATASETS

    found = DATASETS[name]
    return Remote(found.data[0], found.md5[0], f"{name.replace('/', '-')}.tgz")


def read_news(files: Mapping[str, Path], name: str, languages: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The pairs of `read_aligned_segments`, without the documents."""
    return (pair for pair in read_aligned_segments(files, name, languages) if pair is not None)
