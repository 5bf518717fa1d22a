"""Reports: ours beside the paper's, every format, rows without a run."""

from __future__ import annotations

import csv
import io
import json
import statistics

import pytest

from seqstruct.cli import main
from seqstruct.harness.records import append_records
from seqstruct.harness.report import Table, lines_of, paper_folder, read_tables, welch


@pytest.fixture
def paper(record, tmp_path):
    folder = tmp_path / "a_paper"
    folder.mkdir()
    (folder / "paper.json").write_text(json.dumps({"tables": {
        "figure-2": {"title": "Difference", "selection": "validation", "better": "lower", "rows": [
            {"row": "dyck Tf", "metric": "difference", "unit": "nats", "statement": "worst"},
            {"row": "dyck Tf+Sup", "metric": "difference", "unit": "nats", "value": 0.015, "baseline": "dyck Tf"},
            {"row": "dyck Tf+Nd", "metric": "difference", "unit": "nats", "value": 0.0625},
        ]},
        "5": {"title": "Parameters", "rows": [{"row": "dyck Tf", "metric": "parameters", "unit": "", "value": 43109}]},
    }}))
    records = []
    for row, values in (("dyck Tf", [0.5, 0.25, 0.75]), ("dyck Tf+Sup", [0.125, 0.25])):
        for seed, value in enumerate(values, 1):
            records.append(record(row=row, seed=seed, metric="difference", value=value))
            records.append(record(row=row, seed=seed, metric="validation", value=abs(seed - 1.75)))
    records.append(record(row="dyck Tf", seed=1, scale="smoke", value=9.0))
    append_records(folder / "records", records)
    return folder


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_has_runs_best_mean_deviation_and_blank_rows(paper, capsys):
    assert main(["report", str(paper), "figure-2", "--format", "csv", "--seeds"]) == 0
    found = {(r["row"], r["metric"]): r for r in rows_of(capsys.readouterr().out)}
    plain = found["dyck Tf", "difference"]
    assert plain["runs"] == "3" and plain["paper"] == "worst" and plain["seeds"] == "1:0.5 2:0.25 3:0.75"
    assert float(plain["best by validation"]) == 0.25
    assert float(plain["mean"]) == 0.5 and float(plain["deviation"]) == statistics.stdev([0.5, 0.25, 0.75])
    stack = found["dyck Tf+Sup", "difference"]
    assert stack["paper"] == "0.015" and stack["p against"].endswith("dyck Tf")
    blank = found["dyck Tf+Nd", "difference"]
    assert blank["runs"] == "not yet run" and blank["mean"] == "" and blank["paper"] == "0.0625"


def test_better_may_be_higher(record, paper):
    table = read_tables(paper)[0]
    content = [record(row="r", seed=s, metric=m, value=v) for s, m, v in
               [(1, "validation", 3.0), (2, "validation", 5.0), (1, "bleu", 31.0), (2, "bleu", 30.0)]]
    by_metric = {line.metric: line for line in lines_of(type(table)("figure-2", "", "validation", "higher", ()),
                                                       content, ["small"])}
    assert by_metric["bleu"].best == 30.0


def test_scales_are_lines_of_their_own(paper, capsys):
    assert main(["report", str(paper), "figure-2", "--format", "csv", "--scale", "smoke", "small"]) == 0
    found = rows_of(capsys.readouterr().out)
    scales = [r["scale"] for r in found if (r["row"], r["metric"]) == ("dyck Tf", "difference")]
    assert sorted(scales) == ["small", "smoke"]


def test_text_and_markdown_hold_every_table(paper, capsys):
    assert main(["report", str(paper)]) == 0
    text = capsys.readouterr().out
    assert main(["report", str(paper), "--format", "markdown"]) == 0
    markdown = capsys.readouterr().out
    for output in (text, markdown):
        assert "a_paper, 5: Parameters" in output and "43,109" in output and "not yet run" in output
    assert "| --- |" in markdown


def test_unknown_names_are_one_sentence(paper, capsys):
    assert main(["report", str(paper), "7"]) == 1
    assert "a_paper has no table '7'; tables: figure-2, 5" in capsys.readouterr().err
    assert main(["report", "no_such_paper"]) == 1
    assert "no recipes of 'no_such_paper'" in capsys.readouterr().err


def test_a_malformed_paper_file_is_named(paper):
    (paper / "paper.json").write_text('{"tables": {"1": {}}}')
    with pytest.raises(ValueError, match="paper.json: KeyError: 'title'"):
        read_tables(paper)
    (paper / "paper.json").write_text('{"tables": ' + "[" * 100_000)
    with pytest.raises(ValueError, match="paper.json: RecursionError"):
        read_tables(paper)


def test_the_repository_s_papers_are_found_by_name():
    assert paper_folder("stack_attention").name == "stack_attention"


def test_welch_by_hand():
    # equal sizes and variances: the classical t of 4 degrees of freedom, t = 1/sqrt(2/3), p = 0.2879
    assert welch([1.0, 2.0, 3.0], [2.0, 3.0, 4.0]) == pytest.approx(0.28786, abs=1e-5)
    assert welch([1.0], [2.0, 3.0]) is None
    assert welch([1.0, 1.0], [2.0, 2.0]) is None


def test_seeds_trained_as_one_are_taken_apart(record, tmp_path):
    folder = tmp_path / "a_paper"
    folder.mkdir()
    rows = [{"row": f"task {n} CRF", "metric": "accuracy", "unit": "%", "value": 90.0} for n in (1, 2)]
    rows.append({"row": "task 3 CRF", "metric": "accuracy", "unit": "%", "statement": "not given"})
    rows.append({"row": "average", "metric": "accuracy", "unit": "%", "value": 88.5, "average_of": "task * CRF"})
    table = {"4": {"title": "QA", "selection": "validation", "better": "higher", "rows": rows}}
    (folder / "paper.json").write_text(json.dumps({"tables": table}))

    def of_seeds(row, metric, *values):
        points = [[seed, value] for seed, value in enumerate(values, 1)]
        return record(table="4", row=row, metric=metric, value=statistics.fmean(values), seed=1,
                      axis="seed", points=points)  # fmt: skip

    first = [of_seeds("task 1 CRF", "accuracy", 80.0, 90.0), of_seeds("task 1 CRF", "validation", 1.0, 2.0)]
    alone = lines_of(read_tables(folder)[0], first, ["small"])
    assert alone[0].values == {1: 80.0, 2: 90.0} and alone[0].best == 90.0
    assert {line.row: line for line in alone}["average"].mean is None
    second = [of_seeds("task 2 CRF", "accuracy", 60.0, 50.0), of_seeds("task 2 CRF", "validation", 3.0, 2.0)]
    average = {line.row: line for line in lines_of(read_tables(folder)[0], first + second, ["small"])}["average"]
    assert average.values == {1: 70.0, 2: 70.0} and average.best == 75.0 and average.published == 88.5


def test_a_matrix_has_its_metrics_side_by_side(record, tmp_path, capsys):
    folder = tmp_path / "matrix"
    folder.mkdir()
    entries = [{"row": f"trained {a}", "metric": f"by_{b}", "unit": "BLEU", "value": v}
               for a, b, v in (("x", "x", 35.5), ("x", "y", 0.5), ("z", "x", 0.25), ("y", "x", 2.5), ("y", "y", None))]
    (folder / "paper.json").write_text(json.dumps({"tables": {
        "4": {"title": "Crossed", "better": "higher", "layout": "matrix", "rows": entries},
    }}))
    append_records(folder / "records", [
        record(table="4", row="trained x", seed=seed, metric=metric, value=value, scale="small")
        for seed, metric, value in ((1, "by_x", 30.0), (2, "by_x", 32.0), (1, "by_y", 1.5))
    ])
    append_records(folder / "records", [record(table="4", row="trained y", metric="by_x", value=3.0, scale="small")])
    assert main(["report", str(folder), "4", "--format", "markdown"]) == 0
    assert capsys.readouterr().out.split("\n")[2:7] == [
        "| row | scale | by x | by y |", "| --- | --- | --- | --- |",
        "| trained x | small | 31 (35.5) | 1.5 (0.5) |", "| trained z |  | not yet run (0.25) | not yet run |",
        "| trained y | small | 3 (2.5) |  |",
    ]  # fmt: skip


def test_baselines_and_other_authors_systems_are_marked(record, tmp_path, capsys):
    folder = tmp_path / "marked"
    folder.mkdir()
    rows = [{"row": row, "metric": "bleu", "unit": "BLEU", "value": 30.0} for row in ("ours", "Cho et al.", "x copy")]
    table = {"title": "T", "rows": rows, "baselines": ["* copy"], "theirs": ["* et al."]}
    (folder / "paper.json").write_text(json.dumps({"tables": {"4": table, "5": {**table, "layout": "matrix"}}}))
    append_records(folder / "records", [record(table="4", row="de copy", metric="bleu", unit="BLEU", value=2.0)])
    assert main(["report", str(folder), "--format", "csv"]) == 0
    found = {(r["table"], r["row"]): r["runs"] for r in rows_of(capsys.readouterr().out) if r["table"] == "4"}
    assert found == {("4", "ours"): "not yet run", ("4", "Cho et al."): "not ours",
                     ("4", "x copy (baseline)"): "not yet run", ("4", "de copy (baseline)"): "1"}  # fmt: skip
    assert main(["report", str(folder), "5", "--format", "markdown"]) == 0
    assert capsys.readouterr().out.split("\n")[4:7] == [
        "| ours |  | not yet run (30) |", "| Cho et al. |  | not ours (30) |",
        "| x copy (baseline) |  | not yet run (30) |"]  # fmt: skip


def test_runs_of_uncommitted_code_are_counted(paper, record):
    versions = {"commit": "ab12cd3-dirty"}
    runs = [record(paper="stack_attention", row="one", seed=1), record(row="one", seed=2, versions=versions)]
    table = Table("figure-2", "", None, "lower", ())
    assert [line.runs for line in lines_of(table, runs, ["small"])] == ["2 (1 dirty)"]
