"""Drawn tables as one HTML page that needs nothing else: sorted by a click, light or dark, with each number's runs."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import NamedTuple

TEMPLATE = Path(__file__).with_name("page.html")


class Shown(NamedTuple):
    """What stands in one place of a drawn table.  value: what it is sorted by.  details: of its runs, one a line."""

    text: str
    value: float | None = None
    details: str = ""


class Sheet(NamedTuple):
    """A table as it is drawn.  above, below: sentences.  rows: empty where nothing was run."""

    name: str
    title: str
    above: Sequence[str]
    headings: Sequence[str]
    rows: Sequence[Sequence[Shown]]
    below: Sequence[str]


def page(title: str, sheets: Sequence[Sheet]) -> str:
    """The whole page.

    A click on a heading sorts by its column, a second one the other way; what has no number stays last.  The mouse or
    the keyboard on a number shows its seeds with their values, commits and commands at the foot of the window.
    """
    links = " ".join(f'<a href="#table-{at}">{escape(sheet.name)}</a>' for at, sheet in enumerate(sheets))
    sections = "".join(_section(f"table-{at}", sheet) for at, sheet in enumerate(sheets))
    template = Template(TEMPLATE.read_text(encoding="utf-8"))
    return template.substitute(title=escape(title), links=links, sections=sections)


def _section(name: str, sheet: Sheet) -> str:
    above, below = ("".join(f"<p>{escape(text)}</p>\n" for text in texts) for texts in (sheet.above, sheet.below))
    heading = f'<h2 id="{name}">{escape(sheet.title)}</h2>\n'
    if not sheet.rows:
        return f"<section>\n{heading}{above}{below}</section>\n"
    titles = "".join(f'<th scope="col"><button type="button">{escape(text)}</button></th>' for text in sheet.headings)
    rows = "".join(
        f'<tr><th scope="row">{escape(row[0].text)}</th>{"".join(map(_cell, row[1:]))}</tr>\n' for row in sheet.rows
    )
    return (
        f'<section>\n{heading}{above}<div class="wide"><table aria-labelledby="{name}">\n'
        f"<thead><tr>{titles}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n{below}</section>\n"
    )


def _cell(entry: Shown) -> str:
    value = "" if entry.value is None else f' data-value="{entry.value!r}"'
    details = f' tabindex="0" data-details="{escape(entry.details)}"' if entry.details else ""
    return f"<td{value}{details}>{escape(entry.text)}</td>"
