"""Test sets of WMT and IWSLT: one <seg> element a sentence, one <doc> element a document; or plain text."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator

from seqstruct.data.parallel import read_lines

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
