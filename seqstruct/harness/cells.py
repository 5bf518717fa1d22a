"""Cells, run: each line of a plan once, in its order, with logs, locks, progress and exact resumption."""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seqstruct.bridge import logs
from seqstruct.data.files import locked, read_json, write_json
from seqstruct.harness.configs import read_config, said_last
from seqstruct.harness.process import run_command, terminate_all
from seqstruct.harness.progress import Progress
from seqstruct.harness.records import format_value
from seqstruct.harness.script import DEVICE, SHARED, THREADS, Plan, Step

DONE = "done.json"
STEPS = "steps.json"
USAGE = "usage.json"  # of a shared training, in its folder


def state(plan: Plan) -> str:
    """finished, begun or not yet run."""
    return "finished" if (plan.out / DONE).exists() else "begun" if plan.out.exists() else "not yet run"


def run_plans(plans: Sequence[Plan], *, jobs: int = 1) -> None:
    """Run the cells, `jobs` at a time.  The first failure ends all.

    Raises ValueError or OSError with one sentence for what failed.
    """
    side_by_side(run_plan, plans, jobs)


def side_by_side(work: Callable[[Plan, Progress, threading.Event], None], plans: Sequence[Plan], jobs: int) -> None:
    """Do some work for each cell, `jobs` of them at a time; the first exception of one, or here, ends all."""
    stop = threading.Event()
    with Progress() as progress, _share_of_cores(jobs), ThreadPoolExecutor(max_workers=jobs) as pool:
        futures = [pool.submit(work, plan, progress, stop) for plan in plans]
        try:
            left = {*futures}
            while left:  # a signal that comes just before a wait does not end it
                finished, left = wait(futures, timeout=1, return_when=FIRST_EXCEPTION)
                for future in finished:
                    future.result()
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            while not all(future.done() for future in futures):  # one may have been about to start its command
                terminate_all()
                wait(futures, timeout=0.2)
            raise


@contextmanager
def _share_of_cores(jobs: int) -> Iterator[None]:
    """Give commands of which neither recipe nor user says how many threads they have (scale paper) their share.

    Commands side by side that each start as many threads as there are cores wait for one another's at every operator.
    """
    share = str(max(1, (os.cpu_count() or 1) // jobs))
    unsaid = [name for name in THREADS if jobs > 1 and name not in os.environ]
    os.environ.update(dict.fromkeys(unsaid, share))
    try:
        yield
    finally:
        for name in unsaid:
            os.environ.pop(name, None)


def run_plan(plan: Plan, progress: Progress, stop: threading.Event) -> None:
    """Run what is left of one cell; nothing if it is finished, and no further step once `stop` is set.

    Its folder holds commands.sh (the plan), output.log, the logs that the plan names, steps.json (what each finished
    step took) and done.json.  Two processes that are given one cell take turns.  Raises ValueError or OSError with one
    sentence for what failed, and for a GPU that is not there before anything runs.
    """
    if state(plan) == "finished":
        progress.say(f"{plan.cell} (finished before): {_numbers(plan.out)}")
        return
    if plan.gpu:
        _check_gpu()
    os.makedirs(os.path.realpath(plan.out), exist_ok=True)  # a link may lead to what is not there yet
    with locked(plan.out, stop=stop) as turn:
        if not turn:
            return
        if state(plan) != "finished":
            (plan.out / "commands.sh").write_text(plan.text(), encoding="utf-8")
            for step in plan.steps:
                if stop.is_set():
                    return
                _run_step(plan, step, progress, stop)
            write_json(plan.out / DONE, {"configuration": plan.configuration, "seed": plan.cell.seed})
    progress.say(f"{plan.cell}: {_numbers(plan.out)}")


def _check_gpu() -> None:
    """fairseq trains on the processor without a word where there is no GPU, and the record would say cuda."""
    import torch

    if not torch.cuda.is_available():
        raise ValueError(f"no device cuda here, which {DEVICE} asks for: torch sees no GPU")


def _run_step(plan: Plan, step: Step, progress: Progress, stop: threading.Event) -> None:
    line = plan.line(step)
    name = hashlib.sha256(line.encode()).hexdigest()[:16]
    finished = read_json(plan.out / STEPS) if (plan.out / STEPS).exists() else {}
    if step.kind in ("prepare", "shared"):
        usage = _make(plan, step, line, progress, stop)
        if usage and name not in finished:
            write_json(plan.out / STEPS, {**finished, name: usage})
        return
    if name in finished:
        return
    if step.kind == "train":
        usage = _train(plan, step, line, plan.out / step.target, progress)
    else:
        if step.kind != "record":
            progress.say(f"{plan.cell}: {' '.join(step.words[:3])} ...")
        usage = _run(plan, line)
    write_json(plan.out / STEPS, {**finished, name: {**usage, "kind": step.kind, "log": step.target}})


def _make(plan: Plan, step: Step, line: str, progress: Progress, stop: threading.Event) -> dict[str, Any]:
    """Make what several cells take, unless it is there; what a training took, which is said of every cell.

    Nothing is made where `stop` is set while another process makes it.
    """
    target = plan.script.root / step.target
    mark, log = target / SHARED, target / "train.log"
    os.makedirs(target.parent, exist_ok=True)
    with locked(target.parent / f".{target.name}.lock", stop=stop) as turn:
        if not turn:
            return {}
        if not (target if step.kind == "prepare" else mark).exists():
            progress.say(f"{plan.cell}: {target.name}")
            if step.words[0] != "fairseq-hydra-train":
                _run(plan, line)
            else:
                try:
                    write_json(target / USAGE, _train(plan, step, line, log, progress))
                except ValueError:
                    mark.unlink(missing_ok=True)
                    raise
    return {**read_json(target / USAGE), "kind": "shared", "log": str(log)} if (target / USAGE).exists() else {}


def _run(plan: Plan, line: str, on_line: Any = None) -> dict[str, float]:
    """Run a line of bash from the root of the repository; what it prints is appended to output.log."""
    path, binaries = os.environ.get("PATH", "").split(os.pathsep), str(Path(sys.executable).parent)
    environment = {
        **plan.environment,
        "PATH": os.pathsep.join(path if binaries in path else [binaries, *path]),
        "PYTHONPATH": os.pathsep.join([str(plan.script.root), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    try:
        usage = run_command(["bash", "-o", "pipefail", "-c", line], plan.out / "output.log", on_line=on_line,
                            environment=environment, folder=plan.script.root)
    except ValueError as error:
        raise ValueError(f"{plan.cell}: {line.partition(' --')[0]}: {error}") from None
    return {"seconds": usage.seconds, "peak_memory": usage.peak_memory}


def _train(plan: Plan, step: Step, line: str, log: Path, progress: Progress) -> dict[str, float]:
    folder = plan.script.root / next(w.split("=", 1)[1] for w in step.words if w.startswith("checkpoint.save_dir="))
    mend_last_checkpoint(folder)
    advance = progress.task(str(plan.cell), _epochs(plan, step))
    shown = ""

    def show(text: str) -> None:
        nonlocal shown
        entry = logs.parse_line(text)
        if entry is None:
            return
        best = next((key.removeprefix("valid_best_") for key in entry.statistics if key.startswith("valid_best_")), "")
        shown = best or shown
        value = entry.statistics.get(f"valid_{shown}") if shown else None
        note = "" if value is None else f"epoch {entry.statistics['epoch']:.0f}, validation {shown} {value:.4f}"
        done = entry.statistics.get("epoch" if note else "update")
        if done is not None:
            advance(done, note)

    usage = _run(plan, line, show)
    last, best = folder / "checkpoint_last.pt", folder / "checkpoint_best.pt"
    if last.exists() and not best.exists():
        raise ValueError(f"{plan.cell}: training ended before it was validated; --max-minutes allows more")
    seconds = logs.seconds(log.read_text(encoding="utf-8").splitlines())
    return {**usage, "seconds": seconds or usage["seconds"]}


def _numbers(out: Path) -> str:
    """The numbers that `seqstruct record` left, in one line."""
    found = read_json(out / "measurements.json", list)
    return ", ".join(f"{m['metric'].replace('_', ' ')} {format_value(m['value'])} {m['unit']}" for m in found)


def _epochs(plan: Plan, step: Step) -> float:
    """How many epochs a training has at most, by its command or configs; infinity where they limit updates alone."""
    said = [word.partition("=")[2] for word in step.words if word.startswith("optimization.max_epoch=")]
    said = said or [said_last(read_config(plan.script.root, step.words), "optimization", "max_epoch")]
    return float(said[-1] or 0) or math.inf


def mend_last_checkpoint(folder: Path) -> None:
    """Replace a checkpoint_last.pt cut short while it was copied by checkpoint_best.pt, or drop it if that is cut too.

    fairseq writes one file whole and copies it to the other names, so at most the copy is damaged.
    """
    last, best = folder / "checkpoint_last.pt", folder / "checkpoint_best.pt"
    if last.exists() and not zipfile.is_zipfile(last):
        last.unlink()
        if best.exists() and zipfile.is_zipfile(best):
            shutil.copyfile(best, folder / "checkpoint_last.pt.copy")
            os.replace(folder / "checkpoint_last.pt.copy", last)
