"""Loggers that are quiet while a command of ours runs, and as they were afterwards."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

# once fairseq has set up logging, matplotlib tells of every font that it looks at; fairseq tells of sizes of
# dictionaries, and of what else is for the log of a training
TALKATIVE = ("matplotlib", "fairseq")


@contextmanager
def quiet(*names: str, level: int = logging.WARNING) -> Iterator[None]:
    """What is of a level, or above it, alone of these loggers (by default of `TALKATIVE`; "" is the root)."""
    loggers = [logging.getLogger(name) for name in names or TALKATIVE]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(level)
    try:
        yield
    finally:
        for logger, before in zip(loggers, levels, strict=True):
            logger.setLevel(before)
