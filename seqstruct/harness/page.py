"""Drawn tables as one HTML page that needs nothing else: sorted by a click, light or dark, with each number's runs."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

STYLE = """
:root { color-scheme: light dark; --text: #1b1f24; --back: #ffffff; --line: #c9d1d9; --soft: #f0f3f6; --link: #0a58ca }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6edf3; --back: #0d1117; --line: #3d444d; --soft: #1c232c; --link: #79b8ff }
}
body { margin: 0 auto; padding: 1rem 1.5rem 6rem; max-width: 90rem; color: var(--text); background: var(--back);
       font: 15px/1.45 system-ui, sans-serif }
h1 { font-size: 1.4rem } h2 { font-size: 1.05rem; margin: 2.2rem 0 .4rem }
p { margin: .3rem 0; max-width: 75rem } nav a { margin-right: .8rem } a { color: var(--link) }
.wide { overflow-x: auto } table { border-collapse: collapse; margin: .6rem 0 }
th, td { border: 1px solid var(--line); padding: .25rem .55rem; text-align: left; vertical-align: top }
td { white-space: nowrap; font-variant-numeric: tabular-nums } thead th { background: var(--soft) }
tbody th { font-weight: 600; white-space: nowrap } tbody tr:hover { background: var(--soft) }
button { all: unset; cursor: pointer } button::after { content: " \\2195"; opacity: .4 }
button:focus-visible, td:focus-visible { outline: 2px solid var(--link) }
th[aria-sort=ascending] button::after { content: " \\25B2"; opacity: 1 }
th[aria-sort=descending] button::after { content: " \\25BC"; opacity: 1 }
[role=tooltip] { position: fixed; left: 1rem; right: 1rem; bottom: 1rem; padding: .6rem .8rem; margin: 0;
  white-space: pre-wrap; overflow-wrap: anywhere; max-height: 40vh; overflow-y: auto;
  font: 13px/1.4 ui-monospace, monospace; color: var(--text); background: var(--soft);
  border: 1px solid var(--line); border-radius: .4rem }
[role=tooltip]:empty { display: none }
"""
SCRIPT = """
const details = document.querySelector("[role=tooltip]");
const show = event => {
  const cell = event.target.closest("td[data-details]");
  details.textContent = cell ? cell.dataset.details : "";
  document.querySelectorAll("[aria-describedby]").forEach(other => other.removeAttribute("aria-describedby"));
  if (cell) cell.setAttribute("aria-describedby", details.id);
};
document.addEventListener("mouseover", event => { if (!event.target.closest("[role=tooltip]")) show(event); });
document.addEventListener("focusin", show);
document.addEventListener("keydown", event => { if (event.key === "Escape") details.textContent = ""; });
for (const button of document.querySelectorAll("thead button")) button.addEventListener("click", () => {
  const heading = button.closest("th"), body = heading.closest("table").tBodies[0], at = heading.cellIndex;
  const sign = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
  const compare = (a, b) => {
    const [x, y] = [a, b].map(row => row.cells[at]), [u, v] = [x, y].map(cell => cell.dataset.value);
    if (at === 0 || (!u && !v)) return sign * x.textContent.localeCompare(y.textContent, "en", { numeric: true });
    return !u ? 1 : !v ? -1 : sign * (u - v);
  };
  body.append(...[...body.rows].sort(compare));
});
"""


class Entry(NamedTuple):
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
    rows: Sequence[Sequence[Entry]]
    below: Sequence[str]


def page(title: str, sheets: Sequence[Sheet]) -> str:
    """The whole page.

    A click on a heading sorts by its column, a second one the other way; what has no number stays last.  The mouse or
    the keyboard on a number shows its seeds with their values, commits and commands at the foot of the window.
    """
    links = " ".join(f'<a href="#table-{at}">{escape(sheet.name)}</a>' for at, sheet in enumerate(sheets))
    sections = "".join(_section(f"table-{at}", sheet) for at, sheet in enumerate(sheets))
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        '<link rel="icon" href="data:,">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n<nav>{links}</nav>\n<main>{sections}</main>\n"
        f'<div role="tooltip" id="details"></div>\n<script>{SCRIPT}</script>\n</body>\n</html>\n'
    )


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


def _cell(entry: Entry) -> str:
    value = "" if entry.value is None else f' data-value="{entry.value!r}"'
    details = f' tabindex="0" data-details="{escape(entry.details)}"' if entry.details else ""
    return f"<td{value}{details}>{escape(entry.text)}</td>"
