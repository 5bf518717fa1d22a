"""How far several runs have come: bars on a terminal, one plain line for each note elsewhere."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars


class Progress:
    """Progress of all runs of a command on standard error, to be used in a `with` statement."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, soft_wrap=True)
        self.live = self._console.is_terminal
        self._lock = threading.Lock()
        self._bars = Bars(
            TextColumn("{task.description}"), BarColumn(bar_width=24),
            TextColumn("{task.completed:.1f}/{task.fields[end]}"), TimeElapsedColumn(),
            TimeRemainingColumn(), TextColumn("{task.fields[note]}"),
            console=self._console, disable=not self.live,
        )

    def __enter__(self) -> Progress:
        self._bars.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bars.stop()

    def task(self, name: str, total: float) -> Callable[[float, str], None]:
        """A new line of progress up to `total`, which may be infinite: a function, for any thread, of what is done and
        a note.

        A note that is not empty replaces the one before, and is a line of its own where there are no bars.
        """
        end = f"{total:.0f}"
        bar = self._bars.add_task(name, total=total if math.isfinite(total) else None, note="", end=end)

        def advance(done: float, note: str) -> None:
            self._bars.update(bar, completed=min(done, total), **({"note": note} if note else {}))
            if note and not self.live:
                self.say(f"{name}: {done:.0f}/{end}  {note}")

        return advance

    def say(self, text: str) -> None:
        """Write one line, above the bars where there are any."""
        with self._lock:
            self._console.print(text, markup=False, highlight=False)
