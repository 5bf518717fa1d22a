"""`seqstruct bench NAME`: timings of our operators beside what they are held against, measured here and now."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from seqstruct.data.arguments import whole


class Benchmark(NamedTuple):
    """What is timed, the default lengths (None where it has sizes of its own), further options that it takes, the
    sections that it has, and the least length."""

    text: str
    lengths: list[int] | None
    options: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    least: int = 1


BENCHMARKS = {
    "attention": Benchmark("causal attention in training, beside fused softmax", [512, 2048], ("plot",)),
    "decode": Benchmark("decoding step by step, beside softmax and beside no attention",
                        [32, 64, 128, 256, 512, 1024, 2048], ("sections", "plot"),
                        ("step", "unconditional", "conditional"), least=2),
    "distributions": Benchmark("distributions over structures, beside torch-struct's", None, least=2),
    "encode": Benchmark("an encoder's layer with bounded memory, beside softmax", [512]),
    "inference": Benchmark("marginals of chains and dependency trees, beside torch-struct and supar, and by length",
                           None, ("sections",), ("peers", "lengths")),
    "parsing": Benchmark("training steps of parsers, beside supar's", [25]),
    "rational": Benchmark("layers of rational recurrences, beside torch.nn.LSTM", [35, 4096]),
    "stack": Benchmark("stack attention, in units of a plain Transformer's training step", None,
                       ("sections", "dtype"), ("layers", "steps", "decoding", "growth")),
    "translation": Benchmark("training and decoding of recurrent translation models, beside fairseq's lstm", [14, 30],
                             least=2),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", choices=sorted(BENCHMARKS), metavar="NAME",
                        help="; ".join(f"{name}: {benchmark.text}" for name, benchmark in BENCHMARKS.items()))
    parser.add_argument("--threads", type=whole(1, 2**31 - 1), metavar="N", help="threads of torch (default: as found)")
    parser.add_argument("--repeats", type=int, default=7, metavar="N", help="timed runs of each (default: 7)")
    parser.add_argument("--lengths", type=int, nargs="+", default=None, metavar="N",
                        help="sequence lengths (default: those of the paper or the operator's own)")
    parser.add_argument("--sections", nargs="+", default=None, metavar="NAME",
                        help="; ".join(f"{name}: of {', '.join(benchmark.sections)}"
                                       for name, benchmark in BENCHMARKS.items() if benchmark.sections)
                        + " (default: all)")
    parser.add_argument("--plot", default=None, metavar="FILE", help="attention, decode: draw the curves too")
    parser.add_argument("--device", default="cpu", help="cpu (default) or cuda")
    parser.add_argument("--dtype", default=None, help="stack: float32 (default) or bfloat16, by autocast")
    parser.add_argument("--peer", nargs="+", default=[], metavar="FOLDER",
                        help="folders with packages of others that are not installed, to be timed beside ours")


def run(args: argparse.Namespace) -> None:
    benchmark = BENCHMARKS[args.name]
    lengths = args.lengths or benchmark.lengths
    if args.repeats < 1:
        raise ValueError(f"expected 1 or more repeats, got {args.repeats}")
    if lengths and min(lengths) < benchmark.least:
        raise ValueError(f"expected lengths of {benchmark.least} or more, got {min(lengths)}")
    if missing := [folder for folder in args.peer if not Path(folder).is_dir()]:
        raise ValueError(f"--peer: there is no folder {missing[0]}")
    sys.path += [str(Path(folder).resolve()) for folder in args.peer]  # the last, so that nothing of ours is replaced
    import torch

    if args.threads is not None:
        torch.set_num_threads(args.threads)
    chosen = {name: getattr(args, name) for name in ("sections", "plot", "dtype")}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    if foreign := [name for name in chosen if name not in benchmark.options]:
        raise ValueError(f"bench {args.name} has no option --{' or --'.join(foreign)}")
    if unknown := sorted(set(args.sections or ()) - set(benchmark.sections)):
        raise ValueError(f"no section {', '.join(unknown)}; sections: {', '.join(benchmark.sections)}")
    print(import_module(f"seqstruct.benchmarks.{args.name}").run(lengths, args.repeats, device=args.device, **chosen))
