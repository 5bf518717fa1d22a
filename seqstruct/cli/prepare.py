"""`seqstruct prepare NAME`: make a corpus ready for training.

`seqstruct prepare NAME --help` lists its options: where the raw files come from, then what the corpus of that name
needs (`seqstruct.data.registry`).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

from seqstruct.data.arguments import at_least
from seqstruct.data.downloads import SUMS
from seqstruct.data.files import check_free, locked
from seqstruct.data.registry import ENTRIES, GENERATED, OF_LISTS, OWN, Entry, find


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of a corpus are read once its name is known."""
    parser.epilog = "names:\n" + "\n".join(f"  {entry.name:18} {entry.help}" for entry in ENTRIES)
    parser.add_argument("name", metavar="NAME", help="of the corpus")
    parser.add_argument("options", nargs=argparse.REMAINDER, metavar="...", help="--out DIR, --from DIR and others")


class Parser(argparse.ArgumentParser):
    """One that says in one sentence what is wrong."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see --help)\n")


def build_parser(entry: Entry) -> argparse.ArgumentParser:
    module = entry.load()
    parser = Parser(
        prog=f"seqstruct prepare {entry.name}", formatter_class=argparse.RawDescriptionHelpFormatter,
        description=f"{entry.help} (licence: {entry.licence})\n\n{module.__doc__}",
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to make; it appears when all is done")
    if entry.licence == GENERATED:
        parser.add_argument("--made-up", action="store_true", help="accepted as of all corpora: this one always is")
    elif entry.licence != OWN:
        where = parser.add_mutually_exclusive_group()
        where.add_argument("--from", dest="source", metavar="DIR", help="folder of raw files; nothing is downloaded")
        usual = "".join(f"; --{name} is then {value} by default" for name, value in entry.trial.items())
        where.add_argument("--made-up", action="store_true", help="make small raw files up, for a trial; they go to "
                           f"--downloads where that is given{usual}")
        parser.add_argument("--downloads", metavar="DIR", help="where downloads are kept and resumed (OUT.downloads)")
        parser.add_argument("--unchecked", action="store_true",
                            help="take raw files as they are: neither checksums nor numbers are compared")
    module.add_arguments(parser, entry.name)
    return parser


def run(args: argparse.Namespace) -> None:
    prepare(find(args.name), args.options)


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Raises ValueError if another process makes the same folder, or has made it."""
    mark = place.with_name(f".{place.name}.preparing")
    place.parent.mkdir(parents=True, exist_ok=True)
    with locked(mark, wait=False) as mine:
        if not mine:
            raise ValueError(f"{place}: another `seqstruct prepare` makes it, or the file system has no locks")
        try:
            check_free(place)
            yield
        finally:
            mark.unlink(missing_ok=True)


def prepare(entry: Entry, options: Sequence[str]) -> None:
    """Make the folder and say what it holds."""
    parser = build_parser(entry)
    args = parser.parse_args(options)
    if entry.trial and args.made_up:
        parser.set_defaults(**entry.trial)
        args = parser.parse_args(options)
    args.entry = entry.name
    if hasattr(args, "workers"):
        at_least(args, workers=1)
    place = check_free(args.out)
    if OF_LISTS.intersection(entry.use.split(", ")) and {",", ":"}.intersection(str(place)):
        raise ValueError(f"--out: expected a path without comma and colon, at which fairseq parts lists, got {place}")
    with _alone(place), TemporaryDirectory() as scratch:
        if entry.licence not in (GENERATED, OWN):
            if args.made_up:
                if args.downloads and Path(args.downloads, SUMS).is_file():
                    raise ValueError(f"--made-up: {args.downloads} has files that were downloaded; name another folder")
                args.source, args.unchecked = args.downloads or scratch, True
                entry.write_made_up(Path(args.source))
            elif args.unchecked and args.source is None:
                raise ValueError("--unchecked needs --from DIR: downloads are always checked")
            args.downloads = args.downloads or f"{Path(args.out)}.downloads"
        entry.load().run(args)
    print(f"{args.out}: ready")
