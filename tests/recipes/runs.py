"""A run as `prepare` sees it, for what is refused before anything is made."""

from __future__ import annotations

from pathlib import Path

from seqstruct.harness.recipe import Cell


class RefusedRun:
    """Seed 1 of a row, with no raw data at hand but `source`."""

    def __init__(self, row: str, scale: str, source: Path | None = None):
        self.cell, self.source = Cell(row, 1, scale), source

    def raw_data(self, name: str) -> None:
        return None
