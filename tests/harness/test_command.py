"""A recipe's command line and its runs, with a recipe that trains nothing."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from seqstruct.harness import command, launch, run
from seqstruct.harness.command import main, select
from seqstruct.harness.progress import Progress
from seqstruct.harness.recipe import Cell
from seqstruct.harness.records import read_folder

SCRIPT = Path(__file__).parent / "fake_recipe.py"


@pytest.fixture
def recipe():
    return launch.load_recipe(SCRIPT)


@pytest.fixture
def call(recipe, tmp_path, capsys):
    """Run the recipe's command; status, standard output and standard error come back."""

    def call(*options):
        status = main(recipe, ["--runs", str(tmp_path / "runs"), "--records", str(tmp_path / "records"), *options])
        return status, *capsys.readouterr()

    return call


def test_cells_are_rows_by_seeds(recipe):
    assert [(c.row, c.seed) for c in select(recipe, "small", rows=["plain", "st*"])] == [
        ("plain", 1), ("plain", 2), ("stack + gate", 1), ("stack + gate", 2)]
    assert select(recipe, "smoke") == [Cell("plain", 1, "smoke"), Cell("copy", 1, "smoke")]
    assert select(recipe, "paper")[-1] == Cell("fail", 3, "paper")
    assert select(recipe, "small", rows=["c*"]) == [Cell("copy", 1, "small")]
    assert select(recipe, "small", rows=["copy"], seeds=[4]) == [Cell("copy", 4, "small")]
    assert select(recipe, "smoke", rows=["stack + gate"], seeds=[5]) == [Cell("stack + gate", 5, "smoke")]


def test_a_run_is_recorded_once_and_not_run_again(call, tmp_path):
    options = ("--row", "plain", "--row", "stack*")
    status, _, shown = call(*options)
    assert status == 0 and "stack + gate, seed 2: times 1 runs" in shown
    records = read_folder(tmp_path / "records")
    assert [(r.row, r.seed, list(r.metrics)) for r in records] == [
        (row, seed, ["times", "seed"]) for row in ("plain", "stack + gate") for seed in (1, 2)]
    first = records[0]
    assert first.data_checksums == {"train.txt": hashlib.sha256(b"1 2 3\n").hexdigest()}
    assert first.metrics["times"] == {"value": 1, "unit": "runs", "axis": "length", "points": [[1, 0.5], [2, 1.5]]}
    assert '--scale small --row "plain" --seed 1' in first.command and "torch" in first.versions
    before = (tmp_path / "records" / "1.5.jsonl").read_bytes()
    status, _, shown = call(*options)
    assert status == 0 and "plain, seed 1 (finished before): times 1 runs" in shown
    assert (tmp_path / "records" / "1.5.jsonl").read_bytes() == before


def test_another_configuration_is_another_run(call, recipe, tmp_path):
    call("--row", "plain", "--seed", "1")
    recipe.width = 9
    try:
        call("--row", "plain", "--seed", "1")
    finally:
        del recipe.width
    hashes = {r.configuration_hash for r in read_folder(tmp_path / "records")}
    assert len(hashes) == 2


def test_a_baseline_takes_a_row_s_data_and_trains_nothing(call, recipe, tmp_path):
    status, _, shown = call("--row", "copy")
    assert status == 0 and "copy, seed 1: times 6 copy of plain" in shown
    (record,) = read_folder(tmp_path / "records")
    assert record.parameters is None and record.seconds == 0 and record.dataset == "counts"
    assert record.data_checksums == {"train.txt": hashlib.sha256(b"1 2 3\n").hexdigest()}
    assert '--scale small --row "copy" --seed 1' in record.command
    assert not list((tmp_path / "runs").rglob("trained.txt"))
    assert call("--row", "copy")[2].startswith("copy, seed 1 (finished before)")
    hashes = [recipe.configuration_hash(Cell(row, 1, "small")) for row in ("copy", "plain")]
    recipe.width = 9
    try:  # of the model's settings nothing matters
        assert recipe.configuration_hash(Cell("copy", 1, "small")) == hashes[0] == record.configuration_hash
        assert recipe.configuration_hash(Cell("plain", 1, "small")) != hashes[1]
    finally:
        del recipe.width


def test_jobs_run_side_by_side(call, tmp_path):
    assert call("--row", "plain", "--seeds", "1", "2", "3", "4", "5", "--jobs", "3")[0] == 0
    assert sorted(r.seed for r in read_folder(tmp_path / "records")) == [1, 2, 3, 4, 5]


def test_folders_may_be_links_to_what_is_not_there_yet(call, tmp_path):
    for name in ("runs", "records"):
        (tmp_path / name).symlink_to(tmp_path / "disk" / name)
    assert call("--row", "plain", "--seeds", "1")[0] == 0
    assert read_folder(tmp_path / "disk" / "records") and list((tmp_path / "disk" / "runs").rglob("done.json"))


def test_a_failing_command_is_named_with_its_last_lines_and_leaves_no_record(call, tmp_path):
    status, _, shown = call("--row", "fail")
    assert status == 1 and "ended with status 1" in shown and "bad luck" in shown
    assert not (tmp_path / "records").exists()
    assert not list((tmp_path / "runs").rglob("done.json"))


def test_estimate_and_list_do_no_work(call, tmp_path):
    status, shown, _ = call("--estimate")
    assert status == 0
    assert "0 of 7 cells are finished" in shown
    assert "time: 9 minutes; disk: 14 MiB; download: 30 MiB; licence: public domain" in shown
    status, shown, _ = call("--list")
    assert status == 0 and shown.count("not yet run") == 7 and "1.5  copy, seed 1  small  not yet run" in shown
    status, shown, _ = call("--draws")
    assert status == 0 and len(shown.splitlines()) == 6
    assert os.listdir(tmp_path) == []


def test_records_of_a_smoke_run_stay_among_the_runs(recipe, tmp_path):
    assert main(recipe, ["--scale", "smoke", "--runs", str(tmp_path)]) == 0
    assert len(read_folder(tmp_path / "nmt_lectures" / "records")) == 2
    assert not (SCRIPT.parent / "records").exists()


def test_bad_options_are_one_sentence(call):
    assert call("--row", "nothing*") == (1, "", "fake_recipe.py: no row matches 'nothing*'; "
                                         "rows: plain, stack + gate, fail, copy\n")
    for options in (["--scale", "large"], ["--max-minutes", "-1"], ["--jobs", "0"]):
        with pytest.raises(SystemExit) as caught:
            call(*options)
        assert caught.value.code == 2


def test_a_full_disk_at_the_record_is_said_and_the_next_try_completes(call, tmp_path, monkeypatch):
    real = os.fsync

    def full(handle):
        if "records" in os.readlink(f"/proc/self/fd/{handle}"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(handle)

    monkeypatch.setattr(os, "fsync", full)
    status, _, shown = call("--row", "plain", "--seed", "1")
    assert status == 1 and "No space left on device" in shown
    assert not list((tmp_path / "records").iterdir())
    monkeypatch.setattr(os, "fsync", real)
    assert call("--row", "plain", "--seed", "1")[0] == 0
    assert len(read_folder(tmp_path / "records")) == 1


def test_prepared_data_is_whole_or_absent(recipe, tmp_path):
    with Progress() as progress:
        one = run.Run(recipe, Cell("plain", 1, "small"), tmp_path, progress=progress)

    def broken(folder):
        (folder / "half").write_text("x")
        raise ValueError("interrupted")

    with pytest.raises(ValueError, match="interrupted"):
        one.prepared("data set", broken)
    assert list((tmp_path / "nmt_lectures" / "data").iterdir()) == []
    folder = one.prepared("data set", lambda folder: (folder / "whole").write_text("x") and None)
    assert folder.name == "data-set" and [p.name for p in folder.iterdir()] == ["whole"]
    assert one.prepared("data set", broken) == folder


def test_a_cut_checkpoint_gives_way_to_the_best_one(tmp_path):
    torch = pytest.importorskip("torch")
    best, last = tmp_path / "checkpoint_best.pt", tmp_path / "checkpoint_last.pt"
    torch.save({"model": torch.zeros(5)}, best)
    last.write_bytes(best.read_bytes()[:100])
    run.mend_last_checkpoint(tmp_path)
    assert last.read_bytes() == best.read_bytes()
    best.write_bytes(b"")
    last.write_bytes(b"PK")
    run.mend_last_checkpoint(tmp_path)
    assert not last.exists()


def test_the_script_runs_by_itself(tmp_path):
    done = subprocess.run(
        [sys.executable, SCRIPT, "--scale", "smoke", "--runs", tmp_path], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(run.PLUGIN.parent)},
    )
    assert done.returncode == 0, done.stderr
    state = json.loads(next(Path(tmp_path).rglob("plain-*/done.json")).read_text())
    assert state["seed"] == 1 and state["settings"] == {"width": 7, "row": "plain"}


def test_jobs_of_the_launcher(tmp_path):
    pytest.importorskip("hydra_plugins.hydra_submitit_launcher")
    cells = [Cell("stack + gate", 2, "small"), Cell("plain", 1, "small")]
    words = launch.hydra_command(
        SCRIPT, cells, runs=tmp_path / "it's runs, here", records=tmp_path / "records", launcher="submitit_local",
        options=["timeout_min=5"],
    )
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": str(run.PLUGIN.parent)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted((r.row, r.seed) for r in read_folder(tmp_path / "records")) == [
        ("plain", 1), ("stack + gate", 2)]
    with pytest.raises(ValueError, match="expected NAME=VALUE"):
        launch.hydra_command(SCRIPT, cells, runs=tmp_path, records=tmp_path, launcher="x", options=["partition"])


def test_what_the_launcher_needs_is_asked_for_in_one_sentence(call, monkeypatch):
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    assert call("--launcher", "slurm") == (
        1, "", "fake_recipe.py: --launcher slurm needs one more package: pip install hydra-submitit-launcher\n")
    monkeypatch.setattr(command, "find_spec", lambda name: True)
    monkeypatch.setenv("PATH", "")
    assert call("--launcher", "slurm") == (
        1, "", "fake_recipe.py: --launcher slurm needs SLURM, and there is no srun here; --jobs N shares this machine\n"
    )


def test_sigterm_ends_the_run_and_its_command(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", _SLEEPER, tmp_path / "log"], env={**os.environ, "PYTHONPATH": str(run.PLUGIN.parent)},
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )
    child = int(process.stdout.readline())
    process.terminate()
    assert "KeyboardInterrupt" in process.communicate(timeout=30)[1]
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


_SLEEPER = """
import sys
from seqstruct.harness.command import interrupt_on_sigterm
from seqstruct.harness.process import run_command
interrupt_on_sigterm()
script = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
run_command([sys.executable, "-c", script], sys.argv[1], on_line=lambda line: print(line, end="", flush=True))
"""
