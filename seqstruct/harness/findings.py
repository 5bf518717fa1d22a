"""What the pages of reproduction say of each finding, in one table: `python -m seqstruct.harness.findings`.

A finding is an item of a list in Markdown: its name in italics, of which table or how found, and in bold its verdict.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from seqstruct.command import markdown_table, module_parser, run_module

PAGES = Path(__file__).resolve().parents[2] / "docs" / "reproduction"
VERDICTS = {  # of many
    "Holds": "hold",
    "Holds in part": "hold in part",
    "Does not hold": "do not hold",
    "Not shown": "are not shown",
    "Not tested": "are not tested",
    "Not in the source": "",
}
FINDING = re.compile(
    rf"\*(?P<name>[^*]+?)\.?\*(?P<source>[^*]*)\*\*(?P<verdict>{'|'.join(VERDICTS)})(?P<closed>\.?)\*\*(?P<limits>.*)"
)
IN_BRACKETS = re.compile(r" \((?:[^()]|\([^()]*\))*\)")


@dataclass(frozen=True)
class Finding:
    """source: the table, the seeds and whatever else stands in brackets behind the name.  limits: of the verdict."""

    name: str
    source: str
    verdict: str
    limits: str

    def cells(self) -> tuple[str, str, str]:
        return self.name, self.source, f"**{self.verdict}**{self.limits}"


def prose(page: Path) -> str:
    """A page without what commands have filled in."""
    return re.sub(r"<!-- seqstruct .+? -->\n.*?<!-- end -->", "", page.read_text("utf-8"), flags=re.S)


def items(text: str) -> Iterator[str]:
    """The items of a text's lists, each in one line."""
    for item in re.split(r"^\* ", text, flags=re.M)[1:]:
        yield re.sub(r"\s+", " ", re.split(r"\n\n|\n(?=#)", item)[0]).strip()


def findings(page: Path) -> list[Finding]:
    """In their order; an item without a verdict is none.  Raises OSError if the page cannot be read."""
    found = []
    for match in filter(None, map(FINDING.match, items(prose(page)))):
        source = re.sub(r"^\((.*)\)", r"\1", match["source"].strip(" ."))
        limits = re.split(r"(?<=.)[:;] |\.(?: |$)", IN_BRACKETS.sub("", match["limits"]))[0]
        found.append(Finding(match["name"], source, match["verdict"], "" if match["closed"] else limits))
    return found


def summary(folder: Path) -> str:
    """For each page its findings; in front, how many there are of each verdict.

    Raises ValueError if the folder has no page with a finding.
    """
    lines, every = [], []
    for page in sorted(folder.glob("*.md")):
        if found := findings(page):
            title = page.read_text("utf-8").partition("\n")[0].lstrip("# ")
            table = markdown_table(("finding", "of", "verdict"), [finding.cells() for finding in found])
            lines += ["", f"## [{title}]({page.name})", "", table]
            every += found
    if not every:
        raise ValueError(f"{folder}: expected pages with findings, found none")
    return "\n".join([counted(every), *lines])


def counted(found: Sequence[Finding]) -> str:
    """How many there are of each verdict, in a sentence; at least one has to be."""
    counts = Counter(finding.verdict for finding in found)
    own = counts.pop("Not in the source", 0)
    told = ", ".join(f"{counts[verdict]} {words}" for verdict, words in VERDICTS.items() if counts[verdict])
    return f"Findings of the sources: {sum(counts.values())}, of which {told}; ours alone: {own}."


def main(argv: Sequence[str] | None = None) -> int:
    parser = module_parser("seqstruct.harness.findings", __doc__)
    parser.add_argument("folder", metavar="FOLDER", type=Path, nargs="?", default=PAGES,
                        help="with the pages (default: docs/reproduction)")
    parser.add_argument("--count", action="store_true", help="how many there are of each verdict, alone")

    def run(args: argparse.Namespace) -> None:
        print(summary(args.folder).partition("\n")[0] if args.count else summary(args.folder))

    return run_module(parser, argv, run)


if __name__ == "__main__":
    raise SystemExit(main())
