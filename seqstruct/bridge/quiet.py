"""Loggers that are quiet while a command of ours runs, and as they were afterwards."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

# once fairseq has set up logging, matplotlib tells of every font that it looks at; fairseq tells of sizes of
# dictionaries, and of what else is for the log of a training
TALKATIVE = ("matplotlib", "fairseq")


@contextmanager
def quiet(*names: str) -> Iterator[None]:
    """Warnings and errors alone of these loggers (by default of `TALKATIVE`; "" is the root)."""
    loggers = [logging.getLogger(name) for name in names or TALKATIVE]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
