"""`seqstruct bench NAME`: timings of our operators beside what they are held against, measured here and now."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import NamedTuple


class Benchmark(NamedTuple):
    """What is timed, the default lengths (None where it has sizes of its own), and further options that it takes."""

    text: str
    lengths: list[int] | None
    options: tuple[str, ...] = ()


BENCHMARKS = {
    "attention": Benchmark("causal attention in training, beside fused softmax", [512, 2048], ("plot", "device")),
    "decode": Benchmark("decoding step by step, beside softmax and beside no attention",
                        [32, 64, 128, 256, 512, 1024, 2048], ("sections", "plot", "device")),
    "encode": Benchmark("an encoder's layer with bounded memory, beside softmax", [512], ("device",)),
    "inference": Benchmark("marginals of chains and dependency trees, beside torch-struct and supar, and by length",
                           None, ("sections",)),
    "parsing": Benchmark("training steps of parsers, beside supar's", [25]),
    "rational": Benchmark("layers of rational recurrences, beside torch.nn.LSTM", [35, 4096]),
    "stack": Benchmark("stack attention, in units of a plain Transformer's training step", None,
                       ("sections", "device", "dtype")),
    "translation": Benchmark("training and decoding of recurrent translation models, beside fairseq's lstm", [14, 30]),
}


def add_parser(commands: argparse._SubParsersAction) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("bench", help="time operators beside their rivals", description=__doc__)
    parser.add_argument("name", choices=sorted(BENCHMARKS), metavar="NAME",
                        help="; ".join(f"{name}: {benchmark.text}" for name, benchmark in BENCHMARKS.items()))
    parser.add_argument("--threads", type=int, default=None, metavar="N", help="threads of torch (default: as found)")
    parser.add_argument("--repeats", type=int, default=7, metavar="N", help="timed runs of each (default: 7)")
    parser.add_argument("--lengths", type=int, nargs="+", default=None, metavar="N",
                        help="sequence lengths (default: those of the paper or the operator's own)")
    parser.add_argument("--sections", nargs="+", default=None, metavar="NAME",
                        help="stack: of layers, steps, decoding, growth; decode: of step, unconditional, conditional; "
                             "inference: of peers, lengths (default: all)")
    parser.add_argument("--plot", default=None, metavar="FILE", help="attention, decode: draw the curves too")
    parser.add_argument("--device", default=None, help="attention, decode, encode, stack: cpu (default) or cuda")
    parser.add_argument("--dtype", default=None, help="stack: float32 (default) or bfloat16, by autocast")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Print the table."""
    if args.threads is not None and args.threads < 1:
        raise ValueError(f"expected 1 or more threads, got {args.threads}")
    import torch

    if args.threads is not None:
        torch.set_num_threads(args.threads)
    chosen = {name: getattr(args, name) for name in ("sections", "plot", "device", "dtype")}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    if foreign := [name for name in chosen if name not in BENCHMARKS[args.name].options]:
        raise ValueError(f"bench {args.name} has no option --{' or --'.join(foreign)}")
    lengths = args.lengths or BENCHMARKS[args.name].lengths
    print(import_module(f"seqstruct.benchmarks.{args.name}").run(lengths, args.repeats, **chosen))
