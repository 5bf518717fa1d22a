"""Execute docs/notebooks/NAME.ipynb and write docs/generated/notebooks/NAME.md with its pictures beside it.

A cell that fails stops the command with its error; a page appears when its whole notebook has run.
"""

from __future__ import annotations

import argparse
import base64
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "docs" / "notebooks"
OUT = ROOT / "docs" / "generated" / "notebooks"
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
SECONDS = 600  # a cell may take on a busy machine


def executed(source: Path) -> nbformat.NotebookNode:
    """The notebook with outputs, run in an empty folder.  Raises nbclient's CellExecutionError where a cell fails."""
    notebook = nbformat.read(source, as_version=4)
    # commands in its cells are those beside this Python
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(
            notebook, timeout=SECONDS, coalesce_streams=True, resources={"metadata": {"path": folder}},
            extra_arguments=["--log-level=ERROR"],
        ).execute(env=environment)
    return notebook


def outputs(cell: nbformat.NotebookNode, stem: str, pictures: dict[str, bytes]) -> Iterator[str]:
    """What a code cell put out, in markdown; its pictures are added to `pictures` by file name."""
    for output in cell.outputs:
        data = output.get("data", {})
        if "image/png" in data:
            name = f"{stem}-{len(pictures) + 1}.png"
            pictures[name] = base64.b64decode(data["image/png"])
            yield f"![What the cell above draws]({name})"
        elif text := ESCAPES.sub("", output.get("text", "") or data.get("text/plain", "")).rstrip():
            yield f"```text\n{text}\n```"


def page(notebook: nbformat.NotebookNode, stem: str) -> tuple[str, dict[str, bytes]]:
    """Markdown of an executed notebook, and its pictures by file name."""
    pictures: dict[str, bytes] = {}
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            text = re.sub(r"\]\((\w+)\.ipynb\)", r"](\1.md)", cell.source)
            parts.append(text.replace("](../", "](../../"))
        else:
            magic = re.match(r"%%(bash)[^\n]*\n", cell.source)
            code = cell.source[magic.end() :] if magic else cell.source.rstrip(";")
            parts += [f"```{magic[1] if magic else 'python'}\n{code}\n```", *outputs(cell, stem, pictures)]
    parts.insert(1, f"This page is a notebook, executed: [take it along](../../notebooks/{stem}.ipynb).")
    return "\n\n".join(parts) + "\n", pictures


def main() -> int:
    """One notebook, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="without .ipynb (default: all)")
    names = parser.parse_args().names or sorted(path.stem for path in SOURCES.glob("*.ipynb"))
    OUT.mkdir(parents=True, exist_ok=True)
    for name in names:
        start = time.monotonic()
        try:
            text, pictures = page(executed(SOURCES / f"{name}.ipynb"), name)
        except CellExecutionError as error:
            print(f"notebooks: {name}.ipynb: {ESCAPES.sub('', str(error))}", file=sys.stderr)
            return 1
        for file, data in pictures.items():
            (OUT / file).write_bytes(data)
        (OUT / f"{name}.md").write_text(text, "utf-8")
        print(f"{name}: {time.monotonic() - start:.0f} s, {len(pictures)} pictures", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
