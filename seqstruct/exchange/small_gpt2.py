"""A small GPT-2 of transformers, trained on a prepared text: what attention is exchanged in where no other model is.

`python -m seqstruct.exchange.small_gpt2 DATA --out DIR`: DATA is a folder of `seqstruct prepare`, whose text/train.txt
is cut into tokens already; DIR is new, and has the model and its tokenizer for such text.  The rate of learning rises
for a hundred updates and falls to zero in a straight line.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch

from seqstruct.command import module_parser, run_module
from seqstruct.data.arguments import SEED, add_numbers, at_least
from seqstruct.data.files import new_folder
from seqstruct.data.text.aligned import read_lines
from seqstruct.data.text.binarise import RESERVED
from seqstruct.exchange.text_blocks import batches, blocks
from seqstruct.hf import SeqstructTokenizer
from seqstruct.hf.exchanged import falling, tune

WARMUP = 100  # updates


def train(args: argparse.Namespace) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    at_least(args, command=True, layers=1, embed_dim=1, heads=1, length=2, batch_size=1, updates=1)
    if args.length > args.positions:
        raise ValueError(f"positions are at least the length of a block, {args.length}, not {args.positions}")
    data = Path(args.data)
    words = [line.rpartition(" ")[0] for line in read_lines(data / "bin" / "dict.txt")]
    with new_folder(args.out) as folder, torch.random.fork_rng():
        vocabulary = folder / "vocab.source.txt"
        vocabulary.write_text("".join(f"{word}\n" for word in (*RESERVED, *words)), encoding="utf-8")
        tokenizer = SeqstructTokenizer(str(vocabulary))
        text = blocks(tokenizer, data / "text" / "train.txt", args.length)
        torch.manual_seed(args.seed)
        config = GPT2Config(
            vocab_size=len(RESERVED) + len(words), n_positions=args.positions, n_embd=args.embed_dim,
            n_layer=args.layers, n_head=args.heads, bos_token_id=2, eos_token_id=2, pad_token_id=1,
            resid_pdrop=args.dropout, embd_pdrop=args.dropout, attn_pdrop=0.0,
        )
        model = GPT2LMHeadModel(config)
        drawn = batches(text, args.batch_size, args.updates, args.seed, "training")
        losses = tune(model, drawn, args.rate, falling(args.updates, WARMUP))
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    print(f"{args.out}: trained on {text.numel()} tokens, {args.updates} updates, last loss {float(losses[-1]):.3f}")


def main(argv: Sequence[str] | None = None) -> int:
    parser = module_parser("seqstruct.exchange.small_gpt2", __doc__)
    parser.add_argument("data", metavar="DATA", help="the prepared folder")
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder to make")
    add_numbers(parser, {
        "--layers": (4, "layers"), "--embed-dim": (128, "size of the model"), "--heads": (4, "heads"),
        "--positions": (2304, "the longest text"), "--length": (256, "tokens of a block"),
        "--batch-size": (8, "blocks of an update"), "--updates": (800, "updates"),
    })
    parser.add_argument("--seed", type=SEED, default=1, metavar="N", help="of all that is drawn (default: 1)")
    parser.add_argument("--rate", type=float, default=4e-3, metavar="R", help="of learning (default: 0.004)")
    parser.add_argument("--dropout", type=float, default=0.1, metavar="P", help="of what layers add (default: 0.1)")
    return run_module(parser, argv, train)


if __name__ == "__main__":
    raise SystemExit(main())
