"""A search, run: short trainings one after another in one process, which pays fairseq's start once."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import seqstruct
from seqstruct.bridge.logs import LogEntry, parse_line
from seqstruct.data.files import atomic_write, read_json, undamaged, write_json
from seqstruct.scoring.measurement import write
from seqstruct.search.settings import Point, choose, measurements, order, outcome, override, points

DECISIVE = ("metric", "direction", "at", "tie", "overrides")  # of what a setting reaches
SEED = 1  # of all trainings of a search, whatever the run's is
Train = Callable[[Sequence[str]], list[LogEntry]]


def search(
    settings: dict[str, Any], out: Path, seed: int, least: float | None, train: Train, words: Sequence[str] = ()
) -> None:
    """Try what the settings say and leave settings.json (all tried), measurements.json and chosen (overrides) in out.

    least: the value of chance, or None, of an accuracy.  train: what a training with some overrides logs.  words: what
    it was told beside them.  What settings.json has already is not trained again, so an interrupted search goes on; a
    folder in which nothing was reached is not left.
    Raises ValueError if settings.json is damaged or of another search, chance is asked of what is to be least, a
    setting has no result or there is no best one; `chosen` is then not written.
    """
    if least is not None and settings["direction"] != "max":
        raise ValueError(f"chance is of an accuracy: expected the direction max, got {settings['direction']} of "
                         f"{settings['metric']}")
    out.mkdir(parents=True, exist_ok=True)
    try:
        _search(settings, out, seed, least, train, words)
    finally:
        if not any(out.iterdir()):
            out.rmdir()


def _search(
    settings: dict[str, Any], out: Path, seed: int, least: float | None, train: Train, words: Sequence[str]
) -> None:
    path = out / "settings.json"
    of = {key: settings.get(key) for key in DECISIVE} | {"words": list(words)}
    with undamaged(path, KeyError):
        kept = read_json(path) if path.exists() else {"tried": []}
        known = kept["tried"]
    check_same(path, kept.get("of", of), of)

    def attempt(point: Point, epochs: int) -> dict[str, Any]:
        found = next((one for one in known if one["setting"] == point and one["epochs"] == epochs), None)
        if found is None:
            words = [override(key, value) for key, value in point.items()]
            try:
                entries = train([*settings.get("overrides", ()), *words, f"optimization.max_epoch={epochs}"])
                found = {"setting": point, "epochs": epochs, **outcome(entries, settings)}
            except (FloatingPointError, ValueError) as error:
                raise ValueError(f"{' '.join(words)}: {error}") from None
            known.append(found)
            write_json(path, {"of": of, "chance": least, "tried": known})
        print(f"{point}, {epochs} epochs: validation {settings['metric']} {found['value']:g}", flush=True)
        return found

    tried = _attempt_all(settings, seed, least, attempt)
    write_json(path, {"of": of, "chance": least, "tried": known})
    best = choose(settings, tried, least)
    write(out / "measurements.json", measurements(settings, tried, best))
    chosen = [override(key, value) for key, value in best["setting"].items()]
    if best["epochs"] > settings["epochs"]:  # it took so many to leave chance
        chosen.append(f"++optimization.max_epoch={best['epochs']}")
    with atomic_write(out / "chosen") as stream:
        stream.write(" ".join(chosen) + "\n")


def check_same(path: Path, found: Any, wanted: Any) -> None:
    """Raise ValueError if a file of results to go on with is of trainings that were told something else."""
    if found != wanted:
        raise ValueError(f"{path} is of other trainings, of {json.dumps(found)}: expected {json.dumps(wanted)}, or "
                         "another folder for these")


def _attempt_all(
    settings: dict[str, Any], seed: int, least: float | None, attempt: Callable[[Point, int], dict[str, Any]]
) -> list[dict[str, Any]]:
    epochs = settings["epochs"]
    tried = [attempt(point, epochs) for point in points(settings, seed)]
    if least is not None:
        while epochs < settings.get("up_to", 0) and any(one["value"] <= least for one in tried):
            epochs = min(2 * epochs, settings["up_to"])
            tried = [attempt(one["setting"], epochs) if one["value"] <= least else one for one in tried]
    best = min(tried, key=order(settings))
    if least is None or best["value"] > least:
        for key, values in settings.get("then", {}).items():
            tried += [attempt({**best["setting"], key: value}, best["epochs"]) for value in values]
    return tried


def hydra_training(folder: str, name: str, words: Sequence[str], save_dir: str) -> Train:
    """Trainings of a config as fairseq-hydra-train composes it, that save nothing and, unless told, see no test set.

    save_dir: a folder without checkpoints, which fairseq wants to exist.
    """
    from seqstruct.harness.configs import composer

    composed = composer(folder, name)
    from fairseq_cli import hydra_train, train

    def training(more: Sequence[str]) -> list[LogEntry]:
        # fairseq keeps the best score, and how often there was no better one, in attributes of these functions
        for function in (train.checkpoint_utils.save_checkpoint, train.should_stop_early):
            for attribute in ("best", "num_runs"):
                function.__dict__.pop(attribute, None)
        alone = ["checkpoint.no_save=true", f"checkpoint.save_dir={save_dir}", f"common.seed={SEED}",
                 "common.log_format=json", "common.log_interval=1000", "common.reset_logging=false",
                 "dataset.valid_subset=valid", "dataset.num_workers=0",
                 # the thread that fills a buffer would wait for ever, with the data, if training ends within an epoch
                 "dataset.data_buffer_size=0"]
        config = composed([*words, *alone, *more])  # of two words for a key the later one counts
        if config.common.user_dir == seqstruct.__name__:  # which is a folder of the checkout alone
            config.common.user_dir = os.path.dirname(seqstruct.__file__)
        listener = _Listener()
        for quiet in ("", "fairseq"):  # `seqstruct` keeps them quiet
            logging.getLogger(quiet).setLevel(logging.INFO)
        logging.getLogger().addHandler(listener)
        try:
            hydra_train._hydra_main(config)
        finally:
            logging.getLogger().removeHandler(listener)
        return listener.entries

    return training


class _Listener(logging.Handler):
    """Keeps the statistics that fairseq logs as JSON."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.entries: list[LogEntry] = []

    def emit(self, record: logging.LogRecord) -> None:
        entry = parse_line(f"| INFO | {record.name} | {record.getMessage()}")
        if entry is not None:
            self.entries.append(entry)
