"""`seqstruct automaton`: the automaton behind a rational recurrence, drawn with its best path on a text."""

from __future__ import annotations

import argparse

from seqstruct.command import add_data


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="of a recurrent_lm or rnn_classifier")
    parser.add_argument("text", metavar="TEXT", help="words separated by spaces, as in the training data")
    parser.add_argument("--feature", type=int, default=0, metavar="N", help="of the first layer, from 0 (default: 0)")
    add_data(parser)
    parser.add_argument("--out", required=True, metavar="FILE", help="a name that ends in .png, .pdf or .svg")


def run(args: argparse.Namespace) -> None:
    from seqstruct.plots.automaton import checkpoint_figure
    from seqstruct.plots.figures import save

    save(checkpoint_figure(args.checkpoint, args.text, args.feature, args.data), args.out)
