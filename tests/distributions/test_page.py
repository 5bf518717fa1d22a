"""The code of docs/distributions.md runs, and its table names every class."""

import re
from pathlib import Path

from seqstruct import distributions

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "distributions.md").read_text("utf-8")


def test_the_code_of_the_page_runs():
    names = {"__name__": "page"}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE):
        exec(compile(block, "docs/distributions.md", "exec"), names)


def test_the_table_names_every_class():
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`[^|]*)\|", PAGE, re.MULTILINE))))
    assert named == set(distributions.__all__) - {"Chain", "Runs", "StructuredDistribution", "TopK"}
