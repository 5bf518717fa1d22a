"""The door of all commands: what becomes one sentence, and which exit status comes back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from seqstruct.command import answer, module_parser, run_module


@pytest.mark.parametrize(("error", "status", "sentence"), [
    (ValueError("expected 1, got 2"), 1, "x: expected 1, got 2\n"),
    (FileNotFoundError(2, "No such file or directory", "a/b"), 1, "x: a/b: No such file or directory\n"),
    (OSError("no space"), 1, "x: no space\n"),
    (ModuleNotFoundError("No module named 'y'"), 1,
     "x: No module named 'y'; `seqstruct doctor` names what is missing\n"),
    (KeyboardInterrupt(), 130, "x: interrupted\n"),
])
def test_errors_are_one_sentence(capsys, error, status, sentence):
    def work():
        raise error

    assert answer("x", work) == status
    assert capsys.readouterr().err == sentence


def test_what_work_returns_is_the_status():
    assert [answer("x", lambda value=value: value) for value in (None, 0, 3, ["no number"])] == [0, 0, 3, 0]


def test_a_module_names_itself(capsys):
    parser = module_parser("seqstruct.x.y", "What it does.\n\n    As it stands.")
    parser.add_argument("number", type=int)
    assert run_module(parser, ["3"], lambda args: args.number) == 3
    assert run_module(parser, ["3"], lambda args: int("three")) == 1
    assert capsys.readouterr().err.startswith("seqstruct.x.y: invalid literal")
    with pytest.raises(SystemExit):
        run_module(parser, ["--help"], print)
    shown = capsys.readouterr().out
    assert shown.startswith("usage: python -m seqstruct.x.y ") and "\n    As it stands.\n" in shown


@pytest.mark.parametrize("words", [
    ["seqstruct", "list"], ["seqstruct", "--help"], ["seqstruct", "score", "--help"], ["seqstruct", "path"],
    ["seqstruct.data.nli.texts", "--help"],
])
def test_a_reader_who_has_seen_enough_is_no_error(words):
    read, write = os.pipe()
    os.close(read)
    held_back = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        [sys.executable, "-m", *words], stdout=write, stderr=subprocess.PIPE, text=True, env=held_back
    )
    os.close(write)
    assert done.stderr == "" and done.returncode in (0, 141)


INTERRUPTED = """
import os, sys, time
from seqstruct.command import answer
from seqstruct.data.files import atomic_write
def work():
    with atomic_write(sys.argv[1]) as stream:
        stream.write("half")
        if os.fork() == 0:
            print("begun", flush=True)  # here, for a signal that comes while Python forks is lost
            time.sleep(60)
        os.wait()
sys.exit(answer("x", work))
"""


def test_sigterm_leaves_as_little_as_an_interruption(tmp_path):
    words = [sys.executable, "-c", INTERRUPTED, tmp_path / "file"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, **pipes, start_new_session=True) as process:
        assert process.stdout.readline() == "begun\n"
        os.killpg(process.pid, signal.SIGTERM)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 130 and said == "x: interrupted\n" and list(tmp_path.iterdir()) == []


def test_the_handler_of_sigterm_is_the_caller_s_again():
    before = signal.getsignal(signal.SIGTERM)
    assert answer("x", lambda: int(signal.getsignal(signal.SIGTERM) is before)) == 0
    assert signal.getsignal(signal.SIGTERM) is before
