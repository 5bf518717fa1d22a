"""From lines of subwords or words to what fairseq's tasks read: by fairseq-preprocess, or line by line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

RESERVED = ("<s>", "<pad>", "</s>", "<unk>")  # that dictionaries of fairseq begin with


def preprocess(folder: str | os.PathLike, arguments: Iterable[str | os.PathLike]) -> None:
    """Run fairseq-preprocess with these arguments into a folder, without its log.

    Raises ValueError with its last line if it fails.
    """
    command = [sys.executable, "-m", "fairseq_cli.preprocess", "--destdir", os.fspath(folder), *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise ValueError(f"fairseq-preprocess failed: {(done.stdout.strip().splitlines() or ['no message'])[-1]}")
    Path(folder, "preprocess.log").unlink(missing_ok=True)


def preprocess_pairs(
    text: str | os.PathLike,
    folder: str | os.PathLike,
    languages: tuple[str, str],
    *,
    joined: bool = True,
    workers: int = 1,
    arguments: Iterable[str] = (),
) -> None:
    """The same from text/{train,valid,test}.LANGUAGE.  joined: whether both languages share one dictionary."""
    command = ["--source-lang", languages[0], "--target-lang", languages[1], "--workers", str(workers), *arguments]
    if joined:
        command.append("--joined-dictionary")
    for split in ("train", "valid", "test"):
        command += [f"--{split}pref", os.fspath(Path(text, split))]
    preprocess(folder, command)


def word_number(word: str, dictionary: Any) -> int:
    """The number of a word; of one that is written as one of `RESERVED`, as of all others not there, the unknown one's.

    dictionary: fairseq's, whose own `index` would take the word "<pad>" of a text for padding.
    """
    return dictionary.unk() if word in RESERVED else dictionary.index(word)


def write_lines(lines: Iterable[str], prefix: str | os.PathLike, dictionary: Any) -> int:
    """prefix.bin and prefix.idx of fairseq's indexed data sets, EOS after each line; the number of lines comes back.

    dictionary: fairseq's.
    """
    items = (dictionary.encode_line(line, append_eos=True, add_if_not_exist=False) for line in lines)
    return write_items(items, prefix, len(dictionary))


def write_items(items: Iterable[Any], prefix: str | os.PathLike, types: int) -> int:
    """The same from tensors of numbers below `types`."""
    from fairseq.data import indexed_dataset

    builder = indexed_dataset.make_builder(f"{prefix}.bin", impl="mmap", vocab_size=types)
    count = 0
    with closing(builder._data_file):  # an item that is refused leaves it open otherwise
        for item in items:
            builder.add_item(item)
            count += 1
        builder.finalize(f"{prefix}.idx")
    return count
