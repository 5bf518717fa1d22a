"""The heat map from made records: numbers, colours by skill, blanks, reasons."""

from __future__ import annotations

from seqstruct.cli import main
from seqstruct.data.abilities.chart import CHART
from seqstruct.harness.abilities import TASKS, chart_of
from seqstruct.harness.records import append_records
from seqstruct.plots.abilities import heat_map
from tests.harness.chart import made, record, run


def test_cells_have_numbers_and_colours():
    chart = chart_of(made(), ["simple rule", "softmax", "rfa"])
    figure = heat_map(chart)
    trained, beyond, *_ = figure.axes
    for axes, softmax in ((trained, 0.5), (beyond, 0.9375)):
        (image,) = axes.images
        assert image.get_array().shape == (8, len(TASKS)) and image.get_clim() == (0, 1)
        assert image.get_array()[0, 3] == softmax and image.get_array().mask[1].all()
        assert (image.get_array()[7] == 0).all(), "the simple rule"
        assert [label.get_text() for label in axes.get_xticklabels()] == [CHART[task].title for task in TASKS]
    texts = {tuple(map(round, text.get_position())): text.get_text() for text in trained.texts
             if text.get_position()[1] >= 0}
    assert texts[3, 0] == "60" and texts[3, 1] == "" and texts[0, 5] == "×" and texts[0, 7] == "20"
    assert "× sigmoid, recall: gradients are Nan" in figure._supxlabel.get_text()
    assert "blank: not yet run" in figure._supxlabel.get_text()


def test_numbers_without_a_colour_can_be_read_and_nothing_measured_is_no_break():
    only_trained = run("rfa", TASKS[1:]).metrics
    found = [r for r in made() if r.row == "softmax"]
    found.append(record("rfa", {name: one for name, one in only_trained.items() if not name.endswith("_long")}))
    trained, beyond, *_ = heat_map(chart_of(found, ["softmax", "rfa"])).axes
    for axes, texts in ((trained, {"60", ""}), (beyond, {"95", ""})):
        assert axes.images[0].get_array().mask[:2].all(), "the simple rule was not run"
        inside = [text for text in axes.texts if 0 <= text.get_position()[1] <= 1]
        assert {text.get_text() for text in inside} == texts
        assert {text.get_color() for text in inside} == {"black"}


def test_the_command_draws(tmp_path):
    append_records(tmp_path / "records", made())
    out = tmp_path / "abilities.png"
    assert main(["plot", "abilities", "--records", str(tmp_path / "records"), "--out", str(out)]) in (0, None)
    assert out.stat().st_size > 10_000
    assert main(["plot", "abilities", "--records", str(tmp_path), "--out", str(out)]) == 1
