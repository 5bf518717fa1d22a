"""Fill README.md, those of recipes/ and docs/: `<!-- COMMAND -->`, its output, `<!-- end -->`.

A command is `seqstruct ARGUMENTS` or `python -m seqstruct.MODULE ARGUMENTS`.
"""

from __future__ import annotations

import io
import re
import shlex
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path

from seqstruct.cli import main
from seqstruct.data.files import atomic_write

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"<!-- (?P<command>(?:seqstruct|python -m seqstruct)[^\n]+?) -->\n.*?<!-- end -->", re.S)


def documents() -> list[Path]:
    """The texts that are kept in the repository: README.md, those of recipes/, and docs/ but for what is generated."""
    docs = (path for path in sorted(ROOT.glob("docs/**/*.md")) if "generated" not in path.parts)
    return [ROOT / "README.md", *sorted(ROOT.glob("recipes/*/README.md")), *docs]


def output(command: str) -> str:
    """What a command prints, ending in one newline.  Raises ValueError if it fails."""
    printed, (program, *words) = io.StringIO(), shlex.split(command)
    run = main if program == "seqstruct" else import_module(words[1]).main
    with redirect_stdout(printed):
        status = run(words if program == "seqstruct" else words[2:])
    if status:
        raise ValueError(f"{command}: exit status {status}")
    return printed.getvalue().strip("\n") + "\n"


def fill(text: str) -> str:
    """The text with every marked block renewed."""
    return BLOCK.sub(lambda m: f"<!-- {m['command']} -->\n{output(m['command'])}<!-- end -->", text)


if __name__ == "__main__":
    for path in documents():
        filled = fill(path.read_text("utf-8"))
        with atomic_write(path) as readme:
            readme.write(filled)
