"""What holds for all recipes, paper.json and records: baselines, stand-ins, other authors' systems."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from seqstruct.harness.paper import read_tables
from seqstruct.harness.records import SCALES, latest, read_records
from seqstruct.harness.report import recipe_of
from seqstruct.harness.script import Script

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
PAPERS = sorted(path.parent.name for path in RECIPES.glob("*/paper.json"))
RECORDS = sorted(RECIPES.glob("*/records/*.jsonl"))


def tables_of(paper):
    return read_tables(RECIPES / paper)


@pytest.mark.parametrize("paper", PAPERS)
def test_rows_that_no_recipe_runs_are_theirs(paper):
    rows: set[str] = set()
    for script in map(Script, (RECIPES / paper).glob("*.sh")):
        rows.update(row for scale in SCALES for row in script.rows(scale) + script.baselines(scale))
    for table in tables_of(paper):
        for entry in table.published:
            if not entry.average_of:
                assert (table.kind(entry.row) == "theirs") == (entry.row not in rows), (table.name, entry.row)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_table_has_a_recipe_of_its_name(paper):
    assert [table.name for table in tables_of(paper) if recipe_of(RECIPES / paper, table.name) is None] == []


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: f"{path.parent.parent.name}-{path.stem}")
def test_records_are_results_each_row_of_one_configuration(path):
    records = read_records(path)
    assert {r.table for r in records} == {path.stem} and "smoke" not in {r.scale for r in records}
    configurations = defaultdict(set)
    for r in latest(records):
        for metric in r.metrics:
            configurations[r.row, metric, r.seed, r.scale].add(r.configuration_hash)
    assert [key for key, found in configurations.items() if len(found) > 1] == []


@pytest.mark.parametrize("paper", PAPERS)
def test_baselines_have_one_record_unless_their_data_are_drawn(paper):
    scripts = [Script(path) for path in (RECIPES / paper).glob("*.sh")]
    for path in (RECIPES / paper).glob("records/*.jsonl"):
        seeds = defaultdict(set)
        for r in latest(read_records(path)):
            seeds[r.row, r.scale, Path(r.command.partition(" --scale")[0].split()[-1]).name].add(r.seed)
        for (row, scale, name), found in seeds.items():
            for script in (s for s in scripts if s.path.name == name and len(found) > 1 and row in s.baselines(scale)):
                assert len(script.cells(scale, [row], sorted(found))) > 1, (path, row, found)


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: f"{path.parent.parent.name}-{path.stem}")
def test_no_stand_in_is_among_published_rows(path):
    (table,) = [table for table in read_tables(path.parents[1]) if table.name == path.stem]
    if any(entry.value is not None for entry in table.published):
        others = re.compile("in place of|no part of the published|sample of|stand-in", re.IGNORECASE)
        assert [r.dataset for r in read_records(path) if others.search(r.dataset)] == []


@pytest.mark.parametrize("paper", PAPERS)
def test_what_is_compared_are_rows_and_metrics_of_the_table(paper):
    for table in tables_of(paper):
        records = read_records(RECIPES / paper / "records" / f"{table.name}.jsonl")
        rows = {entry.row for entry in table.published} | {r.row for r in records}
        metrics = {entry.metric for entry in table.published}
        assert bool(table.compare) == bool(table.tests), table.name
        assert set(table.compare.values()) <= rows and {*table.tests, *table.best} <= metrics, table.name
        for pattern, other in table.compare.items():
            assert any(table.against(row) == other for row in rows if fnmatchcase(row, pattern)), (table.name, pattern)


SOURCES = {
    "nmt_lectures": "raissi-nmt-lectures", "peng_thesis": "peng-2022-thesis",
    "stack_attention": "dusell-chiang-2024-stack-attention",
    "structured_attention": "kim-2017-structured-attention-networks",
}
# tables with rows that are no lines of the source: transposed, in millions or gigabytes, exponents, from an equation
OTHERWISE = {
    "nmt_lectures": {"bpe-statistics"}, "peng_thesis": {"2.1", "2.3", "4.6", "5.8", "A.1-variance"},
    "stack_attention": {"4", "6"}, "structured_attention": {"2"},
}


@pytest.mark.parametrize("paper", SOURCES)
def test_published_numbers_of_a_row_stand_on_one_line_of_the_source(paper):
    source = Path(os.environ.get("SEQSTRUCT_REFERENCE", "/nowhere")) / "papers" / f"{SOURCES[paper]}.txt"
    if not source.exists():
        pytest.skip("SEQSTRUCT_REFERENCE names no folder with the papers")
    numbers = [[float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*(?:\.\d+)?", line.replace("\\pm", " "))]
               for line in source.read_text("utf-8").splitlines()]
    elsewhere = set()
    for table in tables_of(paper):
        rows = defaultdict(list)
        for entry in table.published:
            rows[entry.row] += [] if entry.value is None else [entry.value]
        for values in rows.values():
            lines = (iter(line) for line in numbers)
            if not any(all(value in line for value in values) for line in lines):
                elsewhere.add(table.name)
    assert elsewhere == OTHERWISE[paper]
