"""What a translation model looks at in a sentence that it knows: `python -m seqstruct.harness.plot_example --help`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from seqstruct.bridge.quiet import quiet
from seqstruct.command import module_parser, run_module
from seqstruct.data.text.aligned import read_lines


def first_known(data: Path, languages: tuple[str, str], split: str, most: int) -> tuple[str, str] | None:
    """The first pair of at most `most` source tokens, all of whose tokens are in the dictionaries; None if none is.

    data: a folder of data-prep/ with text/ and bin/.  Raises OSError if a file is missing.
    """
    known = [
        {line.rsplit(" ", 1)[0] for line in read_lines(data / "bin" / f"dict.{language}.txt")}
        for language in languages
    ]
    texts = [read_lines(data / "text" / f"{split}.{language}") for language in languages]
    for source, target in zip(*texts, strict=True):
        sides = source.split(), target.split()
        if len(sides[0]) <= most and all(set(side) <= words for side, words in zip(sides, known, strict=True)):
            return source, target
    return None


def main(argv: Sequence[str] | None = None) -> int:
    """Draw the weights over the source, given the reference; the exit status comes back."""
    parser = module_parser("seqstruct.harness.plot_example", main.__doc__)
    parser.add_argument("checkpoint", metavar="CHECKPOINT")
    parser.add_argument("--data", required=True, type=Path, metavar="DIR", help="folder of data-prep/")
    parser.add_argument("--languages", required=True, nargs=2, metavar=("SOURCE", "TARGET"))
    parser.add_argument("--split", default="test", help="whose first sentence of known tokens is shown (default: test)")
    parser.add_argument("--most", type=int, default=60, metavar="N", help="source tokens at most (default: 60)")
    parser.add_argument("--out", required=True, metavar="FILE", help="a name that ends in .png, .pdf or .svg")
    return run_module(parser, argv, _run)


def _run(args: argparse.Namespace) -> None:
    from seqstruct.plots.attention import attention
    from seqstruct.plots.figures import save
    from seqstruct.plots.views import layer_views

    pair = first_known(args.data, tuple(args.languages), args.split, args.most)
    if pair is None:
        print(f"{args.data}: no sentence of {args.split} has known tokens alone and at most {args.most}")
        return
    with quiet():
        views = layer_views(args.checkpoint, pair[0], target=pair[1], data=args.data / "bin")
        save(attention(views), args.out)


if __name__ == "__main__":
    raise SystemExit(main())
