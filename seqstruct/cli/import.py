"""`seqstruct import DIR --data DATA --out FILE`: write a checkpoint of a model that `seqstruct export` made.

transformers may have trained on it and saved it since.  The checkpoint is for fairseq-generate, fairseq-train
--finetune-from-model and seqstruct.load.  Needs the extra hf.
"""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="with config.json, model.safetensors and the tokenizer's files")
    parser.add_argument("--data", required=True, metavar="DATA", help="the prepared folder of the model's text")
    parser.add_argument("--out", required=True, metavar="FILE", help="the checkpoint to write")


def run(args: argparse.Namespace) -> None:
    from transformers.utils.logging import disable_progress_bar

    from seqstruct.exchange.restore import restore

    disable_progress_bar()
    print(f"{args.out}: {restore(args.folder, args.data, args.out).arch}, over {args.data}")
