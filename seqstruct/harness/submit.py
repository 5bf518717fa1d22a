"""Cells as jobs of a cluster, one each, through submitit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seqstruct.command import interrupted_by_sigterm
from seqstruct.harness.cells import run_plans
from seqstruct.harness.script import Plan


def submit(plans: Sequence[Plan], options: Sequence[str], folder: Path, executor: Any = None) -> list[Any]:
    """Submit one job for each cell; their handles come back, and a line for each is printed.

    A job that was interrupted or refused goes on when its cell is submitted again.
    options: parameters of submitit's Slurm executor, each "name=value", whole numbers as such.  folder: for the jobs'
    logs.  executor: another one of submitit's, by default Slurm's.
    Raises ValueError for an option without "=", or if submitit is not installed or knows no such parameter.
    """
    given = dict(_parse(option) for option in options)
    if executor is None:
        try:
            from submitit import SlurmExecutor
        except ImportError:
            raise ValueError("--launcher slurm needs submitit: pip install 'seqstruct[slurm]'") from None
        try:
            executor = SlurmExecutor(folder=folder)
        except RuntimeError as error:
            raise ValueError(f"--launcher slurm: {error}") from None
    try:
        executor.update_parameters(**given)
    except (NotImplementedError, TypeError) as error:
        raise ValueError(f"--launcher-option: {error}") from None
    jobs = []
    with executor.batch():
        for plan in plans:
            jobs.append(executor.submit(run_job, plan))
    for plan, job in zip(plans, jobs, strict=True):
        print(f"{plan.cell}: job {job.job_id}, {folder}")
    return jobs


def run_job(plan: Plan) -> None:
    """One cell, on the machine where the job runs."""
    with interrupted_by_sigterm():
        run_plans([plan])


def _parse(option: str) -> tuple[str, Any]:
    name, equals, value = option.partition("=")
    if not name or not equals:
        raise ValueError(f"launcher option {option!r}: expected NAME=VALUE")
    return name, int(value) if value.isdecimal() else value
