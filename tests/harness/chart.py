"""Made records of the chart of abilities: one row not run, one run in part, one that broke on a task."""

from __future__ import annotations

from seqstruct.harness.abilities import TASKS
from seqstruct.harness.records import Record

RULE = dict.fromkeys(TASKS, 20.0)


def record(row, metrics):
    return Record(
        paper="abilities", table="abilities", row=row, metrics=metrics, seed=1, scale="small", dataset="none",
        configuration_hash=row, data_checksums={}, parameters=1, seconds=1.0, peak_memory=0, versions={},
        command="none",
    )


def of_seeds(*values):
    points = [[seed, value] for seed, value in enumerate(values)]
    return {"value": sum(values) / len(values), "unit": "%", "axis": "seed", "points": points}


def run(row, tasks=TASKS, trained=(60.0, 60.0), beyond=(20.0,), **more):
    metrics = {task + end: of_seeds(*values) for task in tasks for end, values in (("", trained), ("_long", beyond))}
    return record(row, {**metrics, **more})


def made():
    rule = {task + end: {"value": RULE[task], "unit": "%"} for task in TASKS for end in ("", "_long")}
    broken = {"recall_broken": {"value": 3, "unit": "gradients are Nan"}}
    return [
        record("simple rule", rule), run("softmax", beyond=(100.0, 90.0, 95.0)),
        run("LSTM", trained=(99.0, 100.0, 98.0)),
        run("delta", trained=(80.0,)), run("linear", TASKS[:3]), run("sigmoid", TASKS[1:], **broken),
        run("nondeterministic_stack", trained=(100.0,)),
    ]
