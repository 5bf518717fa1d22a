"""Reports: ours beside the paper's in every format, tests between rows, what is not shown, rows without a run."""

from __future__ import annotations

import csv
import io
import json
import statistics
from dataclasses import replace

import pytest

from seqstruct.cli import main
from seqstruct.harness.paper import Published, Table, paper_folder, read_tables
from seqstruct.harness.records import append_records
from seqstruct.harness.report import lines_of, recipe_of
from seqstruct.scoring.significance import holm, welch

TABLE = {
    "title": "Difference", "selection": "validation", "better": "lower", "theirs": ["* RNN"], "best": ["difference"],
    "compare": {"dyck *": "dyck Tf"}, "tests": ["difference"], "metrics": {"difference": "nats"},
    "rows": {"dyck Tf": "worst", "dyck Tf+Sup": 0.015, "dyck Tf+Nd": 0.0625, "dyck RNN": [0.5]},
}
DATASET = "Dyck-2, 500 strings (published: 10,000, of length 40), 2 epochs"


@pytest.fixture
def write(tmp_path):
    """A function that writes a paper of tables and records; its folder."""

    def write(tables, records):
        folder = tmp_path / "a_paper"
        folder.mkdir()
        (folder / "paper.json").write_text(json.dumps({"tables": tables}))
        append_records(folder / "records", records)
        return folder

    return write


@pytest.fixture
def paper(record, write):
    records = [
        record(row=row, seed=seed, dataset=dataset, metrics={
            name: {"value": number, "unit": "nats"}
            for name, number in (("difference", value), ("validation", abs(seed - 1.75)))
        })
        for row, values, dataset in (
            ("dyck Tf", [0.5, 0.25, 0.75], DATASET), ("dyck Tf+Sup", [0.125, 0.25], DATASET.replace("2 epochs", "3"))
        )
        for seed, value in enumerate(values, 1)
    ]
    records.append(record(row="dyck Tf", seed=1, scale="smoke", value=9.0))
    parameters = {"title": "Parameters", "metrics": {"parameters": ""}, "rows": {"dyck Tf": 43109}}
    return write({"figure-2": TABLE, "5": parameters}, records)


@pytest.fixture
def show(capsys):
    """A function that runs `seqstruct report`; what it prints."""

    def show(*words):
        assert main(["report", *map(str, words)]) == 0
        return capsys.readouterr().out

    return show


def test_a_matrix_has_ours_the_paper_s_and_what_differs(paper, show):
    p_value = welch([0.125, 0.25], [0.5, 0.25, 0.75])
    assert show(paper, "figure-2", "--format", "markdown").splitlines() == [
        "### a_paper, figure-2: Difference", "",
        "Ours, scale small: Dyck-2, 500 strings (published: 10,000, of length 40), 2 epochs / 3", "",
        "| row | difference (nats) |", "| --- | --- |",
        "| dyck Tf | 0.50 ± 0.25 (3), best 0.25 [worst] |",
        f"| dyck Tf+Sup | 0.188 ± 0.088 (2), best 0.25, p {p_value:.2g} [0.015] |", "",
        "p: Welch's t test against dyck Tf, Holm-corrected for the 1 tests of the table.", "",
        "Not yet run: dyck Tf+Nd.", "", "Systems of other authors, not run: dyck RNN.",
    ]


def test_runs_that_are_equal_by_validation_are_told_apart_by_the_metric_for_ties(record, write):
    runs = [
        record(row="dyck Tf", seed=seed, metrics={
            name: {"value": value, "unit": "nats"}
            for name, value in (("difference", seed / 4), ("validation", validated), ("loss", loss))
        })
        for seed, validated, loss in ((1, 2.0, 0.0), (2, 1.0, 0.5), (3, 1.0, 0.25))
    ]
    for ties, better, best in ((None, "lower", 0.5), ("loss", "lower", 0.75), ("loss", "higher", 0.25)):
        table = Table("figure-2", "Difference", "validation", better, (), best=("difference",), ties=ties)
        (line,) = [line for line in lines_of(table, runs, ["small"]) if line.metric == "difference"]
        assert line.best == best


def test_a_table_s_recipe_is_found_by_its_name_and_said(paper, show):
    for name in ("table-5.sh", "figure-2.sh"):
        (paper / name).touch()
    found = {name: recipe_of(paper, name) for name in ("5", "5-stand-in", "figure-2", "figure-2-free-text", "6")}
    assert {name: path and path.name for name, path in found.items()} == {
        "5": "table-5.sh", "5-stand-in": "table-5.sh", "figure-2": "figure-2.sh", "figure-2-free-text": "figure-2.sh",
        "6": None}
    assert "\nRecipe: recipes/a_paper/figure-2.sh --seeds 1 2 3\n" in show(paper, "figure-2", "--format", "markdown")


def test_a_table_s_recipe_has_the_scales_and_the_seeds_of_its_runs(record, write, show):
    runs = [record(row="Tf", table="5", seed=seed, scale=scale, command=f"x.sh --scale {scale} --seeds {named}")
            for scale, seed, named in (("small", 1, 1), ("paper", 3, 1), ("paper", 24, 2))]  # 20 seeds as one batch
    folder = write({"5": {"title": "Parameters", "metrics": {"parameters": ""}, "rows": {"Tf": 43109}}}, runs)
    (folder / "table-5.sh").touch()
    told = "\nRecipe: recipes/a_paper/table-5.sh; recipes/a_paper/table-5.sh --scale paper --seeds 1 2\n"
    assert told in show(folder, "5", "--format", "markdown")


def test_all_shows_what_runs_were_chosen_by_and_rows_without_a_run(paper, show):
    text = show(paper, "figure-2", "--format", "markdown", "--all", "--seeds")
    assert "| row | difference (nats) | validation (nats) |" in text
    assert "0.50 ± 0.25 (1: 0.5; 2: 0.25; 3: 0.75), best 0.25 [worst] |" in text
    assert "| 0.75 ± 0.50 (1: 0.75; 2: 0.25; 3: 1.25) |" in text
    assert "| dyck Tf+Nd | [0.0625] |  |\n| dyck RNN | [0.5] |  |" in text and "Not yet run" not in text


def test_csv_has_a_line_for_each_row_and_metric(paper, show):
    lines = csv.DictReader(io.StringIO(show(paper, "figure-2", "--format", "csv")))
    found = {(r["row"], r["metric"]): r for r in lines}
    plain = found["dyck Tf", "difference"]
    assert plain["runs"] == "3" and plain["paper"] == "worst" and plain["seeds"] == "1:0.5 2:0.25 3:0.75"
    assert float(plain["best by validation"]) == 0.25
    assert float(plain["mean"]) == 0.5 and float(plain["deviation"]) == statistics.stdev([0.5, 0.25, 0.75])
    stack = found["dyck Tf+Sup", "difference"]
    assert stack["paper"] == "0.015" and stack["against"] == "dyck Tf" and float(stack["p"]) < 1
    blank = found["dyck Tf+Nd", "difference"]
    assert blank["runs"] == "not yet run" and blank["mean"] == "" and blank["paper"] == "0.0625"
    assert found["dyck RNN", "difference"]["runs"] == "not ours" and ("dyck Tf", "validation") in found


def test_text_and_markdown_hold_every_table(paper, show):
    for output in (show(paper), show(paper, "--format", "markdown")):
        assert "a_paper, 5: Parameters" in output and "0.50 ± 0.25 (3)" in output
        assert "Not tested, since no row has been run yet: dyck Tf." in output
    assert "43,109" in show(paper, "5", "--all")


def test_units_are_not_averaged(record):
    runs = [record(row="dyck Tf", seed=seed, metrics={"difference": {"value": 1.0, "unit": unit}})
            for seed, unit in ((1, "nats"), (2, "bits"))]
    with pytest.raises(ValueError, match="dyck Tf: expected runs with one unit of difference, got bits, nats"):
        lines_of(Table("figure-2", "Difference", "difference", "lower", ()), runs, ["small"])


def test_several_scales_and_configurations_are_rows_of_their_own(record, write, show):
    folder = write({"figure-2": TABLE}, [
        record(row="dyck Tf", configuration_hash="ab12cd34ef"), record(row="dyck Tf", configuration_hash="0123456789"),
        record(row="dyck Tf", scale="paper", value=0.5), record(row="dyck 5-gram", value=1.5),
    ])
    rows = show(folder, "--format", "markdown").split("| --- | --- | --- |\n")[1].split("\n\n")[0]
    assert rows.splitlines() == [
        "| dyck Tf (ab12cd34) | small | 0.25 (1) [worst] |", "| dyck Tf (01234567) | small | 0.25 (1) [worst] |",
        "| dyck Tf | paper | 0.5 (1) [worst] |", "| dyck 5-gram | small | 1.5 (1) |"]


def test_what_two_recipes_measured_of_a_row_stands_side_by_side(record, write, show):
    folder = write({"figure-2": TABLE}, [
        record(row="dyck Tf", configuration_hash="ab"), record(row="dyck Tf", configuration_hash="cd", metric="memory"),
    ])
    text = show(folder, "--format", "markdown")
    assert "| row | difference (nats) | memory (nats) |\n" in text
    assert "| --- |\n| dyck Tf | 0.25 (1) [worst] | 0.25 (1) |\n\n" in text


def test_what_only_chose_runs_is_hidden_unless_the_source_has_numbers_of_it(record, write, show):
    def table(given):
        return {"title": "T", "selection": "validation", "metrics": {"validation": "", "test": "", "memory": ""},
                "rows": {"r": [given, given, "not given"]}}

    recorded = ("validation", "test", "search_f1", "validation_loss", "loss_at_0.1", "speed")
    entries = {m: {"value": 1.5, "unit": ""} for m in recorded}
    folder = write({"words": table("not given"), "numbers": table(2.0)}, [
        record(table=name, row="r", metrics=entries) for name in ("words", "numbers")])
    assert "| row | test | speed |\n" in show(folder, "words", "--format", "markdown"), "and not the empty columns"
    assert "| row | validation | test | speed |\n" in show(folder, "numbers", "--format", "markdown")
    assert "| row | validation | test | search f1 | validation loss | loss at 0.1 | speed |" in show(
        folder, "words", "--format", "markdown", "--all")


def test_better_may_be_higher(record):
    content = [record(row="r", seed=seed, metrics={
        name: {"value": value, "unit": ""} for name, value in (("validation", validation), ("bleu", bleu))
    }) for seed, validation, bleu in ((1, 3.0, 31.0), (2, 5.0, 30.0))]
    lines = lines_of(Table("figure-2", "", "validation", "higher", ()), content, ["small"])
    assert {line.metric: line.best for line in lines} == {"validation": 5.0, "bleu": 30.0}


def test_unknown_names_are_one_sentence(paper, refused):
    assert "a_paper has no table '7'; tables: figure-2, 5" in refused("report", paper, "7")
    assert "no recipes of 'no_such_paper'" in refused("report", "no_such_paper")
    told = refused("report", paper, "--records", paper / "none")
    assert f"{paper / 'none'}: expected a folder of records, found none" in told


def test_cells_of_a_row_are_a_list_an_object_or_one_for_all(write):
    rows = {"all": None, "each": [1.5, "not given"], "some": {"b": [2.0, "of others"]}}
    folder = write({"1": {"title": "T", "metrics": {"a": "%", "b": "nats"}, "rows": rows}}, [])
    (table,) = read_tables(folder)
    assert [(p.row, p.metric, p.unit, p.value, p.statement) for p in table.published] == [
        ("all", "a", "%", None, ""), ("all", "b", "nats", None, ""), ("each", "a", "%", 1.5, ""),
        ("each", "b", "nats", None, "not given"), ("some", "b", "nats", 2.0, "of others")]


def test_a_malformed_paper_file_is_named(paper):
    expected = "dyck Tf: expected a number, a statement, both as a list or null, got "
    for cells, told in (
        ([1.5, 2.0], "ValueError: dyck Tf: expected 1 cells, one for each metric, got 2"),
        ([["worst", 1.5]], f"ValueError: {expected}\\['worst', 1.5\\]"), ([[1.5]], f"ValueError: {expected}\\[1.5\\]"),
        ({"memory": 1.5}, "KeyError: 'memory'"),
    ):
        given = {"title": "T", "metrics": {"difference": "nats"}, "rows": {"dyck Tf": cells}}
        (paper / "paper.json").write_text(json.dumps({"tables": {"1": given}}))
        with pytest.raises(ValueError, match=rf"paper\.json: {told}"):
            read_tables(paper)
    given = {"title": "T", "metrics": {"a": "%"}, "rows": {"r": 1.5}, "averages": {"mean": "r"}}
    (paper / "paper.json").write_text(json.dumps({"tables": {"1": given}}))
    with pytest.raises(ValueError, match="averages of rows that are not there: mean"):
        read_tables(paper)
    (paper / "paper.json").write_text('{"tables": {"1": {}}}')
    with pytest.raises(ValueError, match="paper.json: KeyError: 'title'"):
        read_tables(paper)
    (paper / "paper.json").write_text('{"tables": ' + "[" * 100_000)
    with pytest.raises(ValueError, match="paper.json: RecursionError"):
        read_tables(paper)


def test_the_repository_s_papers_are_found_by_name():
    assert paper_folder("stack_attention").name == "stack_attention"


def test_tests_are_of_one_metric_each_row_against_its_own_corrected_across_the_table(record):
    values = {"a one": [1.0, 1.2, 1.1], "a two": [2.0, 2.3, 2.1], "a three": [1.5, 1.1, 1.6], "b one": [5.0, 5.5],
              "b two": [5.0], "a copy": [0.0, 0.1]}
    records = [
        record(row=row, seed=seed, metrics={name: {"value": value, "unit": ""} for name in ("test", "speed")})
        for row, of_row in values.items() for seed, value in enumerate(of_row, 1)
    ]
    table = Table("figure-2", "", None, "lower", (), baselines=("* copy",), tests=("test",),
                  compare={"a *": "a one", "b *": "b one"})
    found = {(o.row, o.metric): o.p_value for o in lines_of(table, records, ["small"]) if o.p_value is not None}
    raw = [welch(values[row], values["a one"]) for row in ("a two", "a three")]
    assert list(found) == [("a two", "test"), ("a three", "test")], "one seed, a baseline and the row itself have none"
    assert list(found.values()) == pytest.approx(holm(raw))
    assert raw[0] < raw[1] and found["a two", "test"] == pytest.approx(2 * raw[0])


def test_seeds_trained_as_one_are_taken_apart(record, write):
    rows = {"task 1 CRF": 90.0, "task 2 CRF": 90.0, "task 3 CRF": "not given", "average": 88.5}
    given = {"title": "QA", "selection": "validation", "better": "higher", "metrics": {"accuracy": "%"}, "rows": rows,
             "averages": {"average": "task * CRF"}}

    def of_seeds(row, **metrics):
        return record(table="4", row=row, metrics={
            name: {"value": statistics.fmean(values), "unit": "%", "axis": "seed", "points": [*enumerate(values, 1)]}
            for name, values in metrics.items()
        })

    first = of_seeds("task 1 CRF", accuracy=[80.0, 90.0], validation=[1.0, 2.0])
    folder = write({"4": given}, [first])
    (table,) = read_tables(folder)
    alone = lines_of(table, [first], ["small"])
    assert alone[0].values == {1: 80.0, 2: 90.0} and alone[0].best == 90.0
    assert {line.row: line for line in alone}["average"].mean is None
    second = of_seeds("task 2 CRF", accuracy=[60.0, 50.0], validation=[3.0, 2.0])
    average = {line.row: line for line in lines_of(table, [first, second], ["small"])}["average"]
    assert average.values == {1: 70.0, 2: 70.0} and average.best == 75.0 and average.published == 88.5
    other = record(table="4", row="task 2 CRF", seed=3, metrics={
        name: {"value": value, "unit": "%"} for name, value in (("accuracy", 60.0), ("validation", 3.0))
    })
    average = {line.row: line for line in lines_of(table, [first, other], ["small"])}["average"]
    assert (average.count, average.scale, average.best) == ("not yet run", "", None), "no seed is one of both rows"


def test_averages_and_tests_are_of_the_configuration_that_was_recorded_last(record):
    runs = [record(row=row, seed=seed, value=value, configuration_hash=name) for row, seed, value, name in (
        ("a", 2, 9.0, "old"), ("a", 3, 8.0, "old"), ("a", 1, 0.5, "new"), ("a", 2, 0.25, "new"),
        ("b", 1, 1.0, "old"), ("b", 2, 1.5, "old"))]
    published = (*(Published(row, "difference", "nats", 0.5) for row in "ab"),
                 Published("mean", "difference", "nats", average_of="[ab]"))
    table = Table("figure-2", "", None, "lower", published, tests=("difference",), compare={"b": "a"})
    found = {line.row: line for line in lines_of(table, runs, ["small"])}
    assert found["mean"].values == {1: 0.75, 2: 0.875}
    assert found["b"].p_value == welch([1.0, 1.5], [0.5, 0.25])


def test_runs_of_uncommitted_code_are_counted_where_that_is_known(record):
    versions = {"commit": "ab12cd3-dirty"}
    known = record(seed=2, versions=versions, machine={"threads": "1"})
    runs = [record(seed=1), known, replace(known, seed=3, machine={})]
    (line,) = lines_of(Table("figure-2", "", None, "lower", ()), runs, ["small"])
    assert line.count == "3, 1 dirty"
