"""How far several runs have come: bars on a terminal, one plain line for each note elsewhere."""

from __future__ import annotations

import sys
import threading
from typing import IO

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars


class Task:
    """One line of progress; `advance` may be called from any thread."""

    def __init__(self, progress: Progress, name: str, total: float):
        self._progress = progress
        self._name = name
        self._total = total
        self._bar = progress._bars.add_task(name, total=total, note="")

    def advance(self, done: float, note: str = "") -> None:
        """Say that `done` of the total is done; the note, if there is one, replaces the one before."""
        self._progress._bars.update(self._bar, completed=min(done, self._total), **({"note": note} if note else {}))
        if note and not self._progress.live:
            self._progress.say(f"{self._name}: {done:.0f}/{self._total:.0f}  {note}")


class Progress:
    """Progress of all runs of a command, to be used in a `with` statement.

    stream: where it is written, standard error by default.
    """

    def __init__(self, stream: IO[str] | None = None):
        self._console = Console(file=sys.stderr if stream is None else stream, soft_wrap=True)
        self.live = self._console.is_terminal
        self._lock = threading.Lock()
        self._bars = Bars(
            TextColumn("{task.description}"), BarColumn(bar_width=24),
            TextColumn("{task.completed:.1f}/{task.total:.0f}"), TimeElapsedColumn(),
            TimeRemainingColumn(), TextColumn("{task.fields[note]}"),
            console=self._console, disable=not self.live,
        )

    def __enter__(self) -> Progress:
        self._bars.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bars.stop()

    def task(self, name: str, total: float) -> Task:
        """A new line of progress up to `total`."""
        return Task(self, name, total)

    def say(self, text: str) -> None:
        """Write one line, above the bars where there are any."""
        with self._lock:
            self._console.print(text, markup=False, highlight=False)
