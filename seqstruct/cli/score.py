"""`seqstruct score`: subwords undone, detokenised, scored by sacreBLEU against raw references."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from seqstruct.data.parallel import read_lines
from seqstruct.scoring.hypotheses import UNDO, read_generate, to_text
from seqstruct.scoring.translation import METRICS, compare, score


def add_parser(commands: argparse._SubParsersAction) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("score", help="BLEU and chrF of translations, with a test between two systems",
                                 description=__doc__)
    system = parser.add_mutually_exclusive_group(required=True)
    system.add_argument("--hypotheses", metavar="FILE", help="one sentence a line, in the order of the references")
    system.add_argument("--from-generate", metavar="FILE", help="output of fairseq-generate; - reads standard input")
    parser.add_argument("--references", required=True, nargs="+", metavar="RAW", help="raw references, untouched text")
    parser.add_argument("--subwords", choices=tuple(UNDO), default="none", help="subwords to undo (default none)")
    parser.add_argument("--detokenize", metavar="LANGUAGE", help="undo Moses tokenisation of this language")
    parser.add_argument("--metrics", nargs="+", choices=METRICS, default=list(METRICS))
    parser.add_argument("--lowercase", action="store_true", help="score without regard to case")
    parser.add_argument("--tokenize", default="13a", metavar="NAME",
                        help="sacreBLEU's tokeniser inside BLEU (default %(default)s)")
    parser.add_argument("--against", metavar="OTHER",
                        help="another system's file, of the same kind, as baseline of a paired bootstrap")
    parser.add_argument("--resamples", type=int, default=1000, metavar="N",
                        help="draws of the paired bootstrap (default %(default)s)")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the scores.  Raises ValueError or OSError with one sentence."""
    references = [list(read_lines(path)) for path in args.references]
    for path, lines in zip(args.references, references, strict=True):
        if len(lines) != len(references[0]):
            raise ValueError(f"{path}: {len(lines)} lines, but {args.references[0]} has {len(references[0])}")
    path = args.hypotheses or args.from_generate
    hypotheses = _system(path, args, len(references[0]))
    result = {
        "sentences": len(hypotheses),
        "scores": [asdict(s) for s in score(hypotheses, references, args.metrics, args.lowercase, args.tokenize)],
    }
    if args.against:
        baseline = _system(args.against, args, len(references[0]))
        result["against"] = [asdict(c) for c in compare(hypotheses, baseline, references, args.metrics,
                                                        args.lowercase, args.tokenize, args.resamples)]
    if args.format == "json":
        print(json.dumps(result, indent=1))
    else:
        print("\n".join(_text(result)))
    return 0


def _system(path: str, args: argparse.Namespace, expected: int) -> list[str]:
    """One system's text; a ValueError names the file if it has not as many lines as expected."""
    if args.from_generate:
        # The name "-" is standard input; the label in an error is what the user would call it.
        lines = sys.stdin if path == "-" else read_lines(path)
        found = read_generate(lines, "standard input" if path == "-" else path, expected)
    else:
        found = list(read_lines(path))
        if len(found) != expected:
            raise ValueError(f"{path}: {len(found)} lines, but the references have {expected}")
    return to_text(found, args.subwords, args.detokenize)


def _text(result: dict) -> list[str]:
    lines = []
    for s in result["scores"]:
        lines.append(f"{s['metric']} {s['value']:.2f}" + (f"  {s['details']}" if s["details"] else ""))
        lines.append(f"  {s['signature']}")
    for c in result.get("against", []):
        lines.append(f"{c['metric']} {c['value']:.2f} +- {c['interval']:.2f} against {c['baseline']:.2f} +- "
                     f"{c['baseline_interval']:.2f}: difference {c['value'] - c['baseline']:+.2f}, "
                     f"p = {c['p_value']:.4f}")
        lines.append(f"  {c['signature']}")
    return lines
