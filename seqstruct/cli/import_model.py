"""`seqstruct import DIR --data DATA --out FILE`: a checkpoint of a model of transformers."""

from __future__ import annotations

import argparse


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "import",
        help="write a checkpoint of a model that `seqstruct export` made and transformers may have trained on",
        description="Write a checkpoint for fairseq-generate, fairseq-train --finetune-from-model and seqstruct.load "
        "of a folder of `seqstruct export`, or of the same model as save_pretrained wrote it. Needs the extra hf.",
    )
    parser.add_argument("folder", metavar="DIR", help="with config.json, model.safetensors and the tokenizer's files")
    parser.add_argument("--data", required=True, metavar="DATA", help="the prepared folder of the model's text")
    parser.add_argument("--out", required=True, metavar="FILE", help="the checkpoint to write")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Import, and say what it is."""
    from seqstruct.exchange.restore import restore

    print(f"{args.out}: {restore(args.folder, args.data, args.out).arch}, over {args.data}")
