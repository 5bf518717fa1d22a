"""How joint training changed an intermediate parser, for `seqstruct record` (Peng 2022, section 2.5 and Table 2.3).

`python -m seqstruct.harness.changed_trees DATA --before PIPELINE.pt --after JOINT.pt --out FILE.json`
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from seqstruct.command import module_parser, run_module
from seqstruct.data.parsing.folder import read_meta
from seqstruct.scoring.measurement import Measurement, write


def main(argv: Sequence[str] | None = None) -> int:
    parser = module_parser("seqstruct.harness.changed_trees", __doc__)
    parser.add_argument("data", metavar="DATA", help="folder of `seqstruct prepare parsing`")
    parser.add_argument("--corpus", metavar="NAME", help="of graphs (default: the first one)")
    parser.add_argument("--split", default="valid", help="default %(default)s")
    parser.add_argument("--before", required=True, metavar="PT", help="checkpoint of the pipeline")
    parser.add_argument("--after", required=True, metavar="PT", help="checkpoint of joint training")
    parser.add_argument("--out", required=True, metavar="FILE", help="JSON, for `seqstruct record`")
    return run_module(parser, argv, lambda args: write(args.out, _changes(args)))


def _changes(args: argparse.Namespace) -> list[Measurement]:
    from seqstruct.scoring.intermediate import compare_trees

    kinds = {name: described["kind"] for name, described in read_meta(args.data)["corpora"].items()}
    graphs = [name for name, kind in kinds.items() if kind == "graphs"]
    if not graphs or (args.corpus or graphs[0]) not in graphs:
        raise ValueError(f"{args.data}: expected a corpus of graphs, got {args.corpus or ', '.join(kinds)}")
    return compare_trees(args.data, args.corpus or graphs[0], args.split, args.before, args.after)


if __name__ == "__main__":
    raise SystemExit(main())
