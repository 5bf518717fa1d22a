"""The tree that a model of inference with `dependency` attention has learned for a test sentence.

    python -m seqstruct.scoring.learned_tree DATA CHECKPOINT --out FILE
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from seqstruct.command import module_parser, run_module
from seqstruct.data.files import atomic_write
from seqstruct.data.nli.folder import read_meta, read_split
from seqstruct.scoring.trained import load_model


def learned_tree(data: Path, checkpoint: str | Path, shortest: int = 6, longest: int = 14) -> str:
    """The most probable tree of the first hypothesis of the test set of such a length, else of the first.

    A line for each word: its number, the word, its head's number and the head.
    """
    import torch

    model, task = load_model(checkpoint, data, pretrained_parser=None)
    pairs = read_split(data, "test", read_meta(data)["labels"], task.vocabulary)
    words = next((p.hypothesis for p in pairs if shortest <= len(p.hypothesis) <= longest), pairs[0].hypothesis)
    heads = model.tree(torch.tensor([[task.vocabulary[word] for word in words]]))[0].tolist()
    named = ("ROOT", *words)
    arcs = enumerate(zip(words, heads, strict=True), 1)
    return "".join(f"{number}\t{word}\t{head}\t{named[head]}\n" for number, (word, head) in arcs)


def _run(args: argparse.Namespace) -> None:
    drawn = learned_tree(args.data, args.checkpoint)
    with atomic_write(args.out) as stream:
        stream.write(drawn)
    print(drawn, end="")


def main(argv: Sequence[str] | None = None) -> int:
    parser = module_parser("seqstruct.scoring.learned_tree", __doc__)
    parser.add_argument("data", metavar="DATA", type=Path, help="made by `seqstruct prepare snli`")
    parser.add_argument("checkpoint", metavar="CHECKPOINT")
    parser.add_argument("--out", required=True, metavar="FILE", type=Path)
    return run_module(parser, argv, _run)


if __name__ == "__main__":
    raise SystemExit(main())
