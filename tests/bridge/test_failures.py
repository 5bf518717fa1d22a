"""How failed commands end: sentence, status, log, and what is left behind."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from fairseq import checkpoint_utils
from fairseq.criterions.cross_entropy import CrossEntropyCriterion

from seqstruct.bridge import failures
from tests.models.front_door import PLUGIN, fairseq, sizes


def run(command: str, *options: object, **environment: str) -> subprocess.CompletedProcess:
    words = [sys.executable, "-m", f"fairseq_cli.{command}", *map(str, options)]
    paths = {"PYTHONPATH": str(Path(PLUGIN).parent)}
    return subprocess.run(words, capture_output=True, text=True, env={**os.environ, **paths, **environment})


def test_a_command_ends_with_one_sentence_and_the_log_has_the_traceback(tmp_path: Path) -> None:
    options = [tmp_path / "absent", "--user-dir", PLUGIN, "--cpu", "--arch", "structured_transformer", "--batch-size",
               5, "--optimizer", "adam", "--save-dir", tmp_path / "runs" / "new", "--log-file", tmp_path / "log"]
    done = run("train", *options)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"seqstruct: {tmp_path}/absent: No such file or directory"
    assert "Traceback" not in done.stdout + done.stderr
    assert "Traceback" in (tmp_path / "log").read_text() and "FileNotFoundError" in (tmp_path / "log").read_text()
    assert not (tmp_path / "runs").exists()


def test_so_does_hydra(tmp_path: Path) -> None:
    done = run(
        "hydra_train", f"hydra.run.dir={tmp_path}/out", "hydra.job.chdir=false", f"common.user_dir={PLUGIN}",
        "common.cpu=true", "task=translation", f"task.data={tmp_path}/absent", "+model={_name:structured_transformer}",
        "optimizer=adam", "lr_scheduler=fixed", "dataset.batch_size=5", f"checkpoint.save_dir={tmp_path}/new",
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"seqstruct: {tmp_path}/absent: No such file or directory"
    assert "Traceback" not in done.stdout + done.stderr and "HYDRA_FULL_ERROR" not in done.stderr
    assert "Traceback" in (tmp_path / "out" / "hydra_train.log").read_text()
    assert not (tmp_path / "new").exists()


TRAIN = f"{failures.COMMANDS}/train.py"


def raised(code: str, path: str, inside: str = TRAIN) -> BaseException:
    """What a command runs into that calls code of a file."""
    names: dict[str, Any] = {}
    exec(compile(f"def called():\n    {code}", path, "exec"), names)
    exec(compile("def main():\n    called()", inside, "exec"), names)
    with pytest.raises(BaseException) as caught:
        names["main"]()
    return caught.value


LIBRARY = failures.FAIRSEQ[0] + "/tasks/some_task.py"


@pytest.mark.parametrize(
    ("code", "path", "said"),
    [
        ("raise ValueError('--a needs\\n  --b')", LIBRARY, "--a needs --b"),
        ("raise FileNotFoundError(2, 'No such file', 'x.txt')", LIBRARY, "x.txt: No such file"),
        ("raise ValueError('of seqstruct')", failures.PACKAGE + "/tasks/one.py", "of seqstruct"),
        ("assert 1 > 2, 'one is not two'", LIBRARY, "one is not two"),
        ("{}['x']", LIBRARY, "KeyError: 'x' (the traceback is in {}; SEQSTRUCT_TRACEBACK=1 shows it)"),
        ("assert 1 > 2", LIBRARY, "AssertionError (the traceback is in {}; SEQSTRUCT_TRACEBACK=1 shows it)"),
        ("raise RuntimeError('x' * 999)", LIBRARY, "x" * 400 + " ..."),
        ("raise Exception('Process 0\\n\\nTraceback (most recent call last):\\n  File\\nValueError: no')", LIBRARY,
         "ValueError: no"),
        ("raise KeyboardInterrupt", LIBRARY, "interrupted"),
        ("raise RuntimeError('Expected to have finished reduction in the prior iteration before ...')", LIBRARY,
         "some parameters of the model have no part in the loss: give --find-unused-parameters"),
    ],
)
def test_sentences(
    code: str, path: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(logging.root.manager, "loggerDict", {})  # earlier commands left log files open
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    error = raised(code, path)
    failures.report(type(error), error, error.__traceback__)
    (kept,) = list(tmp_path.iterdir()) or [""]
    assert capsys.readouterr().err == f"seqstruct: {said.format(kept)}\n"
    assert bool(kept) == ("{}" in said)
    if kept:
        assert "Traceback" in kept.read_text() and "in called" in kept.read_text()


@pytest.mark.parametrize(
    ("code", "path", "inside", "environment"),
    [
        ("{}['x']", "/project/my_task.py", TRAIN, {}),
        ("{}['x']", LIBRARY, "/project/my_script.py", {}),
        ("raise ValueError('--a needs --b')", LIBRARY, TRAIN, {"SEQSTRUCT_TRACEBACK": "1"}),
    ],
)
def test_tracebacks_are_shown_of_code_that_somebody_writes_and_where_the_environment_asks(
    code: str, path: str, inside: str, environment: dict, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    error = raised(code, path, inside)
    failures.report(type(error), error, error.__traceback__)
    printed = capsys.readouterr().err
    assert "Traceback" in printed and "in called" in printed and "seqstruct: " not in printed


def test_a_script_shows_its_lines_where_this_package_refuses(capsys: pytest.CaptureFixture) -> None:
    error = raised("raise ValueError('of seqstruct')", f"{failures.PACKAGE}/tasks/one.py", "/project/my_script.py")
    failures.report(type(error), error, error.__traceback__)
    printed = capsys.readouterr().err
    assert "/project/my_script.py" in printed and printed.endswith("\nValueError: of seqstruct\n")


@pytest.mark.parametrize(("path", "ours"), [("/project/my_task.py", False), (LIBRARY, True)])
def test_what_is_raised_while_ours_is_handled_is_another_error_unless_fairseq_raises_it(path: str, ours: bool) -> None:
    lines = "from seqstruct.attention import get_attention", "try: get_attention('rafa')", "except ValueError: {}['x']"
    error = raised("\n    ".join(lines), path)
    assert ("rafa" in (failures.sentence(error) or "")) == ours
    assert failures.is_mistake(error) == ours


def test_folders_with_something_in_them_stay(tmp_path: Path) -> None:
    verify = checkpoint_utils.verify_checkpoint_directory
    verify(str(tmp_path / "a" / "b"))
    (tmp_path / "a" / "kept").touch()
    failures.remove_empty_folders()
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["kept"]
    verify(str(tmp_path / "a"))
    (tmp_path / "a" / "kept").unlink()
    failures.remove_empty_folders()
    assert (tmp_path / "a").is_dir()


@pytest.mark.training
@pytest.mark.parametrize(
    ("error", "updates", "kept"), [(KeyError, 0, False), (KeyError, 2, True), (IndexError, 2, False)]
)
def test_crash_checkpoints_are_of_what_was_trained_and_of_no_mistake(
    error: type[Exception], updates: int, kept: bool, reversals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward, calls = CrossEntropyCriterion.forward, []

    def fail(self: Any, model: Any, sample: Any, reduce: bool = True) -> Any:
        calls.append(sample)
        if len(calls) > updates:
            if error is IndexError:
                sample["net_input"]["src_tokens"] = sample["net_input"]["src_tokens"] + 99
            else:
                raise error("x")
        return forward(self, model, sample, reduce)

    monkeypatch.setattr(CrossEntropyCriterion, "forward", fail)
    with pytest.raises(error):
        fairseq("train", reversals / "bin", "--arch", "structured_transformer", *sizes(), "--optimizer", "adam",
                "--batch-size", 10, "--max-update", 4, "--disable-validation", "--save-dir", tmp_path / "run")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["crash.pt"] * kept
