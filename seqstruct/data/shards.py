"""Text to fairseq folders of which each holds a share of the training set.

fairseq validates, decays the learning rate on a plateau and counts its patience at the end of an epoch, and it takes
one folder of a list `0:1:...` an epoch.  So a training set dealt into n folders is validated n times a pass.
`python -m seqstruct.data.shards FOLDER` prints that list.
"""

from __future__ import annotations

import os
from pathlib import Path

from seqstruct.command import module_parser, run_module
from seqstruct.data.checked import SPLITS
from seqstruct.data.text.aligned import read_lines
from seqstruct.data.text.binarise import write_lines


def shard_count(examples: int, interval: int) -> int:
    """How many shards have about `interval` training examples each, 1 or more."""
    return max(1, round(examples / interval))


def binarise(
    text: str | os.PathLike, out: str | os.PathLike, shards: int, languages: tuple[str, str] | None = None
) -> str:
    """Make the folders out/0, out/1 ... as fairseq-preprocess does; the data path of fairseq's tasks comes back.

    text: folder of SPLIT.txt, or of SPLIT.LANGUAGE for two languages, which share one dictionary.  Lines of training
    are dealt out one by one; the dictionary is that of them all, with no made-up words.  Validation and test sets are
    in out/0, where fairseq looks for them.
    Raises ValueError if a shard would be empty; OSError if a file is missing.
    """
    from fairseq.data import Dictionary
    from fairseq.tokenizer import tokenize_line

    text, out = Path(text), Path(out)
    sides = {f".{language}": f".{'-'.join(languages)}.{language}" for language in languages} if languages else {"": ""}
    paths = {end: {split: text / f"{split}{end or '.txt'}" for split in SPLITS} for end in sides}
    dictionary = Dictionary()
    for files in paths.values():
        Dictionary.add_file_to_dictionary(str(files["train"]), dictionary, tokenize_line, 1)
    dictionary.finalize(padding_factor=1)
    for end, files in paths.items():
        lines = list(read_lines(files["train"]))
        if not 1 <= shards <= len(lines):
            raise ValueError(f"{files['train']}: expected 1 to {len(lines)} shards, got {shards}")
        for shard in range(shards):
            folder = out / str(shard)
            folder.mkdir(parents=True, exist_ok=True)
            dictionary.save(str(folder / f"dict{end}.txt"))
            write_lines(lines[shard::shards], folder / f"train{sides[end]}", dictionary)
        for split in ("valid", "test"):
            write_lines(read_lines(files[split]), out / "0" / f"{split}{sides[end]}", dictionary)
    return data_path(out)


def data_path(folder: str | os.PathLike) -> str:
    """The shards of a folder as fairseq's tasks take them: "folder/0:folder/1".  Raises ValueError if it has none."""
    folder = Path(folder)
    named = (path for path in folder.glob("[0-9]*") if path.is_dir() and path.name.isdecimal())
    shards = sorted(named, key=lambda path: int(path.name))
    if not shards:
        raise ValueError(f"{folder}: expected folders 0, 1 ..., found none")
    return os.pathsep.join(map(str, shards))


if __name__ == "__main__":
    parser = module_parser("seqstruct.data.shards", __doc__)
    parser.add_argument("folder", metavar="FOLDER", help="that holds the folders 0, 1 ...")
    raise SystemExit(run_module(parser, None, lambda args: print(data_path(args.folder))))
