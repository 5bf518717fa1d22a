"""`seqstruct export CHECKPOINT --out DIR`: write a folder that transformers loads: model, tokenizer, card and code.

The model becomes one of transformers with its configuration, safetensors, the run's own tokenizer, generation as
fairseq-generate does it, a card written from the run, and the code that it needs: the folder loads with
trust_remote_code=True where seqstruct is not installed, and after `import seqstruct.hf` without.  Needs the extra hf.
"""

from __future__ import annotations

import argparse

from seqstruct.command import add_data


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="a .pt file of fairseq-train")
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder to make")
    add_data(parser)
    parser.add_argument("--tokenized", action="store_true",
                        help="text is tokens already, separated by spaces: nothing but the dictionaries is needed")
    parser.add_argument("--scores", action="append", default=[], metavar="FILE",
                        help="what `seqstruct score` or another command wrote, for the card; may be repeated")
    parser.add_argument("--licence", default="", help="of the data, for the card, if the prepared folder has none")


def run(args: argparse.Namespace) -> None:
    from transformers.utils.logging import disable_progress_bar

    from seqstruct.exchange.export import export

    disable_progress_bar()
    made = export(args.checkpoint, args.out, args.data, tokenized=args.tokenized, scores=args.scores,
                  licence=args.licence)
    how = "with trust_remote_code=True or " * made.shipped + "after `import seqstruct.hf`"
    kind = made.config.architectures[0]
    print(f"{args.out}: {kind}, logits within {made.difference:.1e} of fairseq's; it loads {how}")
