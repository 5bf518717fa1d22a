"""Fill README.md, those of recipes/ and docs/: `<!-- seqstruct ARGUMENTS -->`, its output, `<!-- end -->`."""

from __future__ import annotations

import io
import re
import shlex
from contextlib import redirect_stdout
from pathlib import Path

from seqstruct.cli import main
from seqstruct.data.files import atomic_write

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"<!-- seqstruct (?P<arguments>.+?) -->\n.*?<!-- end -->", re.S)


def documents() -> list[Path]:
    """The texts that are kept in the repository: README.md, those of recipes/, and docs/ but for what is generated."""
    docs = (path for path in sorted(ROOT.glob("docs/**/*.md")) if "generated" not in path.parts)
    return [ROOT / "README.md", *sorted(ROOT.glob("recipes/*/README.md")), *docs]


def output(arguments: str) -> str:
    """What `seqstruct ARGUMENTS` prints, ending in one newline.  Raises ValueError if it fails."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        status = main(shlex.split(arguments))
    if status:
        raise ValueError(f"seqstruct {arguments}: exit status {status}")
    return printed.getvalue().strip("\n") + "\n"


def fill(text: str) -> str:
    """The text with every marked block renewed."""
    return BLOCK.sub(lambda m: f"<!-- seqstruct {m['arguments']} -->\n{output(m['arguments'])}<!-- end -->", text)


if __name__ == "__main__":
    for path in documents():
        filled = fill(path.read_text("utf-8"))
        with atomic_write(path) as readme:
            readme.write(filled)
