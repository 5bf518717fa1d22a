"""`seqstruct convert MODEL --plan PLAN --out DIR`: another attention in a GPT-2, Llama or BERT of transformers.

Queries, keys, values and outputs are taken over, rotary positions and grouped heads honoured.  With a text each
exchanged layer is fitted to the softmax that it replaces (--transfer), then all of the model is tuned (--tune).
DIR loads by the auto classes after `import seqstruct.hf.exchanged`.  Needs the extra hf.
"""

from __future__ import annotations

import argparse

from seqstruct.data.arguments import SEED, add_numbers


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a folder of save_pretrained, or a name on the hub")
    parser.add_argument("--plan", required=True, help='of all layers, such as "softmax*2 + t2r*4"')
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder to make")
    parser.add_argument("--text", metavar="FILE", help="what to fit and to tune on, a line after the other")
    parser.add_argument("--valid", metavar="FILE", help="a text for perplexities before, between and after")
    add_numbers(parser, {
        "--transfer": (0, "updates of attention transfer"), "--tune": (0, "updates of all parameters"),
        "--length": (256, "tokens of a block of text"), "--batch-size": (8, "blocks of an update"),
        "--decode": (0, "time a step of decoding after so many tokens, 0 for none"),
        "--texts": (16, "texts that are decoded at once then"),
    })
    parser.add_argument("--seed", type=SEED, default=1, metavar="N", help="of all that is drawn (default: 1)")
    for name, rate, what in (("transfer-rate", 1e-3, "of attention transfer"), ("rate", 5e-4, "of tuning")):
        parser.add_argument(f"--{name}", type=float, default=rate, metavar="R",
                            help=f"learning rate {what}, which falls to zero (default: {rate})")
    parser.add_argument("--record", metavar="FILE", help="what was measured, as JSON, for `seqstruct record`")


def run(args: argparse.Namespace) -> None:
    from seqstruct.exchange.convert import Fitting, convert
    from seqstruct.scoring.measurement import write

    fitting = Fitting(args.text, args.valid, args.transfer, args.tune, args.length, args.batch_size,
                      args.transfer_rate, args.rate)
    lost, measured = convert(
        args.model, args.plan, args.out, fitting, seed=args.seed, decode=args.decode, texts=args.texts
    )
    for sentence in lost:
        print(sentence)
    for each in measured:
        print(f"{each.metric}: {each.value:.4g} {each.unit}")
    if args.record:
        write(args.record, measured)
    print(f"{args.out}: {args.plan}; it loads after `import seqstruct.hf.exchanged`")
