"""`seqstruct plot`: learning curves from runs, curves by length from records, a checkpoint's attention and stacks."""

from __future__ import annotations

import argparse
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from seqstruct.command import add_data
from seqstruct.harness.records import SCALES

TEXT = "symbols separated by spaces, as in the training data; @FILE takes the first line of a file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    drawings = parser.add_subparsers(dest="drawing", metavar="DRAWING", required=True)

    curves = drawings.add_parser("curves", help="a validation statistic by epoch, one curve for each run")
    curves.add_argument("runs", metavar="RUN", nargs="+", type=Path, help="folders with a train.log, or such logs")
    curves.add_argument("--metric", default="loss", help="as fairseq logs it, without valid_ (default: loss)")
    curves.set_defaults(draw=_curves)

    validated = drawings.add_parser("validated-lengths", help="difference to the true distribution by string length")
    validated.add_argument("logs", metavar="LOG", nargs="+", type=Path,
                           help="of fairseq-validate with --report-by-length and --log-format json")
    validated.add_argument("--metric", default="difference", choices=("difference", "cross_entropy", "lower_bound"),
                           help="default: %(default)s")
    validated.set_defaults(draw=_validated)

    lengths = drawings.add_parser("lengths", help="a metric by string length, from a paper's records")
    lengths.add_argument("paper", metavar="PAPER", help="a folder under recipes/, by name or path")
    lengths.add_argument("table", metavar="TABLE", help="as the source numbers it, such as figure-2")
    lengths.add_argument("--metric", help="needed where several metrics are split up by length")
    lengths.add_argument("--row", "--rows", nargs="+", default=["*"], metavar="GLOB",
                         help="only rows that match, as in a shell (default: all)")
    lengths.add_argument("--panels", action="store_true", help="a panel for each first word of the rows' names")
    lengths.add_argument("--best", metavar="METRIC",
                         help="draw the run whose METRIC is least, as the paper does, instead of the mean over seeds")
    lengths.set_defaults(draw=_lengths)

    efficient = drawings.add_parser("efficient", help="figures 4.2, 4.3, 4.4 and 5.1 of peng_thesis, from its records")
    efficient.add_argument("figure", choices=("figure-4.2", "figure-4.3", "figure-4.4", "figure-5.1"), metavar="FIGURE")
    efficient.set_defaults(draw=_efficient)

    abilities = drawings.add_parser("abilities", help="what each mechanism can do: mechanisms down, tasks across")
    abilities.set_defaults(draw=_abilities)

    attention = drawings.add_parser("attention", help="stack actions or attention weights of one string")
    attention.add_argument("--stacks", action="store_true", help="only layers with stack actions")
    attention.add_argument("--site", choices=("encoder_self", "decoder_self", "cross"), help="only this site's layers")
    attention.set_defaults(draw=_attention)

    tree = drawings.add_parser("soft-tree", help="the soft binary tree of a gated recursive convolution's encoder")
    tree.set_defaults(draw=_soft_tree)

    run = drawings.add_parser("run", help="the most probable run of a nondeterministic stack on one string")
    run.set_defaults(draw=_run)

    trees = drawings.add_parser("dependencies", help="intermediate trees of one sentence, by several joint parsers")
    trees.add_argument("checkpoints", metavar="CHECKPOINT", nargs="+")
    trees.add_argument("--data", required=True, metavar="DIR", help="folder made by `seqstruct prepare parsing`")
    trees.add_argument("--corpus", required=True, metavar="NAME", help="of graphs, in that folder")
    trees.add_argument("--split", default="valid", metavar="SPLIT", help="default: valid")
    trees.add_argument("--sentence", type=int, default=1, metavar="N", help="its number in the split (default: 1)")
    trees.set_defaults(draw=_dependencies)

    for drawing in (lengths, efficient, abilities):
        drawing.add_argument("--scale", choices=SCALES, default="small", help="default: small")
        drawing.add_argument("--records", metavar="DIR", type=Path, help="default: records/ of the paper")
    for drawing in (attention, tree, run):
        drawing.add_argument("checkpoint", metavar="CHECKPOINT")
        drawing.add_argument("text", metavar="TEXT", help=TEXT)
        add_data(drawing)
    for drawing in (attention, run):
        drawing.add_argument("--target", default="", metavar="TEXT", help="the other side, for a translation model")
    for drawing in (curves, validated, lengths, efficient, abilities, attention, tree, run, trees):
        drawing.add_argument("--out", required=True, metavar="FILE", help="a name that ends in .png, .pdf or .svg")


def run(args: argparse.Namespace) -> None:
    from seqstruct.plots.figures import save

    save(args.draw(args), args.out)


def _curves(args: argparse.Namespace) -> Any:
    from seqstruct.plots.curves import learning_curves

    names = [(p.parent if p.is_file() else p).resolve().name for p in args.runs]
    named = {name if names.count(name) == 1 else str(p): p for name, p in zip(names, args.runs, strict=True)}
    logs = {name: p if p.is_file() else p / "train.log" for name, p in named.items()}
    for path in logs.values():
        if not path.exists():
            raise ValueError(f"{path}: no such log; fairseq-train writes one by --log-file {path}")
    return learning_curves(logs, args.metric)


def _validated(args: argparse.Namespace) -> Any:
    from seqstruct.plots.curves import validated_lengths

    return validated_lengths({str(path): path for path in args.logs}, args.metric)


def _lengths(args: argparse.Namespace) -> Any:
    from seqstruct.plots.curves import length_curves

    title = f"{args.paper}, {args.table}, {args.scale}"
    return length_curves(_records(args.paper, args.table, args), title, args.best, args.metric, args.panels)


def _efficient(args: argparse.Namespace) -> Any:
    from seqstruct.plots.efficient import draw

    return draw(args.figure, _records("peng_thesis", args.figure, args))


def _abilities(args: argparse.Namespace) -> Any:
    from seqstruct.harness.abilities import read_chart
    from seqstruct.plots.abilities import heat_map

    return heat_map(read_chart(args.records, args.scale))


def _records(paper: str, table: str, args: argparse.Namespace) -> list:
    """Those of a scale, and of rows that match, in the order of the paper's rows."""
    from seqstruct.harness.paper import paper_folder, read_tables
    from seqstruct.harness.records import read_records

    folder = paper_folder(paper)
    order = {p.row: i for t in read_tables(folder) if t.name == table for i, p in enumerate(t.published)}
    found = [r for r in read_records((args.records or folder / "records") / f"{table}.jsonl")
             if r.scale == args.scale and any(fnmatchcase(r.row, glob) for glob in getattr(args, "row", ["*"]))]
    return sorted(found, key=lambda r: order.get(r.row, len(order)))


def _attention(args: argparse.Namespace) -> Any:
    from seqstruct.plots.attention import attention
    from seqstruct.plots.views import layer_views

    views = layer_views(args.checkpoint, _line(args.text), target=_line(args.target), data=args.data)
    if args.stacks:
        views = [view for view in views if view.actions is not None]
    if args.site:
        views = [view for view in views if view.title.startswith(args.site.replace("_", " "))]
    return attention(views)


def _soft_tree(args: argparse.Namespace) -> Any:
    from seqstruct.plots.soft_tree import soft_tree, soft_tree_gates

    words, gates = soft_tree_gates(args.checkpoint, _line(args.text), data=args.data)
    return soft_tree(words, gates)


def _line(text: str) -> str:
    """Text as it is given, or the first line of a file."""
    from seqstruct.data.text.aligned import read_lines

    return next(iter(read_lines(text[1:])), "") if text.startswith("@") else text


def _run(args: argparse.Namespace) -> Any:
    from seqstruct.plots.stack_runs import stack_runs
    from seqstruct.plots.views import layer_views

    views = layer_views(args.checkpoint, _line(args.text), target=_line(args.target), data=args.data)
    return stack_runs(views)


def _dependencies(args: argparse.Namespace) -> Any:
    from seqstruct.plots.dependencies import dependencies, trees_of_checkpoints

    found = trees_of_checkpoints(args.checkpoints, args.data, args.corpus, args.split, args.sentence)
    return dependencies(*found)
