"""What corpora for translation share (`wmt`, `iwslt`, `kftt`): from archives to subwords and a folder for fairseq."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from seqstruct.data.checked import SPLITS, check_counts
from seqstruct.data.downloads import Remote, collect, raw_folder
from seqstruct.data.files import new_folder, write_json, write_text
from seqstruct.data.text import parallel, subwords
from seqstruct.data.text.aligned import pair_writer
from seqstruct.data.text.binarise import preprocess_pairs
from seqstruct.data.text.subwords import tidy

FOLDER = (
    "The folder that is made holds raw/ (references for seqstruct score), text/ (subwords), bin/ (for fairseq), the\n"
    "subword models and corpus.json; where there are documents, text/SPLIT.docs has the number of sentences of each."
)

Pair = tuple[str, str]


@dataclass(frozen=True)
class Corpus:
    """A corpus and how it is cut.

    name: in corpus.json.  options: languages, source first, and subwords.  remotes: the archives.  wanted: the files
    needed, as of `downloads.collect`.  read: from those files to the pairs of each split as `full` leaves them, in the
    order of the options' languages; None begins a document.  counts: pairs of each split as published.  tolerance: by
    how much of them ours may differ where cleaning depends on a tokeniser.  manual: what to do where nothing can be
    downloaded.
    """

    name: str
    options: parallel.SubwordOptions
    remotes: tuple[Remote, ...]
    wanted: Mapping[str, Sequence[str]]
    read: Callable[[Mapping[str, Path]], Mapping[str, Iterable[Pair | None]]]
    counts: Mapping[str, int] = field(default_factory=dict)
    tolerance: float = 0.0
    manual: str = ""


class Variants(NamedTuple):
    """What one name on the command line stands for: corpora by the value of an option, the first one by default; where
    there is one alone, there is no option."""

    corpora: Mapping[str, Corpus]
    option: str = ""
    said: str = ""


def write_raw(splits: Mapping[str, Iterable[Pair | None]], languages: Sequence[str], folder: Path) -> dict[str, dict]:
    """folder/SPLIT.LANGUAGE; by split the pairs, and the sentences of each document: documents that have none are
    left out.

    Raises ValueError if a split has no pair.
    """
    counts = {}
    for split in SPLITS:
        pairs, documents = 0, []
        with pair_writer(folder / split, languages) as write:
            for pair in splits[split]:
                if pair is None:
                    documents.append(0)
                    continue
                write(pair)
                pairs += 1
                if documents:
                    documents[-1] += 1
        if not pairs:
            raise ValueError(f"no pairs in the {split} set")
        counts[split] = {"pairs": pairs, "documents": [count for count in documents if count]}
    return counts


def full(pairs: Iterable[Pair | None]) -> Iterator[Pair | None]:
    """Those of which no side is empty, both as `subwords.tidy` leaves them, and the bounds of documents."""
    for pair in pairs:
        if pair is None:
            yield None
            continue
        source, target = map(tidy, pair)
        if source and target:
            yield source, target


def command(corpora: Mapping[str, Variants]) -> tuple[Callable[[argparse.ArgumentParser, str], None], Callable]:
    """`add_arguments` and `run` of a module that has these corpora, by the names of the command."""
    return (lambda parser, name: add_arguments(parser, corpora[name]), lambda args: run(args, corpora[args.entry]))


def add_arguments(parser: argparse.ArgumentParser, variants: Variants) -> None:
    parser.epilog, first = FOLDER, next(iter(variants.corpora))
    parser.set_defaults(variant=first)
    if variants.option:
        parser.add_argument(variants.option, dest="variant", choices=variants.corpora,
                            help=f"{variants.said} (default {first})")
    parser.add_argument("--src", metavar="LANGUAGE", help="the source language; the other one is the target")
    parallel.add_subword_arguments(parser)
    parser.add_argument("--max-length", type=int, metavar="N",
                        help="subwords in a sentence; longer training pairs are dropped")
    parser.add_argument("--max-ratio", type=float, metavar="R", help="longer to shorter side of a training pair")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes that binarise (default 1)")


def chosen_options(args: argparse.Namespace, options: parallel.SubwordOptions) -> parallel.SubwordOptions:
    """A corpus's options, changed by what the command line says.  Raises ValueError on a language it does not have, and
    as `parallel.SubwordOptions` does."""
    names = ("subwords", "vocabulary", "max_length", "max_ratio")
    changed = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    kinds = changed.get("subwords", ())
    if not all(subwords.KINDS[kind][0] for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        changed["truecase"] = False  # which is of Moses tokens
    if args.src is not None:
        if args.src not in options.languages:
            raise ValueError(f"--src: expected one of {', '.join(options.languages)}, got {args.src}")
        sizes = options.vocabulary
        if options.languages[0] != args.src:
            changed["languages"] = options.languages[::-1]
            if not isinstance(sizes, int):
                changed.setdefault("vocabulary", sizes[::-1])
    return replace(options, **changed)


def run(args: argparse.Namespace, variants: Variants) -> None:
    """Make the folder and say what it holds.  Raises ValueError on what is missing, altered, empty or not aligned."""
    corpus = variants.corpora[args.variant]
    options = chosen_options(args, corpus.options)
    with new_folder(args.out) as folder:
        raw = raw_folder(args, corpus.remotes, corpus.manual)
        files = collect(raw, corpus.wanted, folder.parent / "unpacked", corpus.manual)
        text = folder.parent / "raw"
        found = write_raw(corpus.read(files), corpus.options.languages, text)
        if not args.unchecked:
            pairs = {split: counts["pairs"] for split, counts in found.items()}
            check_counts(corpus.name, pairs, corpus.counts, "pairs", corpus.tolerance)
        summary = parallel.prepare({split: text / split for split in SPLITS}, options, folder)
        summary = {"corpus": corpus.name, **summary}
        for split, counts in found.items():
            if counts["documents"]:
                if dropped := summary["counts"][split]["dropped"]:
                    raise ValueError(f"{split}: {dropped} pairs exceed the limits on length and ratio; documents must "
                                     "stay whole")
                summary["counts"][split]["documents"] = len(counts["documents"])
                write_text(folder / "text" / f"{split}.docs", counts["documents"])
        preprocess_pairs(folder / "text", folder / "bin", options.languages, joined=len(options.vocabularies) == 1,
                         workers=args.workers)
        write_json(folder / "corpus.json", summary)
    for split, counts in summary["counts"].items():
        documents = f" in {counts['documents']} documents" if "documents" in counts else ""
        print(f"{split}: {counts['pairs']} pairs{documents}, {counts['subwords']} subwords, "
              f"{counts['dropped']} pairs dropped")
