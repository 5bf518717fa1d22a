"""Commands run as processes of their own: threads fixed, output logged, memory and time measured."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Callable, Mapping, NamedTuple, Sequence

_RSS_UNIT = 1 if sys.platform == "darwin" else 1024
_TAIL = 8

_running: set[subprocess.Popen] = set()
_running_lock = threading.Lock()


class Usage(NamedTuple):
    """What a command took.  seconds: of wall clock.  peak_memory: bytes resident at most, in one of its processes."""

    seconds: float
    peak_memory: int


def run_command(
    command: Sequence[str | os.PathLike],
    log: str | os.PathLike,
    *,
    on_line: Callable[[str], None] | None = None,
    environment: Mapping[str, str] | None = None,
    folder: str | os.PathLike | None = None,
) -> Usage:
    """Run a command to its end; what it prints is appended to the log.

    on_line: called with each line as it comes.  environment: variables beside those of this process.  folder: where it
    runs, by default where this process does.
    Raises ValueError, with the last lines, if the status is not 0; the process is ended if this one is interrupted.
    """
    words = [str(word) for word in command]
    log = Path(log)
    log.parent.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    tail: list[str] = []
    with open(log, "a", encoding="utf-8") as stream:
        stream.write(f"$ {shlex.join(words)}\n")
        stream.flush()
        with _running_lock:  # over both, since who ends all may come in between
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                encoding="utf-8", errors="replace", env={**os.environ, **(environment or {})}, cwd=folder,
                start_new_session=True,  # a shell's own children are ended with it
            )
            _running.add(process)
        try:
            for line in process.stdout:
                stream.write(line)
                stream.flush()
                tail = (tail + [line.rstrip("\n")])[-_TAIL:]
                if on_line is not None:
                    on_line(line)
            # wait4 gives this child's own peak, which RUSAGE_CHILDREN would mix with that of earlier ones
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        except BaseException:
            _terminate(process)
            process.wait()
            raise
        finally:
            process.stdout.close()
            with _running_lock:
                _running.discard(process)
    if process.returncode != 0:
        raise ValueError("\n  ".join([f"ended with status {process.returncode} (whole output in {log}):", *tail]))
    return Usage(time.monotonic() - start, usage.ru_maxrss * _RSS_UNIT)


def terminate_all() -> None:
    """Ask every command still running to end (those of other threads too)."""
    with _running_lock:
        for process in _running:
            _terminate(process)


def _terminate(process: subprocess.Popen) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
