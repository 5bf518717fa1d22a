"""docs/notebooks: short, cleared, with imports and commands that exist; how they are executed and become pages.

`make docs` executes all of them.
"""

import ast
import base64
import importlib
import json
import re
import runpy
import shlex
import sys
from pathlib import Path

import nbformat
import pytest

from seqstruct.cli import build_parser

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
COMMAND = runpy.run_path(str(ROOT / ".ci" / "notebooks.py"))
of_each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def codes(path):
    return ["".join(cell["source"]) for cell in json.loads(path.read_text("utf-8"))["cells"]
            if cell["cell_type"] == "code"]


def test_all_stand_in_the_site():
    site = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert len(NOTEBOOKS) == 8
    for path in NOTEBOOKS:
        assert f": generated/notebooks/{path.stem}.md\n" in site


@of_each
def test_they_are_short_and_kept_without_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert 10 <= len(notebook.cells) <= 20
    assert notebook.cells[0].source.startswith("# ")
    for cell in notebook.cells:
        assert cell.cell_type == "markdown" or (cell.outputs, cell.execution_count) == ([], None)


@of_each
def test_what_they_import_and_run_exists(path):
    for code in codes(path):
        if code.startswith("%%bash -e\n"):
            for line in code.replace("\\\n", " ").splitlines():
                if line.startswith("seqstruct "):
                    assert callable(build_parser().parse_args(shlex.split(line)[1:]).run)
            continue
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("seqstruct"):
                module = importlib.import_module(node.module)
                for alias in node.names:
                    assert hasattr(module, alias.name) or importlib.import_module(f"{node.module}.{alias.name}")


@of_each
def test_their_links_lead_somewhere(path):
    text = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown")
    for target in re.findall(r"\]\(([^)#]+)", text):
        assert "generated/" in target or (path.parent / target).exists(), target


def made_up(*cells):
    return nbformat.v4.new_notebook(cells=[
        nbformat.v4.new_markdown_cell(text) if text.startswith("# ") else nbformat.v4.new_code_cell(text)
        for text in cells
    ])


def test_a_notebook_becomes_a_page_with_its_pictures():
    notebook = made_up("# Title\n\n[one](two.ipynb) and [three](../four.md)", "draw();", "%%bash -e\nls")
    new = nbformat.v4.new_output
    notebook.cells[1].outputs = [
        new("stream", name="stdout", text="\x1b[31ma line\x1b[0m\n"),
        new("display_data", data={"image/png": base64.b64encode(b"first").decode(), "text/plain": "<Figure>"}),
        new("execute_result", data={"text/plain": "3"}),
    ]
    text, pictures = COMMAND["page"](notebook, "name")
    assert pictures == {"name-1.png": b"first"}
    assert text == (
        "# Title\n\n[one](two.md) and [three](../../four.md)\n\n"
        "This page is a notebook, executed: [take it along](../../notebooks/name.ipynb).\n\n"
        "```python\ndraw()\n```\n\n```text\na line\n```\n\n![What the cell above draws](name-1.png)\n\n"
        "```text\n3\n```\n\n```bash\nls\n```\n"
    )


def test_a_notebook_runs_in_an_empty_folder_and_a_failing_one_leaves_no_page(tmp_path, monkeypatch, capsys):
    good = made_up("import os, sys\nopen('new', 'w')\nprint(os.listdir())", "%%bash -e\nwhich python")
    bad = made_up("# Title", "raise ValueError('this one')")
    for name, notebook in (("good", good), ("bad", bad)):
        nbformat.write(notebook, tmp_path / f"{name}.ipynb")
    done = COMMAND["executed"](tmp_path / "good.ipynb")
    assert [cell.outputs[0].text for cell in done.cells] == ["['new']\n", f"{Path(sys.executable).parent}/python\n"]
    main = COMMAND["main"]
    monkeypatch.setitem(main.__globals__, "SOURCES", tmp_path)
    monkeypatch.setitem(main.__globals__, "OUT", tmp_path / "out")
    monkeypatch.setattr(sys, "argv", ["notebooks.py", "bad"])
    assert main() == 1
    assert "bad.ipynb" in (said := capsys.readouterr().err)
    assert "ValueError: this one" in said
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.slow
@of_each
def test_it_runs_from_top_to_bottom(path):
    text, pictures = COMMAND["page"](COMMAND["executed"](path), path.stem)
    assert len(pictures) >= 2
    assert "Traceback" not in text
