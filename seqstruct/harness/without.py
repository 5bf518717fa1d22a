"""A checkpoint without some parameters, which a model that is fine-tuned from it then has at their initial values.

`python -m seqstruct.harness.without CHECKPOINT GLOB --out FILE`: those whose names match, as `*.self_attn.*`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from fnmatch import fnmatchcase

import torch

from seqstruct.bridge.checkpoints import load_checkpoint
from seqstruct.command import module_parser, run_module
from seqstruct.data.files import atomic_write


def main(argv: Sequence[str] | None = None) -> int:
    parser = module_parser("seqstruct.harness.without", __doc__)
    parser.add_argument("checkpoint", metavar="CHECKPOINT")
    parser.add_argument("names", metavar="GLOB", help="of the names that are left out, as in a shell (* and ?)")
    parser.add_argument("--out", required=True, metavar="FILE")
    return run_module(parser, argv, _run)


def _run(args: argparse.Namespace) -> None:
    state = load_checkpoint(args.checkpoint)
    kept = {name: value for name, value in state["model"].items() if not fnmatchcase(name, args.names)}
    if len(kept) == len(state["model"]):
        raise ValueError(f"{args.checkpoint}: no parameter's name matches {args.names!r}")
    with atomic_write(args.out, "wb") as stream:
        torch.save({**state, "model": kept}, stream)


if __name__ == "__main__":
    raise SystemExit(main())
