"""Short trainings one after another in one process, which pays fairseq's start once: for searches over many settings.

`python -m seqstruct.harness.trainings FILE` reads a JSON list of lists, the options of fairseq-train of each, and
prints what they print, a line `== training N` (from 0) before each.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from seqstruct.harness.logs import LogEntry, parse_line
from seqstruct.harness.process import run_command

MARK = "== training "


def run_trainings(
    trainings: Sequence[Sequence[str]], folder: Path, threads: int | None = None
) -> list[list[LogEntry]]:
    """Run them with the options of fairseq-train; the statistics that each logged come back.

    folder: for trainings.json and trainings.log, both replaced.
    Raises CommandFailed if one fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "trainings.json").write_text(json.dumps([list(options) for options in trainings]), encoding="utf-8")
    log = folder / "trainings.log"
    log.unlink(missing_ok=True)
    run_command(
        [sys.executable, "-m", "seqstruct.harness.trainings", folder / "trainings.json"], log, threads=threads
    )
    found: list[list[LogEntry]] = []
    with open(log, encoding="utf-8") as stream:
        for line in stream:
            if line.startswith(MARK):
                found.append([])
            elif found and (entry := parse_line(line)) is not None:
                found[-1].append(entry)
    return found


def main(argv: Sequence[str]) -> int:
    """Run the trainings that a file lists."""
    from fairseq_cli import train  # before all else of fairseq: it sets the form of the log lines

    import seqstruct.models
    import seqstruct.tasks  # noqa: F401  --user-dir registers nothing of a package that is imported already

    for number, options in enumerate(json.loads(Path(argv[0]).read_text(encoding="utf-8"))):
        # fairseq keeps the best score, and how often there was no better one, in attributes of these functions
        for function in (train.checkpoint_utils.save_checkpoint, train.should_stop_early):
            for name in ("best", "num_runs"):
                function.__dict__.pop(name, None)
        print(f"{MARK}{number}", flush=True)
        sys.argv = ["fairseq-train", *options]
        train.cli_main()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
