"""One model on several small tasks with several learning rates and seeds, in one process: fairseq starts once.

    python -m seqstruct.search.seeds --config-dir configs/abilities --config-name train DATA row=attention \
        --rates 0.001 0.003 0.01 --seeds 1 2 3 --out DIR

DATA is a folder of `seqstruct prepare abilities`, or has such folders, as that of `seqstruct prepare abilities-chart`.
For each task the rates are tried with the first seed; the one with the best accuracy on validation at the end of
training, of equal ones that of the least loss, is taken for the others.  What test and test_long give is read for the
chosen rate alone.  DIR has TASK.json, all that was trained and reached, train.log, and result.json for `seqstruct
record`.  A call that was interrupted goes on with the next training, on another machine too: those of other processors
or GPUs are then counted.
"""

from __future__ import annotations

import argparse
import logging
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from seqstruct.bridge.quiet import quiet
from seqstruct.command import module_parser, run_module
from seqstruct.data.abilities.folder import CALLED, LEVELS, WHOLE, read_meta, tasks_of
from seqstruct.data.checked import META
from seqstruct.data.files import read_json, sha256, write_json
from seqstruct.harness.provenance import processor
from seqstruct.scoring.measurement import Measurement, write
from seqstruct.search.trials import Train, check_same, hydra_training

Trained = Mapping[str, Any]  # rate, seed, and either the statistics by subset or what broke


def train_all(
    train: Train, rates: Sequence[float], seeds: Sequence[int], path: Path, where: str = "", words: Sequence[str] = (),
    data: str = "",
) -> list[Trained]:
    """The trainings on a task with these rates and seeds, and the file with them; those that it has already, perhaps
    beside others, are not trained again.

    where: what trains here, noted with each.  words: what all are told, and data: the checksum of what they learn,
    likewise.  Raises ValueError if the file has trainings that were told something else, or learned it.

    A training that breaks (a loss that is not finite, a model that refuses) has the reason in place of numbers.  Where
    every rate breaks, there are no other seeds.
    """
    found: list[dict[str, Any]] = read_json(path, list) if path.exists() else []
    for one in found:
        check_same(path, one.get("words", list(words)), list(words))
        check_same(path, {"data": one.get("data", data)}, {"data": data})

    def attempt(rate: float, seed: int) -> None:
        if any((one["rate"], one["seed"]) == (rate, seed) for one in found):
            return
        more = [f"optimization.lr=[{rate}]", f"common.seed={seed}", f'dataset.valid_subset="{",".join(CALLED)}"']
        one: dict[str, Any] = {"rate": rate, "seed": seed, "on": where, "words": list(words), "data": data}
        try:
            said = {entry.tag: entry.statistics for entry in train(more)}
            one |= {subset: {name.removeprefix(f"{subset}_"): value for name, value in said[subset].items()}
                    for subset in CALLED}
        except (FloatingPointError, ValueError) as error:
            one["broke"] = str(error).partition("\n")[0] or type(error).__name__
        found.append(one)
        write_json(path, found)
        print(f"{path.stem}: rate {rate:g}, seed {seed}: {one.get('broke') or one['valid']['accuracy']}", flush=True)

    for rate in rates:
        attempt(rate, seeds[0])
    best = chosen([one for one in found if one["rate"] in rates], seeds[0])
    for seed in seeds[1:] if best is not None else ():
        attempt(best, seed)
    return [one for one in found if one["rate"] in rates and one["seed"] in seeds]


def chosen(trained: Sequence[Trained], seed: int) -> float | None:
    """The rate that validation chooses among the trainings of a seed; None where all broke."""
    found = [(one["valid"], one["rate"]) for one in trained if one["seed"] == seed and "valid" in one]
    # NaN is the worst loss, not equal to all
    tried = [(-valid["accuracy"], math.inf if math.isnan(valid["loss"]) else valid["loss"], rate)
             for valid, rate in found]
    return min(tried)[2] if tried else None


def measurements(task: str, axis: str, trained: Sequence[Trained], seed: int, where: str = "") -> list[Measurement]:
    """What is recorded: accuracies by seed, those of whole sequences and of levels in tables of their own, the search.

    seed: of the search.  Where every training broke, `TASK_broken` says how many did, its unit the reason.  Where some
    were not made by what trains here, `where`, `TASK_elsewhere` says how many, its unit by what.
    """
    best = chosen(trained, seed)
    broken = [one["broke"] for one in trained if "broke" in one]
    remarks = [Measurement(f"{task}_broken", len(broken), broken[0])] if broken else []
    if others := [one["on"] for one in trained if one.get("on", where) != where]:
        remarks.append(Measurement(f"{task}_elsewhere", len(others), " and ".join(sorted(set(others)))))
    of_best = [one for one in trained if one["rate"] == best and "valid" in one]
    if best is None:
        return remarks
    searched = [(one["rate"], one["valid"]["accuracy"]) for one in trained if one["seed"] == seed and "valid" in one]
    reached = max(accuracy for _, accuracy in searched)
    found = [Measurement(f"chosen_{task}_rate", best, "learning rate"),
             Measurement(f"search_{task}", reached, "%", "learning rate", searched), *remarks]
    for subset, name in CALLED.items():
        for statistic, table in (("accuracy", ""), ("sequence_accuracy", WHOLE)):
            points = [(one["seed"], one[subset][statistic]) for one in of_best]
            found.append(Measurement(name.format(task), fmean(v for _, v in points), "%", "seed", points, table))
        if subset != "valid":
            points = _by_level([one[subset] for one in of_best])
            of_all = fmean(one[subset]["accuracy"] for one in of_best)
            found.append(Measurement(name.format(task), of_all, "%", axis, points, LEVELS))
    return found


def _by_level(statistics: Sequence[Mapping[str, float]]) -> list[tuple[float, float]]:
    """Level and the mean accuracy of the seeds."""
    levels = sorted(int(match[1]) for name in statistics[0] if (match := re.fullmatch(r"accuracy_(\d+)", name)))
    return [(level, fmean(one[f"accuracy_{level}"] for one in statistics)) for level in levels]


def main(argv: Sequence[str] | None = None) -> int:
    parser = module_parser("seqstruct.search.seeds", __doc__)
    parser.add_argument("data", metavar="DATA", type=Path, help="a prepared folder, or a folder of such")
    parser.add_argument("overrides", nargs="*", metavar="GROUP=NAME", help="as of fairseq-hydra-train")
    parser.add_argument("--config-dir", required=True, metavar="DIR", help="as of fairseq-hydra-train")
    parser.add_argument("--config-name", required=True, metavar="NAME", help="as of fairseq-hydra-train")
    parser.add_argument("--tasks", nargs="+", metavar="TASK", help="those of the folder alone (default: all)")
    parser.add_argument("--rates", nargs="+", type=float, required=True, metavar="RATE", help="learning rates to try")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3], metavar="N", help="default: 1 2 3")
    parser.add_argument("--device", choices=("cpu", "cuda"), default=os.environ.get("SEQSTRUCT_DEVICE") or "cpu",
                        help="where it trains (default: what SEQSTRUCT_DEVICE says, else cpu)")
    parser.add_argument("--out", required=True, metavar="DIR", type=Path, help="the folder to make, or to go on with")
    return run_module(parser, argv, _run)


def _run(args: argparse.Namespace) -> None:
    folders = tasks_of(args.data, args.tasks)
    args.out.mkdir(parents=True, exist_ok=True)
    device = [f"common.cpu={str(args.device == 'cpu').lower()}", "distributed_training.distributed_world_size=1"]
    where = torch.cuda.get_device_name() if args.device == "cuda" else processor()  # what trains
    handler = logging.FileHandler(args.out / "train.log", encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s | %(levelname)s | %(name)s | %(message)s"))
    found = []
    with quiet():
        logging.getLogger().addHandler(handler)
        try:
            for task, folder in folders.items():
                words = [*args.overrides, *device, f"task.data={folder}"]
                train = hydra_training(args.config_dir, args.config_name, words, str(args.out))
                told = [args.config_name, *args.overrides]
                of = (where, told, sha256(folder / META))
                trained = train_all(train, args.rates, args.seeds, args.out / f"{task}.json", *of)
                found += measurements(task, read_meta(folder)["axis"], trained, args.seeds[0], where)
        finally:
            logging.getLogger().removeHandler(handler)
            handler.close()
    write(args.out / "result.json", found)


if __name__ == "__main__":
    raise SystemExit(main())
