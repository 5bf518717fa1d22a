"""Where configs/ and recipes/ lie: beside the package in a checkout, inside of it where a wheel was installed."""

from __future__ import annotations

from pathlib import Path

import seqstruct

INSTALLED = "_share"


def shared_folder(name: str) -> Path:
    """The folder `configs` or `recipes`; of recipes a wheel has paper.json and the records alone."""
    package = Path(seqstruct.__file__).resolve().parent
    # another package may have put a folder of such a name beside an installed one, so what the wheel brought is first
    installed = package / INSTALLED
    return (installed if installed.is_dir() else package.parent) / name
