"""How fast fairseq-generate says that it was, against another model: `python -m seqstruct.benchmarks.generate_speed`.

The better of several decodings counts on each side, since whatever else the machine does slows one down.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from seqstruct.bridge.logs import generation_speed
from seqstruct.command import module_parser, run_module
from seqstruct.scoring.measurement import Measurement, write


def fastest(logs: Sequence[str | Path]) -> float:
    """Tokens per second, without loading and writing, of the fastest of several decodings.

    Raises ValueError naming a log in which fairseq-generate says nothing of its speed.
    """
    found = []
    for log in logs:
        said = generation_speed(Path(log).read_text(encoding="utf-8").splitlines())
        if not said:
            raise ValueError(f"{log}: expected the line of fairseq-generate that gives its speed")
        found.append(said["tokens_per_second"])
    return max(found)


def _run(args: argparse.Namespace) -> None:
    own = fastest(args.logs)
    write(args.out, [
        Measurement("decoding_speed", own / fastest(args.against), "times BASE"),
        Measurement("decoding_tokens_per_second", own, "tokens/s"),
    ])


def main(argv: Sequence[str] | None = None) -> int:
    parser = module_parser("seqstruct.benchmarks.generate_speed", __doc__)
    parser.add_argument("logs", nargs="+", metavar="LOG", help="what fairseq-generate printed of this model")
    parser.add_argument("--against", nargs="+", required=True, metavar="LOG", help="the same of the other model")
    parser.add_argument("--out", required=True, metavar="FILE.json")
    return run_module(parser, argv, _run)


if __name__ == "__main__":
    raise SystemExit(main())
