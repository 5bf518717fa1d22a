"""What holds for every recipe: its rows, its plans at every scale, its configs, and the tables of the papers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pytest

from seqstruct.attention import Site, parse_choices
from seqstruct.harness.configs import read_config
from seqstruct.harness.records import SCALES
from seqstruct.harness.report import read_tables
from seqstruct.harness.script import Plan, Script, scripts

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "recipes"
SCRIPTS = scripts(RECIPES)
PAPERS = sorted(path.parent.name for path in RECIPES.glob("*/paper.json"))
# taken where --from has parses of WikiText-2
OF_PARSES = {f"configs/peng_thesis/palm/{group}/wikitext2_parses.yaml" for group in ("scale", "spans")}


def each(script: Script) -> str:
    return f"{script.path.parent.name}-{script.path.stem}"


@pytest.fixture(scope="module")
def plans() -> dict[Path, dict[str, list[Plan]]]:
    """By script and scale, a plan for each row (at smoke of all, as far as there are); none at a scale there is not."""
    with ThreadPoolExecutor(4) as pool:  # shells, two a plan
        found = pool.map(plans_of, *zip(*product(SCRIPTS, SCALES), strict=True))
        by_script: dict[Path, dict[str, list[Plan]]] = {script.path: {} for script in SCRIPTS}
        for (script, scale), plans in zip(product(SCRIPTS, SCALES), found, strict=True):
            by_script[script.path][scale] = plans
    return by_script


def plans_of(script: Script, scale: str) -> list[Plan]:
    found = []
    rows = dict.fromkeys(row for s in SCALES for row in script.rows(s) + script.baselines(s))
    for cell in script.cells(scale, [row for row in rows if scale == "smoke" or row in known(script, scale)], [1]):
        try:
            found.append(script.plan(cell))
        except ValueError as error:
            if scale == "smoke" and cell.row not in known(script, scale):
                continue
            assert re.search(r"scales (are )?smoke and (small|paper)", str(error)), f"{script.path}: {error}"
    return found


def known(script: Script, scale: str) -> list[str]:
    return script.rows(scale) + script.baselines(scale)


@pytest.mark.parametrize("script", SCRIPTS, ids=each)
def test_its_head_says_what_it_is(script):
    assert script.paper == script.path.parent.name or script.path.parent.name == "multi30k"
    assert script.doc.strip() and script.licence and script.family and os.access(script.path, os.X_OK)
    assert script.path.read_text(encoding="utf-8").count("\n") <= 130


@pytest.mark.parametrize("name", ["nmt_lectures/lineage", "abilities/abilities"])
def test_mechanisms_that_commands_name_exist(name, plans):
    """Each of them, though the smoke scale runs few rows, and a mistake would end a list of trainings in the middle."""
    found = set()
    for plan in sum(plans[RECIPES / f"{name}.sh"].values(), []):
        for word in (word for step in plan.steps for word in step.words):
            if named := re.fullmatch(r"\+?model\.(\w+)_attention=[\"']?([^\"']*)[\"']?", word):
                found.add(named[2])
                parse_choices(named[2], 5, Site(named[1]))
    assert len(found) > 10, found


@pytest.mark.parametrize("script", SCRIPTS, ids=each)
def test_every_cell_has_a_plan(script, plans):
    for scale in SCALES:
        for plan in plans[script.path][scale]:
            assert plan.dataset and plan.minutes >= 0 and plan.disk >= 0, (plan.cell, scale)
            assert plan.steps[0].kind != "record" and "???" not in plan.text(), plan.cell
            on_cpu = [step for step in plan.steps if step.words[0] in ("fairseq-generate", "fairseq-validate")]
            assert scale == "paper" or all("--cpu" in step.words for step in on_cpu), plan.cell


# rows that no source has; tables of which another script has rows too
BEYOND = {"flare/table-2", "peng_thesis/figure-4.2", "peng_thesis/figure-4.2-states", "peng_thesis/table-2.2",
          "stack_attention/demo", "structured_attention/table-4"}
IN_PART = {"peng_thesis/table-3.4", "peng_thesis/table-4.5-speed"}


@pytest.mark.parametrize("script", SCRIPTS, ids=each)
def test_rows_of_a_scale_are_those_of_its_tables(script, plans):
    name = f"{script.path.parent.name}/{script.path.stem}"
    tables = {table.name: table for table in read_tables(script.path.parent)}
    for scale in ("small", "paper"):
        found = {plan.table for plan in plans[script.path][scale]} - ({"demo"} if name in BEYOND else set())
        published = {entry.row for table in map(tables.__getitem__, found) for entry in table.published
                     if not entry.average_of and table.kind(entry.row) != "theirs"}
        rows = set(script.rows(scale))
        assert name in BEYOND or not found or rows <= published, rows - published
        assert name in IN_PART or published <= rows.union(script.baselines(scale)), published - rows


@pytest.mark.parametrize("paper", PAPERS)
def test_every_table_of_a_paper_has_its_script(paper, plans):
    of_paper = [plan for script in SCRIPTS if script.path.parent.name == paper for by_scale in [plans[script.path]]
                for found in by_scale.values() for plan in found]
    names = {path.stem.removeprefix("table-") for path in (RECIPES / paper).glob("*.sh")}
    assert {table.name for table in read_tables(RECIPES / paper)} <= names.union(*(plan.tables for plan in of_paper))
    rows: dict[str, set[str]] = {}
    for plan in of_paper:
        for table in plan.tables:
            rows.setdefault(table, set()).add(plan.cell.row)
    for table in read_tables(RECIPES / paper):
        published = {entry.row for entry in table.published if not entry.average_of}
        ran = {row for row in published if table.kind(row) != "theirs"}
        assert ran <= rows.get(table.name, ran), (table.name, ran - rows[table.name])
        assert re.sub("-(stand-ins?|rte|rates|penalties|sequences|levels)$", "", table.name) in names, table.name


HANDED_OVER = sorted({*RECIPES.glob("*/*.sh")} - {script.path for script in SCRIPTS})


@pytest.mark.parametrize("path", HANDED_OVER, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_script_that_hands_over_has_rows_of_its_own_table(path, plans):
    found = re.search(r'/([\w.-]+)" --table (\S+) "\$@"\n$', path.read_text(encoding="utf-8"))
    assert found is not None and found[2] == path.stem.removeprefix("table-") and os.access(path, os.X_OK)
    of_table = [plan.cell.row for scale in ("small", "paper") for plan in plans[path.with_name(found[1])][scale]
                if plan.tables & {found[2], f"{found[2]}-stand-in"}]
    assert of_table, f"{found[1]} has no row of table {found[2]}"


def used_configs(plans) -> set[Path]:
    lines = [step.words for by_scale in plans.values() for found in by_scale.values() for plan in found
             for step in plan.steps]
    found: set[Path] = set()
    for words in set(lines):
        for name in (read_config(ROOT, words) or {"files": ()})["files"]:
            found.add(ROOT / words[words.index("--config-dir") + 1] / name)
    return found


def test_every_config_is_used(plans):
    used = {str(path.relative_to(ROOT)) for path in used_configs(plans)}
    searches = {word for by_scale in plans.values() for found in by_scale.values() for plan in found
                for step in plan.steps for word in step.words if word.startswith("configs/")}
    every = {str(path.relative_to(ROOT)) for path in (ROOT / "configs").rglob("*.yaml")}
    assert every - used - searches == OF_PARSES


def test_scripts_are_clean():
    shellcheck = shutil.which("shellcheck")
    if shellcheck is None:
        pytest.skip("shellcheck is not installed")
    paths = [RECIPES / "common.sh", *sorted(RECIPES.glob("*/*.sh"))]
    words = [shellcheck, "-x", "-P", "SCRIPTDIR", *map(str, paths)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout
