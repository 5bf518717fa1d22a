"""A number of three digits or more that docs/reproduction/ tells in prose stands in the records or in the source."""

from __future__ import annotations

import re

import pytest

from seqstruct.harness.paper import read_tables
from seqstruct.harness.records import read_folder
from seqstruct.harness.report import lines_of
from tests.recipes.test_findings import RECIPES, prose

PAPERS = sorted(path.parent.name for path in RECIPES.glob("*/paper.json"))
SHOWN = [paper for paper in PAPERS if (RECIPES.parent / "docs" / "reproduction" / f"{paper}.md").is_file()]
FIGURE = re.compile(r"(?<![\w.-])\d[\d,]*\.\d+(?![\w])")
SCALES = (1, 100, 1e-3, 1e-6)  # as it is, per cent, thousands, millions
# ratios of two rows' speeds; millions of parameters with a vocabulary that no row here has
DERIVED = {"peng_thesis": {"1.17", "41.4", "246.9", "247.3", "448.5"}, "stack_attention": {"1.03"}}


def numbers(paper):
    """Values of runs, at each point of an axis and from there on, means over seeds, values of p, and the source's."""
    records, tables = read_folder(RECIPES / paper / "records"), read_tables(RECIPES / paper)
    for record in records:
        for name, metric in record.metrics.items():
            yield metric["value"]
            at = [value for _, value in record.points(name)]
            for start in range(len(at)):
                yield from (at[start], sum(at[start:]) / len(at[start:]))
    for table in tables:
        yield from (entry.value for entry in table.published if entry.value is not None)
        for line in lines_of(table, records, ("small", "paper")):
            yield from (number for number in (line.mean, line.deviation, line.p_value) if number is not None)


@pytest.mark.parametrize("paper", SHOWN)
def test_figures_told_are_those_of_the_records(paper):
    text = re.sub(r"<!--.+?-->.*?<!-- end -->|```.*?```|`[^`]*`|\]\([^)]*\)", "", prose(paper), flags=re.S)
    told = {figure.replace(",", "") for figure in FIGURE.findall(text)} - DERIVED.get(paper, set())
    told = {figure for figure in told if len(figure.replace(".", "").lstrip("0")) > 2}
    places = {len(figure.partition(".")[2]) for figure in told}
    known = {f"{abs(value) * scale:.{digits}f}" for value in numbers(paper) for scale in SCALES for digits in places}
    assert sorted(told - known) == []
