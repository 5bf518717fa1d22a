"""`seqstruct score`: translations (subwords, truecasing and tokens undone) and word alignments against what is right.

Several systems are scored side by side; with --against each is tested against one baseline.  With --by-length the
sentences are also scored in groups by length, with --groups in groups of one's own.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from seqstruct.command import refuse_unused, text_table
from seqstruct.data.arguments import language
from seqstruct.data.files import read_json
from seqstruct.data.text.aligned import read_lines
from seqstruct.data.text.subwords import KINDS
from seqstruct.scoring.alignment import alignment_error_rate, read_alignments, read_gold
from seqstruct.scoring.hypotheses import UNDO, check_targets, read_generate, to_text
from seqstruct.scoring.translation import (
    DEFAULT_METRICS,
    METRICS,
    UNITS,
    compare,
    score,
    score_by_group,
    score_by_length,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    system = parser.add_mutually_exclusive_group(required=True)
    system.add_argument("--hypotheses", metavar="FILE", nargs="+",
                        help="one file a system: one sentence a line, in the order of the references")
    system.add_argument("--from-generate", metavar="FILE", nargs="+",
                        help="one file a system: output of fairseq-generate; - reads standard input")
    system.add_argument("--alignments", metavar="FILE", nargs="+",
                        help="one file a system: word alignments i-j, counted from 0, for the alignment error rate")
    parser.add_argument("--references", nargs="+", metavar="RAW", help="raw references, untouched text")
    parser.add_argument("--data", metavar="DIR",
                        help="folder of data-prep/ with translations: gives references, subwords and the language")
    parser.add_argument("--subset", choices=("valid", "test"), help="with --data (default: test)")
    parser.add_argument("--gold-alignments", metavar="FILE", help="i-j for sure links, ipj or i?j for possible ones")
    parser.add_argument("--gold-from-one", action="store_true", help="the gold alignments count words from 1")
    parser.add_argument("--subwords", choices=tuple(UNDO), default="none", help="subwords to undo (default none)")
    parser.add_argument("--truecased", action="store_true", help="begin sentences with a capital, as before truecasing")
    parser.add_argument("--detokenize", metavar="LANGUAGE", type=language,
                        help="undo Moses tokenisation of this language")
    parser.add_argument("--metrics", nargs="+", choices=METRICS, default=list(DEFAULT_METRICS),
                        help=f"default {' '.join(DEFAULT_METRICS)}; in ter less is better; tokenized_bleu is BLEU of "
                             "Moses tokens, as older papers report it")
    parser.add_argument("--language", metavar="LANGUAGE", type=language,
                        help="of the text, for tokenized_bleu (default that of --detokenize)")
    parser.add_argument("--lowercase", action="store_true", help="score without regard to case")
    parser.add_argument("--tokenize", default="13a", metavar="NAME",
                        help="sacreBLEU's tokeniser inside BLEU and GLEU (default %(default)s)")
    parser.add_argument("--against", metavar="OTHER",
                        help="another system's file, of the same kind, as baseline of a paired bootstrap")
    parser.add_argument("--against-data", metavar="DIR",
                        help="the prepared folder that OTHER is of, where that is not --data (with --from-generate)")
    parser.add_argument("--resamples", type=int, default=1000, metavar="N",
                        help="draws of the paired bootstrap (default %(default)s)")
    parser.add_argument("--by-length", type=int, nargs="+", metavar="WORDS",
                        help="greatest length of each group of sentences but the last, in words separated by spaces")
    parser.add_argument("--sources", metavar="RAW",
                        help="raw source sentences, whose lengths count (default those of the first references)")
    parser.add_argument("--groups", metavar="FILE",
                        help="a name for each sentence, one a line: scores by name, and the means over names KIND/...")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--record", nargs="+", metavar="FILE.json [TABLE:]NAME",
                        help="write one system's scores for `seqstruct record`, each under every NAME, in which {} is "
                             "the metric (default test_{}); with --against the difference and its p too")


def run(args: argparse.Namespace) -> None:
    if args.record and (args.alignments or len(args.hypotheses or args.from_generate) > 1):
        raise ValueError("--record: expected the translations of one system")
    metrics = set(args.metrics)
    if args.record and len(metrics) > 1 and (alike := [name for name in args.record[1:] if "{}" not in name]):
        raise ValueError(f"--record: expected a {{}} for each of {len(metrics)} metrics in the name, got {alike[0]!r}")
    _refuse_unused(args)
    if args.data:
        _read_data(args)
    result, shown = _alignments(args) if args.alignments else _translations(args)
    if args.record:
        _record(result, args.record[0], args.record[1:] or ["test_{}"])
    print(json.dumps(result, indent=1) if args.format == "json" else "\n".join(shown))


def _refuse_unused(args: argparse.Namespace) -> None:
    """Raise ValueError for an option that does nothing beside the others."""
    of_data = ("subset", "against_data")
    undone = ("subwords", "truecased", "detokenize")
    of_text = ("references", "data", *of_data, *undone, "metrics", "language", "lowercase", "tokenize", "against",
               "resamples", "by_length", "sources", "groups")
    decided = ("references", "language", *(undone if args.from_generate else ()))
    refuse_unused(
        args,
        (args.alignments, "is of translations, expected none with --alignments", of_text),
        (not args.alignments, "expected --alignments with it", ("gold_alignments", "gold_from_one")),
        (args.data, "expected none with --data, which decides it", decided),
        (not args.data, "expected --data with it", of_data),
        (not args.against, "expected --against with it", ("resamples", "against_data")),
        (not args.from_generate, "expected --from-generate with it", ("against_data",)),
        (not args.by_length, "expected --by-length with it", ("sources",)),
        ("tokenized_bleu" not in args.metrics, "expected --metrics tokenized_bleu with it", ("language",)),
        (not {"bleu", "gleu"} & set(args.metrics), "expected bleu or gleu in --metrics with it", ("tokenize",)),
    )


def _alignments(args: argparse.Namespace) -> tuple[dict, list[str]]:
    """The alignment error rates as a value and as lines."""
    if not args.gold_alignments:
        raise ValueError("--alignments: expected --gold-alignments with it")
    gold = read_gold(read_lines(args.gold_alignments), args.gold_alignments, args.gold_from_one)
    systems = []
    for path in args.alignments:
        found = read_alignments(read_lines(path), path)
        if len(found) != len(gold):
            raise ValueError(f"{path}: {len(found)} lines, but {args.gold_alignments} has {len(gold)}")
        systems.append({"name": path, **asdict(alignment_error_rate(found, gold))})
    lines = [
        f"{s['name']}: alignment error rate {s['error_rate']:.4f}, precision {s['precision']:.4f}, recall "
        f"{s['recall']:.4f} ({s['links']} links against {s['sure']} sure and {s['possible']} possible)"
        for s in systems
    ]
    return {"sentences": len(gold), "alignments": systems}, lines


def _translations(args: argparse.Namespace) -> tuple[dict, list[str]]:
    """The scores as a value and as lines: of one system its keys alone, of several a list of them."""
    if not args.references:
        raise ValueError("translations: expected --references with them")
    paths = args.hypotheses or args.from_generate
    if [*paths, args.against].count("-") > 1:
        raise ValueError("standard input can be one system only: got - more than once")
    references = [list(read_lines(path)) for path in args.references]
    for path, lines in zip(args.references, references, strict=True):
        if len(lines) != len(references[0]):
            raise ValueError(f"{path}: {len(lines)} lines, but {args.references[0]} has {len(references[0])}")
    lengths = _lengths(args, references[0])
    texts = [_system(path, args, references) for path in paths]
    baseline = _system(args.against, _of_baseline(args), references) if args.against else None
    systems = [_scores(text, baseline, references, lengths, args) for text in texts]
    if len(systems) == 1:
        return {"sentences": len(references[0]), **systems[0]}, _text(systems[0])
    named = [{"name": path, **system} for path, system in zip(paths, systems, strict=True)]
    return {"sentences": len(references[0]), "systems": named}, _table(named)


def _read_data(args: argparse.Namespace) -> None:
    """Set the options that a prepared folder decides."""
    path = Path(args.data, "corpus.json")
    options = read_json(path).get("options")
    try:
        (_, target), kind = options["languages"], options["subwords"]
        kind = kind if isinstance(kind, str) else kind[1]
        words = KINDS[kind][0]
    except (IndexError, KeyError, TypeError, ValueError):
        raise ValueError(f"{path}: expected the options of a folder of translations") from None
    args.references, args.language = [str(Path(args.data, "raw", f"{args.subset or 'test'}.{target}"))], target
    if args.from_generate:
        args.subwords = ("none" if kind == "words" else kind) if words else "sentencepiece"
        args.detokenize = target if words else None
        args.truecased = bool(options.get("truecase"))


def _of_baseline(args: argparse.Namespace) -> argparse.Namespace:
    """The options by which the baseline's translations become text: those of all systems, or of --against-data."""
    if not args.against_data:
        return args
    other = argparse.Namespace(**{**vars(args), "data": args.against_data, "references": None})
    _read_data(other)
    return other


def _record(result: dict, path: str, names: Sequence[str]) -> None:
    """The scores, and with --against NAME_difference and NAME_p beside them."""
    from seqstruct.scoring.measurement import Measurement, write

    found = []
    for name in names:
        table, _, called = name.rpartition(":")
        for s in result["scores"]:
            found.append(Measurement(called.replace("{}", s["metric"]), s["value"], UNITS[s["metric"]], table=table))
        for c in result.get("against", ()):
            metric, unit = called.replace("{}", c["metric"]), UNITS[c["metric"]]
            found.append(Measurement(f"{metric}_difference", c["value"] - c["baseline"], unit, table=table))
            found.append(Measurement(f"{metric}_p", c["p_value"], "p", table=table))
    write(path, found)


def _lengths(args: argparse.Namespace, references: Sequence[str]) -> list[int] | None:
    """Words of each source sentence or reference; None without --by-length."""
    if not args.by_length:
        return None
    lines = list(read_lines(args.sources)) if args.sources else references
    if len(lines) != len(references):
        raise ValueError(f"{args.sources}: {len(lines)} lines, but the references have {len(references)}")
    return [len(line.split()) for line in lines]


def _system(path: str, args: argparse.Namespace, references: Sequence[Sequence[str]]) -> list[str]:
    """One system's text; a ValueError names the file if it has not as many lines as the references, or is of others."""
    expected = len(references[0])
    if args.from_generate:
        # The name "-" is standard input; the label in an error is what the user would call it.
        lines, name = list(sys.stdin if path == "-" else read_lines(path)), "standard input" if path == "-" else path
        found = read_generate(lines, name, expected)
        check_targets(lines, name, references, args.subwords)
    else:
        found = list(read_lines(path))
        if len(found) != expected:
            raise ValueError(f"{path}: {len(found)} lines, but the references have {expected}")
    return to_text(found, args.subwords, args.detokenize, args.truecased)


def _scores(
    text: list[str], baseline: list[str] | None, references: list[list[str]], lengths: list[int] | None,
    args: argparse.Namespace,
) -> dict:
    language = args.language or args.detokenize
    common = (args.metrics, args.lowercase, args.tokenize)
    result = {"scores": [asdict(s) for s in score(text, references, *common, language)]}
    if baseline is not None:
        compared = compare(text, baseline, references, *common, args.resamples, language)
        result["against"] = [asdict(c) for c in compared]
    if lengths is not None:
        groups = score_by_length(text, references, lengths, args.by_length, *common, language)
        result["by_length"] = [asdict(g) for g in groups]
    if args.groups:
        by_name = score_by_group(text, references, list(read_lines(args.groups)), *common, language)
        result["by_group"] = [asdict(g) for g in by_name]
    return result


def _text(result: dict) -> list[str]:
    lines = []
    for s in result["scores"]:
        lines.append(f"{s['metric']} {s['value']:.2f}" + (f"  {s['details']}" if s["details"] else ""))
        lines.append(f"  {s['signature']}")
    return lines + _comparisons(result) + _groups(result)


def _comparisons(result: dict) -> list[str]:
    lines = []
    for c in result.get("against", []):
        lines.append(f"{c['metric']} {c['value']:.2f} +- {c['interval']:.2f} against {c['baseline']:.2f} +- "
                     f"{c['baseline_interval']:.2f}: difference {c['value'] - c['baseline']:+.2f}, "
                     f"p = {c['p_value']:.4f}")
        lines.append(f"  {c['signature']}")
    return lines


def _groups(result: dict) -> list[str]:
    lines = []
    for g in result.get("by_length", []):
        lengths = f"over {g['least'] - 1}" if g["most"] is None else f"{g['least']} to {g['most']}"
        found = ", ".join(f"{s['metric']} {s['value']:.2f}" for s in g["scores"]) or "no scores"
        lines.append(f"{lengths} words, {g['sentences']} sentences: {found}")
    for g in result.get("by_group", []):
        size = f"{g['sentences']} sentences" if g["groups"] == 1 else f"mean of {g['groups']}"
        lines.append(f"{g['name']}, {size}: " + ", ".join(f"{m} {v:.2f}" for m, v in g["values"].items()))
    return lines


def _table(systems: list[dict]) -> list[str]:
    """One row a system, the signatures once, then what else was asked, by system."""
    rows = ([system["name"], *(f"{s['value']:.2f}" for s in system["scores"])] for system in systems)
    lines = [text_table(["system", *(s["metric"] for s in systems[0]["scores"])], rows)]
    lines += [f"{s['metric']}: {s['signature']}" for s in systems[0]["scores"]]
    for system in systems:
        more = _comparisons(system) + _groups(system)
        lines += [f"{system['name']}:", *(f"  {line}" for line in more)] if more else []
    return lines
