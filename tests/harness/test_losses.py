"""Training losses from logs, and where a fine-tuned model reaches those of the first."""

from __future__ import annotations

import json
from pathlib import Path

from seqstruct.harness import losses, measurements
from seqstruct.scoring.measurement import Measurement, write


def line(tag: str, **values: str) -> str:
    return f"2026 | INFO | {tag} | {json.dumps(values)}\n"


def test_losses_are_read_from_logs(tmp_path: Path, capsys) -> None:
    first, second, out = tmp_path / "first.log", tmp_path / "second.log", tmp_path / "found.json"
    first.write_text(line("train", train_num_updates="60", train_loss="8.75"))
    epoch = line("train", train_num_updates="50", train_loss="8.5")
    second.write_text(
        line("train_inner", num_updates="25", loss="9.5") + line("train_inner", num_updates="50", loss="8.25") + epoch
    )
    assert losses.main([str(first), "--out", str(out)]) == 0
    (softmax,) = measurements.read(tmp_path, ["found.json"])
    assert softmax.entry() == {"value": 8.75, "unit": "bits"}
    assert losses.main([str(first), str(second), "--out", str(out)]) == 0
    curve, reached = measurements.read(tmp_path, ["found.json"])
    assert curve.entry() == {"value": 8.25, "unit": "bits", "axis": "update", "points": [[25.0, 9.5], [50.0, 8.25]]}
    assert (reached.metric, reached.value) == ("updates_to_softmax_loss", 50)
    second.write_text(epoch)  # fewer updates than a line of statistics has
    assert losses.loss_curve(second) == [(50, 8.5)]
    again = [line("train_inner", num_updates=update, loss=loss) for update, loss in (("25", "9.5"), ("50", "8.25"))]
    second.write_text("".join([*again, *again, line("train_inner", num_updates="75", loss="7.5"), epoch]))
    assert losses.loss_curve(second) == [(25, 9.5), (50, 8.25), (75, 7.5)]  # interrupted after 50 updates
    second.write_text("".join([*again, line("train", train_num_updates="60", train_loss="8.5")]))
    assert losses.main([str(first), str(second), "--out", str(out)]) == 1
    assert "after its last update, 60, got the last one after 50" in capsys.readouterr().err
    second.write_text("nothing\n")
    assert losses.main([str(first), str(second), "--out", str(out)]) == 1
    assert "no epoch was finished" in capsys.readouterr().err


def test_a_measurement_of_a_list_is_recorded_under_another_name(tmp_path: Path) -> None:
    write(tmp_path / "a.json", [Measurement("test_perplexity", 2.5, "perplexity")])
    (found,) = measurements.read(tmp_path, ["5.4a:test_perplexity_480[perplexity]=a.json:test_perplexity"])
    assert (found.table, found.metric, found.value) == ("5.4a", "test_perplexity_480", 2.5)
