"""`seqstruct average`: which files it takes, what it writes, what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Callable

import pytest
import torch

from seqstruct.bridge.checkpoints import load_checkpoint
from seqstruct.cli import main


def save(path: Path, value: float, **entries: object) -> None:
    table = torch.full((2, 3), value)
    model = {"table": table, "output": table, "count": torch.tensor([int(value)])}
    torch.save({"model": model, "cfg": None, "extra_state": {"ema": {"table": table + 10}}} | entries, path)


def averaged(path: Path) -> float:
    model = load_checkpoint(path)["model"]
    assert model["output"].data_ptr() == model["table"].data_ptr()
    return float(model["table"][0, 0])


def test_files_and_folders(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    run, out = tmp_path / "run", tmp_path / "mean.pt"
    run.mkdir()
    for epoch in (2, 9, 10):
        save(run / f"checkpoint{epoch}.pt", float(epoch))
        save(run / f"checkpoint_{epoch}_{epoch}000.pt", 100.0 * epoch)
    save(run / "checkpoint_best.pt", 5.0)
    files = [str(run / "checkpoint2.pt"), str(run / "checkpoint_best.pt")]
    assert main(["average", *files, "--out", str(out)]) == 0
    assert averaged(out) == 3.5
    assert capsys.readouterr().out == f"{out}: the mean of checkpoint2.pt, checkpoint_best.pt\n"
    assert main(["average", str(run), "--last", "2", "--out", str(out)]) == 0
    assert averaged(out) == 9.5
    for epoch in (2, 9, 10):
        (run / f"checkpoint{epoch}.pt").unlink()
    assert main(["average", str(run), "--last", "2", "--out", str(out)]) == 0
    assert averaged(out) == 950.0
    assert main(["average", files[1], "--running", "--out", str(out)]) == 0
    assert load_checkpoint(out)["model"].keys() == {"table"}
    assert load_checkpoint(out)["model"]["table"].unique().tolist() == [15.0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mean.pt", "run"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a.pt", "absent.pt"], "absent.pt: no such checkpoint"),
        (["a.pt", "strange.pt"], "strange.pt: expected tensors as parameters, table is int"),
        (["a.pt", "fewer.pt"], "fewer.pt has no count, unlike {}/a.pt: not checkpoints of one model"),
        (["fewer.pt", "a.pt"], "fewer.pt has no count, unlike {}/a.pt: not checkpoints of one model"),
        (["a.pt", "wider.pt"], "output is (5,) in {}/wider.pt and (2, 3) in {}/a.pt"),
        (["plain.pt", "--running"], "plain.pt: no running average; training keeps one with --store-ema"),
        (["a.pt", "b.pt", "--last", "2"], "--last takes one folder, got 2 paths"),
        ([".", "--last", "1"], "expected 1 checkpoints of epochs (checkpoint1.pt, ...) or of updates"),
        (["a.pt", "--last", "1"], "a.pt: Not a directory"),
        ([".", "--last", "0"], "expected 1 checkpoint or more to average, got 0"),
        (["."], "no such checkpoint"),
        (["a.pt", "b.pt", "--out", "./b.pt"], "b.pt: expected another file than the checkpoints whose mean it is"),
        (["a.pt", "--out", "absent/mean.pt"], "absent/mean.pt: No such file or directory"),
        (["a.pt", "--out", "text.pt/mean.pt"], "text.pt/mean.pt: Not a directory"),
        (["a.pt", "--out", "folder"], "/folder: Is a directory"),
    ],
)
def test_one_sentence_and_nothing_written(
    arguments: list[str], said: str, tmp_path: Path, refused: Callable[..., str]
) -> None:
    for name in ("a.pt", "b.pt"):
        save(tmp_path / name, 1.0)
    save(tmp_path / "plain.pt", 1.0, extra_state={})
    save(tmp_path / "strange.pt", 1.0, model={"table": 3, "output": 4, "count": 5})
    save(tmp_path / "fewer.pt", 1.0, model={"table": torch.zeros(2, 3), "output": torch.zeros(2, 3)})
    save(tmp_path / "wider.pt", 1.0, model={"table": torch.zeros(5), "output": torch.zeros(5), "count": torch.ones(1)})
    (tmp_path / "text.pt").write_text("hello")
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.iterdir())
    words = [word if word.startswith("--") or word.isdigit() else str(tmp_path / word) for word in arguments]
    out = [] if "--out" in words else ["--out", str(tmp_path / "mean.pt")]
    assert said.replace("{}", str(tmp_path)) in refused("average", *words, *out)
    assert sorted(tmp_path.iterdir()) == before
