"""`seqstruct search`: try settings on the validation set, and keep the best one's overrides for fairseq-hydra-train.

    seqstruct search --config-dir configs/peng_thesis/text_classification --config-name train row=lstm scale=small \\
        task.data=data-bin/sst --settings configs/peng_thesis/text_classification/search.yaml --out search/sst-lstm
    fairseq-hydra-train ... $(cat search/sst-lstm/chosen)

FILE says the metric, its direction, epochs, and a grid or draws; see seqstruct/search/settings.py.  DIR has
settings.json, all that was tried with what it reached, measurements.json for `seqstruct record`, and chosen.  A search
that was interrupted goes on with the next setting; what was told otherwise needs another DIR.
"""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("overrides", nargs="*", metavar="GROUP=NAME", help="as of fairseq-hydra-train")
    parser.add_argument("--config-dir", required=True, metavar="DIR", help="as of fairseq-hydra-train")
    parser.add_argument("--config-name", required=True, metavar="NAME", help="as of fairseq-hydra-train")
    parser.add_argument("--settings", required=True, metavar="FILE", help="what is tried, in YAML")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the draws (default: 1)")
    parser.add_argument("--labels", metavar="DATA", help="a prepared folder with classes: a setting has to be better "
                        "on validation than always giving the most frequent one, by three standard errors")
    parser.add_argument("--max-minutes", type=float, metavar="M", help="wall-clock limit of each training")
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder to make, or to go on with")


def run(args: argparse.Namespace) -> None:
    from pathlib import Path

    from seqstruct.search.settings import chance, read_settings
    from seqstruct.search.trials import hydra_training, search

    settings = read_settings(Path(args.settings), args.overrides)
    least = None
    if args.labels:
        from seqstruct.scoring.named_baselines import read_labels

        least = chance([label for _, label in read_labels(Path(args.labels))("valid")])
    limit = []
    if args.max_minutes is not None:
        if not 0 < args.max_minutes < float("inf"):
            raise ValueError(f"--max-minutes: expected minutes above 0, got {args.max_minutes:g}")
        limit = [f"optimization.stop_time_hours={args.max_minutes / 60}"]
    train = hydra_training(args.config_dir, args.config_name, [*args.overrides, *limit], args.out)
    search(settings, Path(args.out), args.seed, least, train, [args.config_name, *args.overrides, *limit])
