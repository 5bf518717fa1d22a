"""The licensed corpora of syntactic-then-semantic parsing, split as Peng (2022, section 2.4.1) splits them.

Graphs of SDP 2015 (Oepen et al. 2015): sections 00-19 of the Wall Street Journal to train, 20 to validate, and the two
test files, section 21 (id) and Brown (ood).  Trees of the Penn Treebank: section 20 to validate, 21 to test, all other
sections to train, so that no test sentence of the graphs has a gold tree in training.  The trees become Stanford
dependencies by Stanford CoreNLP's EnglishGrammaticalStructure, whose jar and a Java are yours; trees that were
converted before (files in CoNLL) are taken as they are.

The result is the folder that recipes/peng_thesis/table-2.1.sh reads:
{dm,psd,pas}.{train,dev,id,ood}.sdp and ptb.{train,dev,test}.conllu.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain, groupby
from pathlib import Path
from tempfile import TemporaryDirectory

from seqstruct.data.checked import check_counts
from seqstruct.data.downloads import raw_folder
from seqstruct.data.files import atomic_write, new_folder, write_json, write_text
from seqstruct.data.text.aligned import read_lines
from seqstruct.data.text.conllu import parse_conllu, read_conllu
from seqstruct.data.text.sdp import HEADER, read_sdp
from seqstruct.data.text.trees import bracketed, read_wsj

FORMALISMS = ("dm", "psd", "pas")
SENTENCES = {"train": 33961, "dev": 1692, "id": 1410, "ood": 1849}  # of each formalism, as the thesis counts them
MOST_TRAINING = 33964  # of the distribution: three sentences were left out
CONVERTER = "edu.stanford.nlp.trees.EnglishGrammaticalStructure"
MANUAL = "order LDC2016T10 (SDP 2014 and 2015) and LDC99T42 (Treebank-3) at https://catalog.ldc.upenn.edu/"
SECTIONS = range(25)
_SENTENCE = re.compile(r"#2(\d\d)\d{5}")
_TREES = re.compile(r"wsj_(\d\d)\d\d\.(mrg|conllx?|conllu|dep)", re.IGNORECASE)


def blocks(path: str | os.PathLike) -> Iterator[str]:
    """The sentences of an SDP file as they stand, comments included.

    Raises ValueError on another header, and as `read_sdp`.
    """
    lines = read_lines(path)
    if (first := next(lines, "")) != HEADER:
        raise ValueError(f"{path}, line 1: expected {HEADER!r}, got {first!r}")
    for _ in read_sdp(path):
        pass
    for full, block in groupby(lines, lambda line: bool(line.strip())):
        if full:
            yield "".join(f"{line}\n" for line in block)


def split_of(block: str, name: str) -> str | None:
    """train or dev, by the section in the sentence's number (#2SSFFNNN); None for other sections.

    Raises ValueError on a sentence without such a number.
    """
    match = _SENTENCE.match(block)
    if match is None:
        raise ValueError(f"{name}: expected a sentence that begins with its number, #2SSFFNNN, got {block[:20]!r}")
    section = int(match[1])
    return "train" if section < 20 else "dev" if section == 20 else None


def split_graphs(source: Path, out: Path, formalism: str) -> dict[str, int]:
    """Write the four files of one formalism; sentences of each.  Raises ValueError if a file is missing or damaged."""
    training = _only(source, f"en.{formalism}.sdp")
    counts = dict.fromkeys(SENTENCES, 0)
    with ExitStack() as stack:
        streams = {split: stack.enter_context(atomic_write(out / f"{formalism}.{split}.sdp")) for split in SENTENCES}
        for stream in streams.values():
            stream.write(HEADER + "\n")
        tests = {split: blocks(_only(source, f"en.{split}.{formalism}.sdp")) for split in ("id", "ood")}
        found = chain(((split_of(block, str(training)), block) for block in blocks(training)),
                      ((split, block) for split in tests for block in tests[split]))
        for split, block in found:
            if split is not None:
                streams[split].write(block + "\n")
                counts[split] += 1
    return counts


def _only(source: Path, name: str) -> Path:
    found = sorted({*source.rglob(name), *source.rglob(name + ".gz")})
    if len(found) != 1:
        raise ValueError(f"{source}: expected one file {name} (or .gz) at some depth, found {len(found)}")
    return found[0]


def split_trees(source: Path, out: Path, jar: str | None, java: str, all_sections: bool = True) -> dict[str, int]:
    """Write ptb.{train,dev,test}.conllu; sentences of each.

    source: a folder with wsj_SSNN.mrg at any depth, or a .zip of them, for which `jar` names CoreNLP's jar (several
    with the system's separator), or a folder with wsj_SSNN.conllx, .conll, .conllu or .dep.
    Raises ValueError if files or sections are missing, a file is there twice or is damaged, or the converter fails or
    loses sentences.
    """
    found: dict[str, list[str]] = {split: [] for split in ("train", "dev", "test")}
    counts = dict.fromkeys(found, 0)
    seen: dict[str, Path] = {}
    sections = set()
    for path in _tree_files(source):
        stem, section = path.stem.lower(), int(path.name[4:6])
        if path.suffix.lower() == ".mrg":
            continue
        if stem in seen:
            raise ValueError(f"{source}: expected each file once, found {seen[stem]} and {path}")
        seen[stem] = path
        sections.add(section)
        counts[_tree_split(section)] += sum(1 for _ in read_conllu(path))
        found[_tree_split(section)].append("\n".join(read_lines(path)).strip("\n") + "\n\n")
    brackets: dict[str, list[str]] = {split: [] for split in found}
    for section, _, trees in () if sections else read_wsj(source):
        sections.add(section)
        brackets[_tree_split(section)] += map(bracketed, trees)
    missing = sorted(set(SECTIONS) - sections)
    if not sections or (missing and all_sections):
        raise ValueError(f"{source}: no wsj_SSNN files of the sections {', '.join(f'{s:02}' for s in missing)}")
    if any(brackets.values()) and not jar:
        raise ValueError("trees in brackets need --corenlp JAR to become dependencies")
    for split, texts in found.items():
        if brackets[split]:
            texts.append(convert(brackets[split], jar, java))
            counts[split] = sum(1 for _ in parse_conllu(texts[0].split("\n"), CONVERTER))
        with atomic_write(out / f"ptb.{split}.conllu") as stream:
            stream.writelines(texts)
    return counts


def _tree_files(source: Path) -> list[Path]:
    """The files of trees in a folder, at any depth, in the order of their names; none of an archive."""
    return sorted((path for path in source.rglob("*") if _TREES.fullmatch(path.name)), key=lambda path: path.name)


def _tree_split(section: int) -> str:
    return {20: "dev", 21: "test"}.get(section, "train")


def convert(trees: Iterable[str], jar: str, java: str = "java") -> str:
    """Basic Stanford dependencies of trees in brackets, in CoNLL, punctuation kept.

    Raises ValueError if Java cannot be run, fails, or gives another number of sentences.
    """
    trees = list(trees)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trees.mrg"
        write_text(path, trees)
        command = [java, "-cp", jar, CONVERTER, "-basic", "-keepPunct", "-conllx", "-treeFile", str(path)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
        except OSError as error:
            raise ValueError(f"{java} cannot be run: {error}") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ValueError(f"{CONVERTER} ended with status {done.returncode}: {last}")
    sentences = [block for block in done.stdout.split("\n\n") if block.strip()]
    if len(sentences) != len(trees):
        raise ValueError(f"{CONVERTER} gave {len(sentences)} sentences for {len(trees)} trees")
    return "".join(block.strip("\n") + "\n\n" for block in sentences)


def add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument("--trees", metavar="PATH", help="LDC99T42: folder or .zip with wsj_SSNN.mrg, or folder with "
                        "converted wsj_SSNN.conllx (default: --from, where it has such)")
    parser.add_argument("--corenlp", metavar="JAR", help="CoreNLP's jar, which converts .mrg files; version 3.3 is "
                        "that of the source's Stanford dependencies (https://stanfordnlp.github.io/CoreNLP/)")
    parser.add_argument("--java", default="java", metavar="COMMAND", help="the Java to run (default %(default)s)")


def run(args: argparse.Namespace) -> None:
    source = raw_folder(args, manual=MANUAL)
    trees = args.trees or (source if _tree_files(source) else None)
    with new_folder(args.out) as folder:
        counts = {name: split_graphs(source, folder, name) for name in FORMALISMS}
        for formalism, found in () if args.unchecked else counts.items():
            published = SENTENCES | {"train": MOST_TRAINING} if found["train"] == MOST_TRAINING else SENTENCES
            check_counts(formalism, found, published, "sentences")
        if trees is not None:
            counts["ptb"] = split_trees(Path(trees), folder, args.corenlp, args.java, not args.unchecked)
        write_json(folder / "corpus.json", counts)
    for name, splits in counts.items():
        print(f"{name}: " + ", ".join(f"{split} {count}" for split, count in splits.items()))
