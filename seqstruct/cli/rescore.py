"""`seqstruct rescore`: another system's n-best list in the order of a translation model's scores, or an ensemble's.

The new score of a hypothesis is the weighted mean of its system's score and the model's log-probability in nats.
"""

from __future__ import annotations

import argparse
import os
from contextlib import ExitStack

from seqstruct.command import add_data


def add_arguments(parser: argparse.ArgumentParser) -> None:
    system = parser.add_mutually_exclusive_group(required=True)
    system.add_argument("--nbest", metavar="FILE",
                        help="Moses: id ||| hypothesis ||| features ||| score; needs --source")
    system.add_argument("--from-generate", metavar="FILE", help="output of fairseq-generate --nbest N")
    parser.add_argument("--source", metavar="FILE", help="source sentences, one a line, that of id 0 first")
    parser.add_argument("--checkpoint", metavar="PT", nargs="+", required=True,
                        help="a translation model of fairseq-train; several are an ensemble")
    parser.add_argument("--out", metavar="FILE", help="the best hypotheses, one a line, in the order of the ids")
    parser.add_argument("--out-nbest", metavar="FILE", help="the rescored list, of the form of Moses")
    parser.add_argument("--weight", type=float, default=0.5, metavar="W",
                        help="of the log-probability, 0 to 1; the system's score has 1 - W (default %(default)s)")
    parser.add_argument("--feature", default="Neural0", metavar="NAME",
                        help="the log-probability's name in the list (default %(default)s)")
    add_data(parser)
    parser.add_argument("--subword-model", metavar="FILE",
                        help="codes of subword-nmt or a SentencePiece model that cut both sides first")
    parser.add_argument("--cpu", action="store_true", help="leave a GPU alone")


def run(args: argparse.Namespace) -> None:
    from seqstruct.data.files import atomic_write
    from seqstruct.data.text.aligned import read_lines
    from seqstruct.scoring.forced import load_scorer
    from seqstruct.scoring.nbest import read_generate, read_moses, rescore, write

    if args.out is None and args.out_nbest is None:
        raise ValueError("expected --out, --out-nbest or both")
    if args.out and args.out_nbest and os.path.realpath(args.out) == os.path.realpath(args.out_nbest):
        raise ValueError(f"expected two files, got {args.out} as --out and {args.out_nbest} as --out-nbest")
    if args.nbest is not None and args.source is None:
        raise ValueError("--nbest: expected --source with it")
    name = args.nbest or args.from_generate
    sources = None if args.source is None else dict(enumerate(read_lines(args.source)))
    read = read_moses if args.nbest else read_generate
    scorer = load_scorer(args.checkpoint, args.data, args.subword_model, args.cpu)
    sentences = rescore(read(read_lines(name), name), scorer, name, sources, args.weight, args.feature)
    with ExitStack() as stack:
        new = stack.enter_context(atomic_write(args.out_nbest)) if args.out_nbest else None
        best = write(sentences, new.write if new else None, None if sources is None else len(sources), name)
        if args.out:
            stack.enter_context(atomic_write(args.out)).writelines(line + "\n" for line in best)
    print(f"{len(best)} sentences rescored")
