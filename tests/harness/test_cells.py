"""Cells that are run: once, resumed, side by side, pasted into a shell; and a recipe's command line."""

from __future__ import annotations

import hashlib
import json
import math
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from seqstruct.cli import main
from seqstruct.data.files import locked
from seqstruct.harness.cells import _epochs, mend_last_checkpoint, run_plan, side_by_side, state
from seqstruct.harness.records import read_folder
from seqstruct.harness.script import THREADS, VARIABLE, Cell, Script, Step
from seqstruct.harness.submit import submit
from seqstruct.ops import compiled
from tests.harness.scripts import TEXT, make_repository


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.delenv("SEQSTRUCT_REFERENCE", raising=False)
    path = make_repository(tmp_path)
    monkeypatch.setenv("PATH", f"{path.parents[2] / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}")
    return Script(path)


@pytest.fixture
def call(script, tmp_path, capsys):
    """Run the recipe's command; status, standard output and standard error come back."""

    def call(*options):
        where = ["--runs", str(tmp_path / "runs"), "--records", str(tmp_path / "records")]
        status = main(["cell", str(script.path), *where, *options])
        return status, *capsys.readouterr()

    return call


def runs_of(tmp_path, row="plain-small"):
    return [path.read_text() for path in sorted((tmp_path / "runs").rglob(f"{row}*/runs.txt"))]


def test_a_cell_is_recorded_once_and_not_run_again(call, tmp_path):
    status, _, shown = call("--row", "plain", "stack*", "copy", "--jobs", "2")
    assert status == 0 and "stack + gate, seed 2: times 1 runs, seed 2" in shown
    records = read_folder(tmp_path / "records")
    assert {(r.row, r.seed, r.table) for r in records} == {
        *((row, seed, table) for row in ("plain", "stack + gate") for seed in (1, 2)
          for table in ("1.5-stand-in", "1.6")), ("copy", 1, "1.5-stand-in")}
    first = min((r for r in records if r.row == "plain" and r.table == "1.5-stand-in"), key=lambda r: r.seed)
    assert first.data_checksums["n.txt"] == hashlib.sha256(b"x").hexdigest()
    assert first.dataset == "counts, small" and first.machine["threads"] == "1"
    assert first.command == 'recipes/nmt_lectures/fake.sh --scale small --row "plain" --seeds 1'
    assert [p.read_text() for p in tmp_path.rglob("shared/*/times")] == ["x"]
    before = [p.read_bytes() for p in sorted((tmp_path / "records").iterdir())]
    status, _, shown = call("--row", "plain")
    assert status == 0 and "plain, seed 1 (finished before): times 1 runs" in shown
    assert [p.read_bytes() for p in sorted((tmp_path / "records").iterdir())] == before
    assert runs_of(tmp_path) == ["x", "x"]


@pytest.mark.parametrize("jobs, said, threads", [(1, None, None), (2, None, "3"), (9, None, "1"), (2, "5", "5")])
def test_cells_side_by_side_share_the_cores(call, tmp_path, monkeypatch, jobs, said, threads):
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    for name in THREADS:
        monkeypatch.delenv(name, raising=False) if said is None else monkeypatch.setenv(name, said)
    status, _, shown = call("--scale", "paper", "--row", "plain", "--seeds", "1", "--jobs", str(jobs))
    assert status == 0, shown
    (log,) = (tmp_path / "runs").rglob("counted.log")
    assert json.loads(log.read_text().rpartition("| ")[2])["threads"] == threads
    assert [os.environ.get(name) for name in THREADS] == [said] * len(THREADS)


def test_what_is_printed_is_what_runs(call, script, tmp_path):
    status, text, _ = call("--row", "plain", "--seeds", "7", "--print")
    assert status == 0 and not (tmp_path / "runs").exists()
    done = subprocess.run(["bash"], input=text, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    pasted = read_folder(tmp_path / "records")
    log = (script.plan(Cell("plain", 7, "small"), runs=tmp_path / "runs").out / "counted.log").read_text()
    assert json.loads(log.rpartition(" | ")[2])["words"] == ["seven", "8", "--cpu", "--num-workers", "0"]
    assert [r.row for r in pasted] == ["plain", "plain"] and pasted[0].seed == 7
    call("--row", "plain", "--seeds", "7")
    assert len(runs_of(tmp_path)[0]) == 2


def test_a_failure_is_one_sentence_and_goes_on_from_there(call, tmp_path):
    status, _, shown = call("--row", "fail", "--seeds", "1")
    assert status == 1 and "fake.sh: fail, seed 1: fairseq-validate" in shown and "bad luck" in shown
    assert "Traceback" not in shown and not (tmp_path / "records").exists()
    assert call("--row", "fail", "--seeds", "1")[0] == 1
    assert runs_of(tmp_path, "fail") == ["xx"] and [p.read_text() for p in tmp_path.rglob("shared/*/times")] == ["x"]


def test_a_training_that_cells_share_shows_its_progress_and_keeps_the_limit(call, script, tmp_path):
    training = '    shared "lm" fairseq-hydra-train first optimization.max_epoch=7\n'
    script.path.write_text(TEXT.replace("    log=counted", f"{training}    log=counted"))
    status, _, shown = call("--row", "plain", "--seeds", "1", "2", "--max-minutes", "3")
    assert status == 0 and shown.count("1/7  epoch 1, validation loss 0.5000") == 1
    (log,) = tmp_path.rglob("shared/lm-*/train.log")
    assert log.read_text().count("| valid |") == 1 and (log.parent / "finished").exists()
    _, text, _ = call("--row", "plain", "--seeds", "1", "--max-minutes", "3", "--print")
    assert f"optimization.stop_time_hours=0.05 2>&1 | tee -a {log}" in text
    status, _, shown = call("--row", "plain", "--seeds", "3", "--max-minutes", "0.06")
    assert status == 1 and "--max-minutes allows more" in shown
    assert len([*tmp_path.rglob("shared/lm-*")]) == 2 and len([*tmp_path.rglob("shared/lm-*/finished")]) == 1


@pytest.mark.parametrize("words, epochs", [
    ((), 7.0), (("optimization.max_epoch=3",), 3.0), (("optimization.max_epoch=0",), math.inf),
    (("scale=paper",), math.inf),
])
def test_how_many_epochs_a_training_has_by_files_and_words(tmp_path, words, epochs):
    """One of the files has comments alone."""
    (tmp_path / "scale").mkdir()
    (tmp_path / "first.yaml").write_text("defaults: [scale: small]\noptimization: {max_update: 9}")
    (tmp_path / "scale" / "small.yaml").write_text("optimization: {max_epoch: 7}")
    (tmp_path / "scale" / "paper.yaml").write_text("# as published\n")
    plan = SimpleNamespace(script=SimpleNamespace(root=tmp_path))
    assert _epochs(plan, Step("train", ("--config-dir", ".", "--config-name", "first", *words))) == epochs


def test_rows_of_one_table_alone(call, script):
    also = '    [[ "$row" != copy ]] || also="2.1 2.2"\n'
    script.path.write_text(TEXT.replace("    raw numbers", f"{also}    raw numbers"))

    def rows(*options):
        _, listed, _ = call("--list", "--seeds", "1", *options)
        return [line.split("  ")[1].split(",")[0] for line in listed.splitlines()]

    every = ["plain", "stack + gate", "fail", "copy"]
    assert rows("--table", "1.5") == rows("--table", "1.5-stand-in") == rows() == every
    assert rows("--table", "1.6") == every[:3] and rows("--table", "2.2") == ["copy"]
    assert rows("--table", "1.6", "--row", "plain", "copy") == ["plain"]
    assert rows("--table", "2.2", "--scale", "smoke") == ["plain", "copy"]
    status, _, shown = call("--table", "2.3", "--list")
    assert status == 1 and "table 2.3 has none of these rows at scale small; no other scale has any" in shown
    also = also.replace("$row", "$scale").replace("copy", "paper").replace("2.1", "2.3")
    script.path.write_text(TEXT.replace("    raw numbers", f"{also}    raw numbers"))
    for row in ([], ["--row", "plain", "st*"]):
        status, _, shown = call("--table", "2.3", "--list", *row)
        assert status == 1 and "table 2.3 has none of these rows at scale small; --scale paper has some" in shown
    assert call("--table", "2.3", "--list", "--scale", "paper")[0] == 0


def test_list_and_estimate_run_nothing(call, tmp_path):
    call("--row", "plain", "--seeds", "1")
    _, listed, _ = call("--list", "--row", "plain", "copy")
    states = [line.split("  ")[3] for line in listed.splitlines()]
    assert states == ["finished", "not yet run", "not yet run"]
    _, estimated, _ = call("--estimate", "--row", "plain", "copy")
    assert "public domain" in estimated and "left: 0.1 hours" in estimated and "4 MiB on disk, 30 MiB" in estimated
    assert len(runs_of(tmp_path)) == 1


def test_no_cell_runs_on_a_gpu_that_is_not_there(call, tmp_path, monkeypatch):
    monkeypatch.setenv("SEQSTRUCT_DEVICE", "cuda")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    status, printed, told = call("--row", "plain", "--seeds", "1")
    assert status == 1 and "fake.sh: no device cuda here, which SEQSTRUCT_DEVICE asks for" in told and not printed
    assert not (tmp_path / "runs").exists() and not (tmp_path / "records").exists()
    for option in ("--list", "--print", "--estimate"):
        assert call("--row", "plain", option)[0] == 0


@pytest.mark.parametrize("options, told", [
    (("--launcher-option", "a=1"), "expected --launcher slurm with it"),
    (("--launcher", "slurm", "--launcher-option", "partition"), "launcher option 'partition': expected NAME=VALUE"),
])
def test_wrong_options(call, options, told):
    status, _, shown = call(*options)
    assert status == 1 and told in shown and "Traceback" not in shown


@pytest.mark.parametrize("options, told", [
    (("--jobs", "0"), "argument --jobs: expected a whole number, 1 to 256, got '0'"),
    (("--jobs", "257"), "argument --jobs: expected a whole number, 1 to 256, got '257'"),
    (("--seeds", "1", "0", "--list"), "argument --seeds/--seed: expected a whole number, 1 or more, got '0'"),
    (("--seeds", "-1", "--print"), "argument --seeds/--seed: expected a whole number, 1 or more, got '-1'"),
    (("--seeds", "x"), "argument --seeds/--seed: expected a whole number, 1 or more, got 'x'"),
])
def test_numbers_out_of_range(call, capsys, options, told):
    with pytest.raises(SystemExit) as ended:
        call(*options)
    assert ended.value.code == 2 and capsys.readouterr().err.splitlines()[-1].endswith(told)


def test_a_user_s_call_reaches_the_command(script, tmp_path):
    done = subprocess.run([str(script.path), "--help"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.startswith("usage: fake.sh") and "two paragraphs" in done.stdout


def test_jobs_of_a_cluster(script, tmp_path, capsys):
    submitit = pytest.importorskip("submitit")
    plans = [script.plan(Cell("plain", seed, "small"), runs=tmp_path / "runs", records=tmp_path / "records")
             for seed in (1, 2)]
    jobs = submit(plans, ["timeout_min=3"], tmp_path / "jobs", submitit.LocalExecutor(folder=tmp_path / "jobs"))
    for job in jobs:
        job.result()
    assert [state(plan) for plan in plans] == ["finished"] * 2 and "plain, seed 2: job" in capsys.readouterr().out
    with pytest.raises(ValueError, match="srun"):
        submit(plans, ["nonsense=1"], tmp_path / "jobs")


@pytest.mark.parametrize("lock", ["cell", "shared"])
def test_a_failure_ends_cells_that_wait_for_another_process_too(tmp_path, lock):
    step = Step("prepare", ("true",), "shared")
    plan = SimpleNamespace(
        out=tmp_path / "cell", gpu=False, steps=(step,), text=str, line=lambda step: "true", cell="a cell",
        script=SimpleNamespace(root=tmp_path),
    )
    begun, failed = threading.Event(), []

    def work(plan, progress, stop):
        if plan is None:
            begun.wait(10)
            raise ValueError("bad luck")
        begun.set()
        run_plan(plan, progress, stop)

    def call():
        with pytest.raises(ValueError, match="bad luck"):
            side_by_side(work, [plan, None], 2)
        failed.append(True)

    plan.out.mkdir()
    caller = threading.Thread(target=call)
    with locked(plan.out if lock == "cell" else tmp_path / ".shared.lock"):
        caller.start()
        caller.join(3)
        ended = list(failed)
    caller.join()
    assert ended and not (plan.out / "done.json").exists()


def test_names_of_variables_agree():
    assert VARIABLE == compiled.VARIABLE


def test_a_cut_checkpoint_is_replaced(tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "checkpoint_best.pt", "w") as archive:
        archive.writestr("a", "b")
    whole = (tmp_path / "checkpoint_best.pt").read_bytes()
    (tmp_path / "checkpoint_last.pt").write_bytes(whole[:20])
    mend_last_checkpoint(tmp_path)
    assert (tmp_path / "checkpoint_last.pt").read_bytes() == whole


def test_sigterm_goes_on_where_it_was(script, tmp_path):
    slow = TEXT.replace('log=counted.log', 'python -c "import time; time.sleep(60)"\n    log=counted.log')
    script.path.write_text(slow)
    words = [str(script.path), "--runs", str(tmp_path / "runs"), "--row", "plain", "--seeds", "1"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if "python -c" in line:
            process.terminate()
            break
    rest = process.stderr.read()
    assert process.wait() == 130 and "interrupted; the same command goes on from here" in rest
    assert state(Script(script.path).plan(Cell("plain", 1, "small"), runs=tmp_path / "runs")) == "begun"
