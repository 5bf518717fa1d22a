"""`seqstruct score-transformations`: how a model forms questions or reinflects verbs, beside trivial baselines.

The folder is of `seqstruct prepare question-formation` or tense-reinflection.  A checkpoint is of a language model or a
translation model trained on its bin/: outputs are decoded greedily, a language model's as what follows the source.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from seqstruct.command import text_table

if TYPE_CHECKING:
    from seqstruct.data.transformations.grammar import Pair


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="FOLDER", help="the prepared folder")
    system = parser.add_mutually_exclusive_group(required=True)
    system.add_argument("--checkpoint", metavar="PT", help="of fairseq-train")
    system.add_argument(
        "--outputs",
        nargs=2,
        metavar=("TEST", "GEN"),
        help="what a system made of text/test.source and text/gen.source, one sentence a line",
    )
    parser.add_argument("--write", nargs=2, metavar=("TEST", "GEN"), help="write the outputs, of that form")
    parser.add_argument("--record", metavar="FILE.json", help="write the scores for `seqstruct record`")
    parser.add_argument("--batch-size", type=int, default=250, metavar="N", help="sentences (default %(default)s)")
    parser.add_argument("--cpu", action="store_true", help="leave a GPU alone")


def run(args: argparse.Namespace) -> None:
    from seqstruct.data.files import write_text
    from seqstruct.data.text.aligned import read_lines
    from seqstruct.scoring.measurement import write
    from seqstruct.scoring.transformations import SCORED, baselines, read, score

    rule, pairs = read(args.data)
    if args.outputs:
        lines = dict(zip(SCORED, map(list, map(read_lines, args.outputs)), strict=True))
    else:
        lines = dict(zip(SCORED, _decode(args, [pairs[split] for split in SCORED]), strict=True))
    found = {"model": score(rule, pairs, {split: [line.split() for line in lines[split]] for split in SCORED})}
    for name, answer in baselines(rule, pairs["train"]).items():
        outputs = {split: [answer(pair.source) for pair in pairs[split]] for split in SCORED}
        found[name] = score(rule, pairs, outputs)
    for path, split in zip(args.write or (), SCORED, strict=False):
        write_text(path, lines[split])
    if args.record:
        write(args.record, found["model"])
    rows = ([row[0].metric, *(f"{m.value:.2f}" for m in row)] for row in zip(*found.values(), strict=True))
    print(text_table(["%", *found], rows))


def _decode(args: argparse.Namespace, splits: Sequence[Sequence[Pair]]) -> Iterator[list[str]]:
    """What the checkpoint's model makes of the sources of each split."""
    import torch

    from seqstruct.loading.generate import Generating
    from seqstruct.loading.load import load
    from seqstruct.loading.translate import Translating

    device = "cuda" if torch.cuda.is_available() and not args.cpu else "cpu"
    model = load(args.checkpoint, args.data, device=device)
    if not isinstance(model, (Generating, Translating)):
        raise ValueError(f"{args.checkpoint}: expected a language model or a translation model, got a {model.name}")
    for pairs in splits:
        sources = [" ".join(pair.source) for pair in pairs]
        most = max(len(pair.source) + len(pair.target) for pair in pairs)
        options = {"beam": 1, "batch_size": args.batch_size, "max_len_b": most}
        if isinstance(model, Translating):
            yield model.translate(sources, **options)
        else:
            found = model.generate(sources, **options)
            yield [" ".join(text.split()[len(pair.source) :]) for text, pair in zip(found, pairs, strict=True)]
