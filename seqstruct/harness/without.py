"""A checkpoint without some parameters, which a model that is fine-tuned from it then has at their initial values.

`python -m seqstruct.harness.without CHECKPOINT PART --out FILE`: those whose names have PART in them, as `.self_attn.`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import torch

from seqstruct.bridge.checkpoints import load_checkpoint
from seqstruct.data.files import atomic_write


def main(argv: Sequence[str] | None = None) -> int:
    """Write the checkpoint; 1, and one sentence, if none of its names has the part."""
    parser = argparse.ArgumentParser(prog="python -m seqstruct.harness.without", description=__doc__.split("\n")[0])
    parser.add_argument("checkpoint", metavar="CHECKPOINT")
    parser.add_argument("part", metavar="PART", help="of the names that are left out")
    parser.add_argument("--out", required=True, metavar="FILE")
    args = parser.parse_args(argv)
    try:
        state = load_checkpoint(args.checkpoint)
        kept = {name: value for name, value in state["model"].items() if args.part not in name}
        if len(kept) == len(state["model"]):
            raise ValueError(f"{args.checkpoint}: no parameter's name has {args.part!r} in it")
        with atomic_write(args.out, "wb") as stream:
            torch.save({**state, "model": kept}, stream)
    except (ValueError, OSError) as error:
        print(f"seqstruct.harness.without: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
