"""The chart of abilities from made records: skills, costs, the answers of `seqstruct which`, and what is missing."""

from __future__ import annotations

import pytest

from seqstruct.attention import ATTENTIONS, GROWTHS, Cost, Site
from seqstruct.cli import main
from seqstruct.harness.abilities import answer_of, chart_of, cost_of, entry, read_chart, tasks_named
from seqstruct.harness.paper import paper_folder, read_tables
from seqstruct.harness.records import append_records
from tests.harness.chart import made, of_seeds, record


@pytest.fixture
def chart():
    return chart_of(made(), ["simple rule", "softmax", "rfa"])


def test_a_skill_is_a_share_of_the_way_from_the_rule_to_no_error(chart):
    assert list(chart.rows) == ["softmax", "rfa", "LSTM", "delta", "linear", "sigmoid", "nondeterministic_stack"]
    assert chart.skill("softmax", "dyck", False) == 0.5
    assert chart.skill("softmax", "dyck", True) == pytest.approx(0.9375)
    assert chart.skill("delta", "dyck", True) == 0 and chart.skill("rfa", "dyck", False) is None
    assert chart.skill("sigmoid", "recall", False) is None and chart.rows["sigmoid"]["recall"].broken
    assert chart.missing(["dyck"]) == ["rfa", "linear"] and chart.missing(["recall"]) == ["rfa"]
    perfect = record("simple rule", {"dyck": of_seeds(100.0)})
    assert chart_of([*made(), perfect], []).skill("softmax", "dyck", False) is None


def test_an_answer_ranks_what_fits(chart):
    answer = answer_of(chart, ["recall", "dyck"], cost="linear", memory="constant", beyond=False)
    assert [line[0] for line in answer.lines] == ["LSTM", "delta", "simple rule"]
    assert answer.lines[0] == ["LSTM", "99", "99.0 ± 1.0 | 20.0", "99.0 ± 1.0 | 20.0", "linear", "constant"]
    assert answer.lines[1][1] == "75" and answer.lines[2][1] == "0"
    assert answer.sentences == ["3 of 7 rows cost more.", "Not yet run on all of these tasks: rfa, linear."]
    top = answer_of(chart, ["recall"], cost="cubic", memory="quadratic", beyond=True, top=1)
    assert [line[0] for line in top.lines] == ["softmax", "simple rule"]
    broken = answer_of(chart, ["recall", "copying"], cost="quadratic", memory="linear", beyond=False)
    assert ["sigmoid", "25"] in [line[:2] for line in broken.lines], "nothing for what broke"
    nothing = answer_of(chart_of(made()[:1], ["rfa"]), ["recall"], cost="cubic", memory="quadratic", beyond=False)
    assert nothing.sentences == ["No mechanism of such a cost has been run on all of these tasks.",
                                 "Not yet run on all of these tasks: rfa."]
    with pytest.raises(ValueError, match="the simple rule of recall is not in the records"):
        answer_of(chart_of(made()[1:], []), ["recall"], cost="cubic", memory="quadratic", beyond=False)


def test_an_entry_has_both_lengths_or_a_reason(chart):
    assert entry(chart.rows["sigmoid"]["recall"]) == "broke: gradients are Nan"
    assert entry(chart.rows["softmax"]["recall"]) == "60.0 ± 0.0 | 95.0 ± 5.0"


def test_tasks_have_kinds():
    assert tasks_named(["recall", "nesting"]) == ["recall", "dyck", "undo", "listops"]
    assert tasks_named(["tracking"]) == ["parity", "counting", "s3", "a5"], "those of the chart alone"
    assert tasks_named(["dyck", "nesting"]) == ["dyck", "undo", "listops"]
    with pytest.raises(ValueError, match="no task is called 'chess'; there are: memory, tracking, nesting, recall"):
        tasks_named(["chess"])


def test_costs_of_rows():
    assert cost_of("LSTM+Nd") == Cost("cubic", "quadratic") and cost_of("RRNN F") == Cost("linear", "constant")
    assert cost_of("gsa(slots=16)") == Cost("linear", "constant")
    assert cost_of("softmax + delta") == Cost("quadratic", "linear") and cost_of("luna") is None


def test_every_row_of_the_table_has_a_cost_and_every_mechanism_of_decoders_is_a_row():
    (table,) = [table for table in read_tables(paper_folder("abilities")) if table.name == "abilities"]
    rows = [entry.row for entry in table.published if entry.row != "simple rule"]
    assert all(growth in GROWTHS for row in rows for growth in cost_of(row))
    names = {row.partition("(")[0] for row in rows}
    ours = {name for name, cls in ATTENTIONS.items() if cls.__module__.startswith("seqstruct.")}
    assert {name for name in ours if Site.DECODER_SELF in ATTENTIONS[name].sites} == names & ours


def test_the_command_answers_from_records(tmp_path, capsys):
    append_records(tmp_path, made())
    words = ["which", "--records", str(tmp_path), "--task", "recall,nesting", "--cost", "linear"]
    assert main(words) in (0, None)
    told = capsys.readouterr().out
    header, first, *_ = told.splitlines()
    assert header.split() == ["mechanism", "score", "recall", "dyck", "undo", "listops", "training", "memory"]
    assert first.startswith("LSTM  ") and "Not yet run on all of these tasks: normalized_softmax, " in told
    assert "simple rule" in told and "softmax  " not in told
    assert main([*words, "--format", "markdown", "--top", "0", "--beyond"]) in (0, None)
    assert "| mechanism | score | recall |" in capsys.readouterr().out
    for wrong in (["--task", "chess"], ["--top", "-1"], ["--records", str(tmp_path / "none")]):
        assert main([*words, *wrong]) == 1
        assert len(capsys.readouterr().err.strip().splitlines()) == 1
    with pytest.raises(ValueError, match="no records of abilities at scale smoke"):
        read_chart(tmp_path, "smoke")
