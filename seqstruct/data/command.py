"""What the commands behind data-prep/ share: where raw files come from, and how they fail."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """--out, --from, --downloads and --unchecked: `out`, `source`, `downloads` and `unchecked`."""
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to make")
    parser.add_argument("--from", dest="source", metavar="DIR", help="folder with the raw files; nothing is downloaded")
    parser.add_argument("--downloads", metavar="DIR", help="where downloads are kept and resumed (OUT.downloads)")
    parser.add_argument("--unchecked", action="store_true", help="take the files as they are, whatever they hold")


def exit_status(name: str, action: Callable[[], None]) -> int:
    """0 after the action, or 1 and one sentence on standard error if it raises ValueError or OSError.  name: of the
    module, for that sentence."""
    try:
        action()
    except (ValueError, OSError) as error:
        print(f"seqstruct.data.{name}: {error}", file=sys.stderr)
        return 1
    return 0
